//! The picture of the tiles: A to the left of C, B above it, so that rows and columns go on.

use super::area::{Area, outline};
use super::{Owners, Tile};
use crate::book::tensor::ranges;

/// The widest and the highest that the picture may be, in pixels.
const PIXELS: [u64; 2] = [1000, 640];
/// Warps that are drawn of one tile at most, by their rectangles, and lanes.
const MOST_RECTS: usize = 600;
/// Where lanes have more, the first of them that are drawn.
const FEW: u32 = 2;

/// The picture, in elements.
pub struct Picture {
    /// How wide and how high it is.
    pub extents: [u64; 2],
    /// The same in pixels.
    pub pixels: [u64; 2],
    /// The size of its letters.
    pub letters: u64,
    /// The tiles.
    pub tiles: Vec<Drawn>,
}

/// A tile, where it is drawn.
pub struct Drawn {
    /// Of which matrix.
    pub name: &'static str,
    /// Where it begins: columns and rows.
    pub at: [u64; 2],
    /// Its columns and rows.
    pub extents: [u64; 2],
    /// Outlines of warps, each with its class.
    pub outlines: Vec<(String, String)>,
    /// Outlines of boxes.
    pub boxes: Vec<String>,
    /// What threads read, by their numbers.
    pub read: Vec<(u32, String)>,
    /// What threads own.
    pub owned: Vec<(u32, String)>,
    /// The numbers of warps and the matrix's name, and where they stand.
    pub labels: Vec<(String, String, String)>,
}

impl Owners {
    /// Draws them.
    pub fn picture(&self) -> Picture {
        let of = |name| self.tiles.iter().find(|tile| tile.name == name);
        let extent = |name, side: usize| of(name).map_or(0, |tile: &Tile| tile.extents[side]);
        let most = self.tiles.iter().flat_map(|tile| tile.extents).max().unwrap_or(1);
        let letters = most.div_ceil(48).max(1);
        let gap = 2 * letters;
        // Terms of A go to the right, those of B down: both end at C.
        let corner = [extent("A", 1) + gap, extent("B", 0) + gap];
        let at = |tile: &Tile| match tile.name {
            "A" => [0, corner[1]],
            "B" => [corner[0], 0],
            _ => corner,
        };
        let tiles: Vec<Drawn> =
            self.tiles.iter().map(|tile| drawn(tile, at(tile), letters)).collect();
        let end =
            |side: usize| tiles.iter().map(|t| t.at[side] + t.extents[side]).max().unwrap_or(1);
        let extents = [end(0), end(1)];
        let is_wide = extents[0] * PIXELS[1] > extents[1] * PIXELS[0];
        let side = usize::from(!is_wide);
        let pixels = extents.map(|extent| (extent * PIXELS[side]).div_ceil(extents[side].max(1)));
        Picture { extents, pixels, letters, tiles }
    }
}

fn drawn(tile: &Tile, at: [u64; 2], letters: u64) -> Drawn {
    let [rows, columns] = tile.extents;
    let rects = |area: &Area| area.rects.len();
    let mut outlines = Vec::new();
    let half =
        |twice: u64| format!("{}{}", twice / 2, if twice.is_multiple_of(2) { "" } else { ".5" });
    let label = |twice: [u64; 2], text: String| (half(twice[0]), half(twice[1]), text);
    let [left, top] = at.map(|start| 2 * start);
    let place = match tile.name {
        "A" => [left + columns, top.saturating_sub(2 * letters)],
        "B" => [left.saturating_sub(2 * letters), top + rows],
        _ => [left.saturating_sub(2 * letters), top.saturating_sub(2 * letters)],
    };
    let mut labels = vec![label(place, tile.name.to_owned())];
    let least = |r: &super::Rect| r.width.min(r.height);
    let all = || tile.warps.iter().flat_map(|area| &area.rects);
    let edge = if all().all(|rect| 2 * least(rect) >= letters) { " edge" } else { "" };
    if tile.warps.iter().map(rects).sum::<usize>() <= MOST_RECTS {
        for area in &tile.warps {
            outlines.push((format!("w{}{edge}", area.owner % 4), outline(&area.rects, at)));
            let largest = area.rects.iter().max_by_key(|r| (least(r), r.width * r.height));
            // Where the number fits.
            let fits = |r: &&super::Rect| r.width >= letters && r.height >= letters;
            if let Some(rect) = largest.filter(fits) {
                let middle = [left + 2 * rect.x + rect.width, top + 2 * rect.y + rect.height];
                labels.push(label(middle, area.owner.to_string()));
            }
        }
    }
    let mut boxes = Vec::new();
    if let Some(role) = &tile.role {
        boxes = role.boxes.iter().map(|of| outline(&[*of], at)).collect();
        for (warps, rects) in &role.read {
            let first = warps.first().copied().unwrap_or(0);
            // All warps of a tile that is read by all have one shade.
            let shade = if role.read.len() == 1 { 0 } else { first % 4 };
            outlines.push((format!("w{shade} edge"), outline(rects, at)));
            if let Some(rect) = rects.iter().max_by_key(|r| (least(r), r.width * r.height)) {
                let middle = [left + 2 * rect.x + rect.width, top + 2 * rect.y + rect.height];
                labels.push(label(middle, ranges(warps.iter().copied())));
            }
        }
    }
    let of_threads = |areas: &[Area]| {
        let are_few = areas.iter().map(rects).sum::<usize>() <= MOST_RECTS;
        let drawn = areas.iter().filter(|area| are_few || area.owner < FEW);
        drawn.map(|area| (area.owner, outline(&area.rects, at))).collect()
    };
    let (read, owned) = (of_threads(&tile.read), of_threads(&tile.threads));
    Drawn { name: tile.name, at, extents: [columns, rows], outlines, boxes, read, owned, labels }
}
