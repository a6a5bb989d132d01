//! Launch of a GEMM at a ragged shape, which is not a multiple of the tile: the stored part of each
//! tile, and the wasted work.

mod launches;
mod requests;
pub use requests::{EdgeRequests, Guard};

#[cfg(test)]
use crate::observation::SampleShape;
use crate::observation::{Observation, Spec};
use crate::ownership::GlobalMatrix;
use crate::ownership::moves::elements;
use gemm_bench::cli::Failure;
use gemm_bench::sample;
use gemm_dsl::cuda::Listing;
use gemm_dsl::ir::Stmt;
use gemm_oracle::product::Size;
use gemm_runtime::sim::watch::{AccessEvent, Kind, Trace};
use launches::EdgeLaunch;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Ragged shape. All extents are multiples of 4, but not of a tile's extent.
const SIZE: Size = Size { m: 148, n: 276, k: 76 };

/// Maximum number of drawn tiles.
const MOST: usize = 400;

/// Width and height of a letter, in pixels.
const LETTER: [u64; 2] = [8, 12];

/// Launch at a ragged shape.
#[derive(Clone, Debug, Serialize)]
pub struct Edges {
    /// Extents m, n and k.
    pub size: [u64; 3],
    /// Variant of the kernel that was launched.
    pub variant: String,
    /// Rows and columns of a full tile.
    pub tile: [u64; 2],
    /// Stored part of each tile of C.
    pub tiles: Vec<StoredTile>,
    /// Multiply-adds that lanes execute, and multiply-adds that the GEMM needs. `None` if tensor
    /// cores multiply, because lanes then execute only the epilogue.
    pub fmas: Option<[u64; 2]>,
    /// Lines of the source with divergence at this shape, but not with full tiles.
    pub lines: Vec<usize>,
    /// True if the behaviour at edges is known. It is known if full tiles use the same kernel, so
    /// that the two launches can be compared.
    pub is_known: bool,
    /// Elements of A and of B that the first block replaces with zeros because the last K tile is
    /// partial. `None` if unknown.
    pub along_k: [Option<u64>; 2],
    /// Guarded lines of the source with their guards.
    pub guards: Vec<(usize, Vec<Guard>)>,
}

/// Part of a tile of C that its blocks store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StoredTile {
    /// First row and first column.
    pub at: [u64; 2],
    /// Number of stored rows and columns.
    pub extents: [u64; 2],
    /// True for a full tile.
    pub is_whole: bool,
    /// Accesses of the tile's blocks at the edges along M and N.
    pub seen: EdgeRequests,
}

/// Reason for missing edges: a GEMM without guards accepts only full tiles.
pub(super) fn none(spec: &Spec) -> Option<String> {
    let Spec::Sgemm(plan) = spec else { return None };
    if plan.guarded() {
        return None;
    }
    let multiples = ["m", "n", "k"].into_iter().zip(sample::multiples(plan));
    let multiples = multiples.filter(|(_, of)| *of > 1);
    let multiples: Vec<String> =
        multiples.map(|(extent, of)| format!("{extent} must be a multiple of {of}")).collect();
    let asked = match multiples.is_empty() {
        true => "any shape is accepted".to_owned(),
        false => format!("{}; any other launch is refused", multiples.join(", ")),
    };
    Some(format!(
        "Not supported. With bounds: aligned no access is guarded, so all tiles must be full: \
         {asked}."
    ))
}

