//! Decomposition of an owner's elements into rectangles.

use serde::Serialize;
use std::collections::BTreeMap;

/// Elements of a tile with the same owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Area {
    /// Number of the warp or thread.
    pub owner: u32,
    /// Rectangles of its elements, merged from equal runs of consecutive rows.
    pub rects: Vec<Rect>,
}

/// Rectangle of elements, relative to the first element of the tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rect {
    /// First column, relative to the tile.
    pub x: u64,
    /// First row, relative to the tile.
    pub y: u64,
    pub width: u64,
    pub height: u64,
}

/// Returns the areas of each owner, from the owner of each row and column.
pub(super) fn areas(owners: &BTreeMap<(u64, u64), u32>) -> Vec<Area> {
    let mut rows: BTreeMap<u64, Vec<(u64, u64, u32)>> = BTreeMap::new();
    for (&(row, column), &owner) in owners {
        let runs = rows.entry(row).or_default();
        match runs.last_mut() {
            Some((from, length, of)) if *of == owner && *from + *length == column => *length += 1,
            _ => runs.push((column, 1, owner)),
        }
    }
    let mut areas: BTreeMap<u32, Vec<Rect>> = BTreeMap::new();
    // Runs of the row above, with the indices of their rectangles.
    let mut above: BTreeMap<(u64, u64, u32), usize> = BTreeMap::new();
    let mut row_above = None;
    for (row, runs) in rows {
        let goes_on = row_above.is_some_and(|above| above + 1 == row);
        let mut here = BTreeMap::new();
        for run in runs {
            let (x, width, owner) = run;
            let rects = areas.entry(owner).or_default();
            let known = above.get(&run).copied().filter(|_| goes_on);
            let at = match known.and_then(|at| Some((at, rects.get_mut(at)?))) {
                Some((at, rect)) => {
                    rect.height += 1;
                    at
                }
                None => {
                    rects.push(Rect { x, y: row, width, height: 1 });
                    rects.len() - 1
                }
            };
            here.insert(run, at);
        }
        (above, row_above) = (here, Some(row));
    }
    areas.into_iter().map(|(owner, rects)| Area { owner, rects }).collect()
}

/// Returns an SVG path of rectangles, moved to the position of the tile. All moves but the first
/// are relative, so that regular patterns repeat in the text and compress well.
pub(crate) fn outline(rects: &[Rect], [left, top]: [u64; 2]) -> String {
    let mut text = String::new();
    let mut before: Option<[i64; 2]> = None;
    for Rect { x, y, width, height } in rects {
        let at = [x + left, y + top].map(|start| start as i64);
        text += &match before {
            None => format!("M{} {}", at[0], at[1]),
            Some([x, y]) => format!("m{} {}", at[0] - x, at[1] - y),
        };
        text += &format!("h{width}v{height}h-{width}z");
        before = Some(at);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_make_a_rectangle() {
        let owner = |row, column| if row < 2 { 0 } else { 1 + (column / 2) as u32 };
        let all: BTreeMap<_, _> =
            (0..4).flat_map(|r| (0..4).map(move |c| ((r, c), owner(r, c)))).collect();
        let rect = |x, y, width, height| Rect { x, y, width, height };
        let found = areas(&all);
        assert_eq!(found[0], Area { owner: 0, rects: vec![rect(0, 0, 4, 2)] });
        assert_eq!(found[1], Area { owner: 1, rects: vec![rect(0, 2, 2, 2)] });
        assert_eq!(outline(&found[1].rects, [10, 20]), "M10 22h2v2h-2z");
        let some = [rect(2, 0, 1, 4), rect(0, 1, 2, 2), rect(4, 1, 2, 2)];
        assert_eq!(outline(&some, [10, 20]), "M12 20h1v4h-1zm-2 1h2v2h-2zm4 0h2v2h-2z");
        // A missing row ends a rectangle.
        let apart = BTreeMap::from([((0, 0), 0), ((2, 0), 0)]);
        assert_eq!(areas(&apart)[0].rects, [rect(0, 0, 1, 1), rect(0, 2, 1, 1)]);
    }
}
