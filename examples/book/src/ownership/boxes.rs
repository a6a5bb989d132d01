//! Tiles that no thread moves element by element. One lane issues the TMA copies of a tile, and
//! matrix instructions of a warpgroup read the tile.

use super::{MOST, NAMES, OwnedTile};
use crate::ownership::rectangles::{Area, Rect, areas};
use crate::wgmma::{extents, ranges, warps};
use gemm_dsl::ir::Kernel;
use gemm_runtime::sim::watch::{Action, BoxCopy, Operand, Trace};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Producers and consumers of a tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TileRole {
    /// Warps whose lanes issue the copies, each as the rank of its block in the cluster and its
    /// number in the block.
    pub bringers: BTreeSet<(u32, u32)>,
    /// Distinct boxes that form the tile.
    pub boxes: Vec<Rect>,
    /// Regions that matrix instructions read, each with the warps of the block that read exactly
    /// this region.
    pub read: Vec<(Vec<u32>, Vec<Rect>)>,
}

impl TileRole {
    /// Describes the boxes and the warps that issue them.
    pub fn brought(&self) -> String {
        let (count, by) = (self.boxes.len(), warps(&self.bringers));
        let word = if count == 1 { "box" } else { "boxes" };
        let sizes: BTreeSet<_> = self.boxes.iter().map(|of| (of.height, of.width)).collect();
        let sizes: Vec<_> =
            sizes.iter().map(|(rows, columns)| format!("{rows} × {columns}")).collect();
        format!(
            "loaded by {count} {word} of {}, requested by one lane of {by}",
            sizes.join(" and ")
        )
    }

    /// Names the warps whose instructions read the tile.
    pub fn readers(&self) -> String {
        let all: BTreeSet<u32> = self.read.iter().flat_map(|(warps, _)| warps).copied().collect();
        format!("matrix instructions of warps {}", ranges(all))
    }
}

/// Returns the tiles of A and B that boxes copy to the first block.
pub(super) fn tiles(kernel: &Kernel, trace: &Trace) -> Vec<OwnedTile> {
    [0, 1].into_iter().filter_map(|side| tile(kernel, trace, side)).collect()
}

/// Row and column of an offset in one of the consecutive tiles of an array.
fn place(first: u32, [rows, terms]: [u64; 2]) -> [u64; 2] {
    let at = u64::from(first) % (rows * terms).max(1);
    [at / terms.max(1), at % terms.max(1)]
}

fn tile(kernel: &Kernel, trace: &Trace, side: usize) -> Option<OwnedTile> {
    // Arrays of the operand, and the region that each warp reads. A warp reads a quarter of its
    // warpgroup's rows of A, and all of B.
    let mut read: BTreeMap<u32, BTreeSet<Rect>> = BTreeMap::new();
    let mut arrays: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
    for detail in trace.details.iter().filter(|detail| detail.rank == 0) {
        let Action::Multiplied { a, b, columns } = &detail.did else { continue };
        let operand: &Operand = if side == 0 { a } else { b };
        let size = u64::from(kernel.buffers[operand.buffer].elem.size());
        let [.., rows, terms] = extents(kernel, operand.buffer)?[..] else { return None };
        arrays.insert(operand.buffer, [rows, terms]);
        let [row, x] = place(operand.first, [rows, terms]);
        let (y, height) = match side {
            0 => (row + 16 * u64::from(detail.warp % 4), 16),
            _ => (row, u64::from(*columns)),
        };
        let width = u64::from(operand.bytes) / size;
        read.entry(detail.warp).or_default().insert(Rect { x, y, width, height });
    }
    let extents = *arrays.values().next()?;
    let boxed = trace.details.iter().filter_map(|detail| match &detail.did {
        Action::BoxCopy(boxed) if arrays.contains_key(&boxed.to) => {
            Some(((detail.rank, detail.warp), boxed))
        }
        _ => None,
    });
    let boxed: Vec<((u32, u32), &BoxCopy)> = boxed.collect();
    let rect = |boxed: &BoxCopy| {
        let [y, x] = place(boxed.first, extents);
        let [.., height, width] = boxed.tile[..] else { return None };
        Some(Rect { x, y, width, height })
    };
    let boxes: BTreeSet<Rect> = boxed.iter().filter_map(|(_, boxed)| rect(boxed)).collect();
    let is_one_tile = arrays.values().all(|other| *other == extents);
    if boxes.is_empty() || !is_one_tile || extents.iter().any(|extent| *extent > MOST) {
        return None;
    }
    // Rectangles of B are transposed, because B is drawn above C with K pointing down.
    let turned = |rect: Rect| match side {
        0 => rect,
        _ => Rect { x: rect.y, y: rect.x, width: rect.height, height: rect.width },
    };
    let mut of_areas: BTreeMap<Vec<Rect>, Vec<u32>> = BTreeMap::new();
    for (warp, rects) in read {
        let places = rects.into_iter().map(turned).flat_map(|rect| {
            (rect.y..rect.y + rect.height)
                .flat_map(move |y| (rect.x..rect.x + rect.width).map(move |x| ((y, x), warp)))
        });
        let own: Vec<Area> = areas(&places.collect());
        of_areas
            .entry(own.into_iter().flat_map(|area| area.rects).collect())
            .or_default()
            .push(warp);
    }
    let mut read: Vec<(Vec<u32>, Vec<Rect>)> =
        of_areas.into_iter().map(|(rects, warps)| (warps, rects)).collect();
    read.sort();
    let role = TileRole {
        bringers: boxed.iter().map(|(by, _)| *by).collect(),
        boxes: boxes.into_iter().map(turned).collect(),
        read,
    };
    let [rows, terms] = extents;
    Some(OwnedTile {
        name: NAMES[side].to_owned(),
        origin: [0, 0],
        extents: if side == 0 { [rows, terms] } else { [terms, rows] },
        moved: "loaded by boxes",
        owners: [0, 0],
        reads: [0, 0],
        warps: Vec::new(),
        threads: Vec::new(),
        read: Vec::new(),
        held: None,
        groups: Vec::new(),
        owner: None,
        group: None,
        role: Some(role),
    })
}