/// Analyses the edges of a GEMM that was also launched on full tiles. `None` for other kernels and
/// for GEMMs without guards.
pub(super) fn edges(
    spec: &Spec,
    whole: &Observation,
    listing: &Listing,
) -> Result<Option<Edges>, Failure> {
    if none(spec).is_some() {
        return Ok(None);
    }
    let Some((rows, columns)) = spec.block_tile() else { return Ok(None) };
    let ragged = EdgeLaunch::ragged(spec, SIZE)?;
    let looked = &ragged.looked;
    let kernel = &looked.kernel;
    let Some(c) = GlobalMatrix::placed(looked, "C") else { return Ok(None) };
    let (cluster, depth) = spec.cluster_tile();
    let edge = launches::edge(spec, &ragged, cluster, depth)?;
    let is_known = edge.is_some();
    let edge = edge.unwrap_or_default();
    let tile = [u64::from(rows), u64::from(columns)];
    let mut tiles: BTreeMap<[u64; 2], ([u64; 2], EdgeRequests)> = BTreeMap::new();
    for (number, trace) in ragged.traces().enumerate() {
        let Some((at, extents)) = stored(&c, trace) else { continue };
        // If several blocks store parts of one tile, the parts are merged.
        let known = tiles.entry(at.map_with(tile, |at, of| at / of * of));
        let known = known.or_insert((extents, EdgeRequests::default()));
        known.0 = known.0.map_with(extents, u64::max);
        known.1.add(edge.blocks.get(number).unwrap_or(&EdgeRequests::default()));
    }
    let tiles = tiles.into_iter().map(|(at, (extents, seen))| {
        let is_whole = extents == tile;
        StoredTile { at, extents, is_whole, seen }
    });
    let tiles: Vec<StoredTile> = tiles.collect();
    let part = |of: &Observation| -> Vec<bool> {
        of.profile.statements.iter().map(|counters| counters.divergent_branches > 0).collect()
    };
    // Line numbers refer to the source on the page, so they are reported only for the same kernel.
    let is_same = kernel.name == whole.kernel.name && kernel.variant == whole.kernel.variant;
    let parting = part(looked).into_iter().zip(part(whole)).enumerate().filter(|_| is_same);
    let lines = parting.filter(|(_, (here, there))| *here && !there);
    let mut lines: Vec<usize> = lines.map(|(stmt, _)| listing.lines[stmt].start + 1).collect();
    lines.dedup();
    let mut guards: BTreeMap<usize, BTreeSet<Guard>> = BTreeMap::new();
    for (stmt, guard) in edge.guards.into_iter().filter(|_| is_same) {
        guards.entry(listing.lines[stmt as usize].start + 1).or_default().insert(guard);
    }
    let guards = guards.into_iter().map(|(line, all)| (line, all.into_iter().collect()));
    let Size { m, n, k } = SIZE;
    let by_tensor_cores =
        kernel.statements().iter().any(|s| matches!(s, Stmt::Mma(_) | Stmt::Wgmma(_)));
    Ok((!tiles.is_empty()).then(|| Edges {
        size: [m, n, k].map(|extent| extent as u64),
        variant: kernel.variant.to_string(),
        tile,
        tiles,
        fmas: (!by_tensor_cores).then(|| [looked.profile.total.fmas, (m * n * k) as u64]),
        lines,
        is_known,
        along_k: edge.along_k,
        guards: guards.collect(),
    }))
}

/// Element-wise combination of two pairs of numbers.
trait MapWith {
    fn map_with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self;
}

impl MapWith for [u64; 2] {
    fn map_with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        [f(self[0], other[0]), f(self[1], other[1])]
    }
}

/// Bounding box of the elements that a block stores: first row and column, then extents.
fn stored(c: &GlobalMatrix, trace: &Trace) -> Option<([u64; 2], [u64; 2])> {
    let mut bounds: Option<[[u64; 2]; 2]> = None;
    let to_c = |access: &AccessEvent<'_>| {
        access.pattern.buffer == c.buffer && access.pattern.kind == Kind::Store
    };
    for access in trace.accesses().filter(to_c) {
        for (_, element) in elements(&access) {
            let (row, column) = c.place(element);
            let here = [row, column];
            let [least, most] = bounds.unwrap_or([here; 2]);
            bounds = Some([least.map_with(here, u64::min), most.map_with(here, u64::max)]);
        }
    }
    let [least, most] = bounds?;
    Some((least, most.map_with(least, |most, least| most - least + 1)))
}

impl StoredTile {
    /// Letters of the guards at the tile's edges, with the position of their centre. `None` if they
    /// do not fit.
    pub fn letters(&self) -> Option<(u64, u64, String)> {
        let letters: String = self.seen.guards().into_iter().map(Guard::letter).collect();
        let [height, width] = self.extents;
        let has_room = height >= LETTER[1] && width >= LETTER[0] * letters.len() as u64;
        let middle = (self.at[1] + width / 2, self.at[0] + height / 2);
        (!letters.is_empty() && has_room).then_some((middle.0, middle.1, letters))
    }
}

impl Edges {
    /// Distinct extents and edge requests of the tiles, with the number of tiles.
    pub fn kinds(&self) -> Vec<(([u64; 2], EdgeRequests), usize)> {
        let mut kinds: BTreeMap<([u64; 2], EdgeRequests), usize> = BTreeMap::new();
        for tile in &self.tiles {
            *kinds.entry((tile.extents, tile.seen)).or_default() += 1;
        }
        kinds.into_iter().rev().collect()
    }

    /// Description of the zeros that are written because the last K tile is partial.
    pub fn zeros_along_k(&self) -> Option<String> {
        let parts = ["A", "B"].iter().zip(self.along_k);
        let parts =
            parts.filter_map(|(name, zeros)| Some(format!("{} elements of {name}", zeros?)));
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Guards that occur at any tile.
    pub fn all_guards(&self) -> BTreeSet<Guard> {
        self.tiles.iter().flat_map(|tile| tile.seen.guards()).collect()
    }

    /// Percentage of the executed multiply-adds that the GEMM needs. `None` if tensor cores
    /// multiply.
    pub fn share(&self) -> Option<String> {
        let [executed, needed] = self.fmas?;
        (executed >= needed).then(|| gemm_bench::table::percent(needed as f64 / executed as f64))
    }

    /// Returns true if there are few enough tiles to draw.
    pub fn is_drawn(&self) -> bool {
        self.tiles.len() <= MOST
    }

    /// Extents of all tiles together, as if they were full.
    pub fn covered(&self) -> [u64; 2] {
        let [m, n, _] = self.size;
        [m, n].map_with(self.tile, |extent, tile| extent.div_ceil(tile.max(1)) * tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_bench::family::Family;
    use gemm_dsl::cuda;
    use gemm_dsl::ir::Variant;

    fn edges_of(line: &str) -> Option<Edges> {
        let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
        let whole = crate::observation::looked(Family::Sgemm, line);
        edges(&spec, &whole, &cuda::listing(&whole.kernel)).expect("a launch")
    }

    fn kinds(edges: &Edges) -> Vec<([u64; 2], usize)> {
        edges.kinds().into_iter().map(|((extents, _), count)| (extents, count)).collect()
    }

    /// Four blocks of 128 x 256 each compute 80 steps of K: 76 steps and four padded ones.
    #[test]
    fn large_tiles_are_mostly_beyond_the_edge() {
        let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, \
                    stages: 5, spread: 10, warp: 32x128";
        let edges = edges_of(line).expect("a product");
        assert_eq!(kinds(&edges), [([128, 256], 1), ([128, 20], 1), ([20, 256], 1), ([20, 20], 1)]);
        assert_eq!(edges.fmas, Some([4 * 128 * 256 * 80, 148 * 276 * 76]));
        assert_eq!((edges.share().as_deref(), edges.covered()), (Some("29.6 %"), [256, 512]));
        assert_eq!(edges.tiles.iter().filter(|tile| tile.is_whole).count(), 1);
    }

    /// A block skips stores beyond the edge. It clamps or zero-fills the elements of A and B beyond
    /// the edge. Along K it writes one zero for each missing element of the last tile.
    #[test]
    fn out_of_range_elements_are_counted() {
        // Specs, each with the extents of its tile along M, N and K.
        for (line, [rows, columns, depth]) in [
            ("tile: 64x64x16, thread: 4x4, float4", [64, 64, 16]),
            ("tile: 32x32x8, thread: 4x4, stages: 3", [32, 32, 8]),
            ("tile: 32x32x32", [32, 32, 32]),
        ] {
            let edges = edges_of(line).expect("a product");
            assert!(edges.is_known);
            let terms = 76_u64.next_multiple_of(depth);
            for tile in &edges.tiles {
                let [stored_rows, stored_columns] = tile.extents;
                let beyond = [rows - stored_rows, columns - stored_columns];
                let seen = tile.seen;
                assert_eq!(seen.off[2], rows * columns - stored_rows * stored_columns, "{line}");
                for side in [0, 1] {
                    let told = seen.moved[side] + seen.off[side];
                    assert_eq!(told, beyond[side] * terms, "{line} {seen:?}");
                    assert!(seen.zeros[side] <= beyond[side] * terms, "{line} {seen:?}");
                }
                assert_eq!(tile.is_whole, seen.guards().is_empty(), "{line} {seen:?}");
            }
            let lacking = [rows, columns].map(|extent| Some(extent * (terms - 76)));
            assert_eq!(edges.along_k, lacking, "{line}");
            assert!(!edges.guards.is_empty());
        }
        // For TMA boxes the hardware fills the elements out of bounds.
        let boxes = "tile: 128x128x64, float4, stages: 4, arith: bf16, mma: wgmma, copy: tma";
        let corner = *edges_of(boxes).expect("a product").tiles.last().expect("tiles");
        assert_eq!(corner.seen.zeros, [108 * 128; 2]);
    }

    /// Statements of different variants are not compared.
    #[test]
    fn lines_are_those_of_one_variant() {
        let spec =
            Spec::parse(Family::Sgemm, "tile: 32x32x8, thread: 4x4, float4").expect("a spec");
        let lines = |size| {
            let whole = spec.look(SampleShape::Size(size)).expect("a launch");
            let edges = edges(&spec, &whole, &cuda::listing(&whole.kernel)).expect("a launch");
            (whole.kernel.variant, edges.expect("a product").lines.len())
        };
        let (vector, parting) = lines(Size::square(64));
        assert!(vector == Variant::Vector && parting > 0, "{vector} {parting}");
        assert_eq!(lines(Size { m: 32, n: 32, k: 34 }), (Variant::Scalar, 0));
    }

    /// A kernel without guards has no edges, and the report states the reason.
    #[test]
    fn whole_tiles_alone_have_none() {
        let of = |line: &str| {
            let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
            none(&spec)
        };
        let line = "tile: 32x64x8, thread: 4x4, bounds: aligned";
        assert!(edges_of(line).is_none());
        let why = of(line).expect("a reason");
        for part in [
            "m must be a multiple of 32",
            "n must be a multiple of 64",
            "k must be a multiple of 8",
        ] {
            assert!(why.contains(part), "{why}");
        }
        let why = of("block: 8x16, bounds: aligned").expect("a reason");
        assert!(why.contains("n must be a multiple of 16") && !why.contains("k must"), "{why}");
        assert!(of("tile: 32x64x8, thread: 4x4").is_none());
    }

    /// Tiles of 32 x 32: 4 x 8 are full, and the last tile along each axis has 20 rows or columns.
    #[test]
    fn small_tiles_fit_better() {
        let edges = edges_of("tile: 32x32x32").expect("a product");
        assert_eq!(kinds(&edges), [([32, 32], 32), ([32, 20], 4), ([20, 32], 8), ([20, 20], 1)]);
        // K = 76 needs three tiles of 32.
        assert_eq!(edges.fmas.map(|[executed, _]| executed), Some(45 * 32 * 32 * 96));
    }

    /// Multiply-adds of an epilogue are not counted as multiply-adds of the GEMM.
    #[test]
    fn multiply_adds_of_an_epilogue_are_not_the_products() {
        let line = "tile: 64x64x32, warp: 32x32, arith: bf16, scaled";
        let edges = edges_of(line).expect("a product");
        assert_eq!((edges.fmas, edges.share()), (None, None));
    }
}