#[cfg(test)]
mod tests {
    use crate::observation::looked;
    use crate::ownership;
    use crate::ownership::{NAMES, OwnedTile};
    use gemm_bench::family::Family;
    use gemm_dsl::stages;

    fn tiles(line: &str) -> Vec<OwnedTile> {
        let looked = looked(Family::Sgemm, line);
        let named = ownership::named(&looked).expect("the same launch").expect("a product");
        ownership::ownership(&looked.kernel, &named, &looked.trace).expect("tiles").tiles
    }

    /// For all stages with boxes, the boxes fill each tile exactly, every element is read, and the
    /// extents of A and B match those of C.
    #[test]
    fn boxes_fill_the_tiles_that_instructions_read() {
        let lines = stages::sgemm().into_iter().map(|stage| stage.spec.to_string());
        let lines: Vec<String> = lines.filter(|line| line.contains("copy: tma")).collect();
        assert!(lines.len() > 4, "{} stages", lines.len());
        let is_tested = |(nth, _): &(usize, String)| gemm_cases::is_in_turn(*nth, 2, 1);
        for (_, line) in lines.into_iter().enumerate().filter(is_tested) {
            let tiles = tiles(&line);
            assert_eq!(tiles.iter().map(|tile| &*tile.name).collect::<Vec<_>>(), NAMES, "{line}");
            let [a, b, c] = &tiles[..] else { panic!("three tiles: {line}") };
            assert_eq!(([a.extents[0], b.extents[1]], a.extents[1]), (c.extents, b.extents[0]));
            for tile in [a, b] {
                let role = tile.role.as_ref().expect("a role");
                let covered = |rects: &[super::Rect]| {
                    let mut all = vec![0u32; (tile.extents[0] * tile.extents[1]) as usize];
                    for rect in rects {
                        for y in rect.y..rect.y + rect.height {
                            for x in rect.x..rect.x + rect.width {
                                all[(y * tile.extents[1] + x) as usize] += 1;
                            }
                        }
                    }
                    all
                };
                assert!(covered(&role.boxes).iter().all(|n| *n == 1), "{line}: {role:?}");
                let read: Vec<super::Rect> =
                    role.read.iter().flat_map(|(_, rects)| rects.iter().copied()).collect();
                assert!(covered(&read).iter().all(|n| *n > 0), "{line}: {role:?}");
            }
        }
    }

    /// Two warpgroups multiply 64 rows each by all columns, with 16 rows per warp. The third
    /// warpgroup issues the copies.
    #[test]
    fn producers_bring_and_consumers_read() {
        let line =
            "tile: 128x128x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma, producer";
        let tiles = tiles(line);
        let [a, b] = [0, 1].map(|at| tiles[at].role.clone().expect("a role"));
        let quarter = |(warps, rects): &(Vec<u32>, Vec<super::Rect>)| (warps.len(), rects.clone());
        let own = (0..8).map(|n| (1, vec![super::Rect { x: 0, y: 16 * n, width: 64, height: 16 }]));
        assert_eq!(a.read.iter().map(quarter).collect::<Vec<_>>(), own.collect::<Vec<_>>());
        let whole = super::Rect { x: 0, y: 0, width: 128, height: 64 };
        assert_eq!(b.read.iter().map(quarter).collect::<Vec<_>>(), [(8, vec![whole])]);
        let consumers: Vec<u32> = b.read[0].0.clone();
        assert!(a.bringers.len() == 1 && a.bringers == b.bringers, "{a:?}");
        assert!(a.bringers.iter().all(|(_, warp)| !consumers.contains(warp)), "{a:?}");
        assert!(
            a.brought().starts_with("loaded by 1 box of 128 × 64, requested by"),
            "{}",
            a.brought()
        );
    }
}
