//! What becomes of a product whose tiles do not fill its matrices: which part of each is stored, and how much is computed for
//! nothing.

use super::gather::{At, Looked, Spec};
use super::owners::Matrix;
use super::owners::moved::elements;
use crate::cli::Failure;
use crate::sample;
use gemm_dsl::cuda::Listing;
use gemm_reference::product::Size;
use gemm_runtime::spec::Bounds;
use gemm_runtime::watch::{Accessed, Kind, Trace};
use serde::Serialize;
use std::collections::BTreeMap;

/// The shape: no multiple of a tile along any axis, of four along all.
const SIZE: Size = Size { m: 148, n: 276, k: 76 };

/// The most tiles that are drawn.
const MOST: usize = 400;

/// A launch at a ragged shape.
#[derive(Clone, Debug, Serialize)]
pub struct Edges {
    /// Rows and columns of C, and terms of its sums.
    pub size: [u64; 3],
    /// Which of the kernels that compute the same it was.
    pub variant: String,
    /// Rows and columns of a whole tile.
    pub tile: [u64; 2],
    /// What blocks store: the first row and column, and how many of both.
    pub tiles: Vec<Stored>,
    /// Multiply-adds that lanes execute, outside of tensor cores; and those of the product.
    pub fmas: [u64; 2],
    /// The lines of the text at which lanes of a warp part here, and not where tiles are whole.
    pub lines: Vec<usize>,
}

/// What a block stores of C.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// The first row and the first column.
    pub at: [u64; 2],
    /// Rows and columns.
    pub extents: [u64; 2],
    /// Whether that is a whole tile.
    pub is_whole: bool,
}

/// Why a product has no edges: one without guards takes whole tiles alone.
pub(super) fn none(spec: &Spec) -> Result<Option<String>, Failure> {
    let Spec::Sgemm(spec) = spec else { return Ok(None) };
    if spec.bounds == Bounds::Guarded {
        return Ok(None);
    }
    let multiples = ["m", "n", "k"].into_iter().zip(sample::multiples(&spec.plan()?));
    let multiples = multiples.filter(|(_, of)| *of > 1);
    let multiples: Vec<String> =
        multiples.map(|(extent, of)| format!("{extent} must be a multiple of {of}")).collect();
    let asked = match multiples.is_empty() {
        true => "any shape is one".to_owned(),
        false => format!("{}, and any other launch is refused", multiples.join(", ")),
    };
    Ok(Some(format!(
        "There are none. Under bounds: aligned no access is guarded, so that all tiles must be whole: {asked}."
    )))
}

/// The edges of a product whose launch on whole tiles was looked on at; none of another kernel, and of one that has none.
pub(super) fn of(spec: &Spec, whole: &Looked, listing: &Listing) -> Result<Option<Edges>, Failure> {
    if none(spec)?.is_some() {
        return Ok(None);
    }
    let Some((rows, columns)) = spec.block_tile()? else { return Ok(None) };
    let (looked, others) = spec.look_at_all(At::Size(SIZE))?;
    let kernel = &looked.kernel;
    let Some(c) = Matrix::placed(&looked, "C") else { return Ok(None) };
    let tile = [u64::from(rows), u64::from(columns)];
    let mut tiles: BTreeMap<[u64; 2], [u64; 2]> = BTreeMap::new();
    let traces = std::iter::once(&looked.trace).chain(&others);
    for (at, extents) in traces.filter_map(|trace| stored(&c, trace)) {
        // Parts of one tile, where several blocks store some.
        let known = tiles.entry(at.map_with(tile, |at, of| at / of * of)).or_insert(extents);
        *known = known.map_with(extents, u64::max);
    }
    let tiles =
        tiles.into_iter().map(|(at, extents)| Stored { at, extents, is_whole: extents == tile });
    let tiles: Vec<Stored> = tiles.collect();
    let part = |of: &Looked| -> Vec<bool> {
        of.profile.statements.iter().map(|counters| counters.divergent_branches > 0).collect()
    };
    // Lines are told apart in the text of the kernel that the page shows.
    let is_same = kernel.name == whole.kernel.name && kernel.variant == whole.kernel.variant;
    let parting = part(&looked).into_iter().zip(part(whole)).enumerate().filter(|_| is_same);
    let lines = parting.filter(|(_, (here, there))| *here && !there);
    let mut lines: Vec<usize> = lines.map(|(stmt, _)| listing.lines[stmt].start + 1).collect();
    lines.dedup();
    let Size { m, n, k } = SIZE;
    Ok((!tiles.is_empty()).then(|| Edges {
        size: [m, n, k].map(|extent| extent as u64),
        variant: kernel.variant.to_string(),
        tile,
        tiles,
        fmas: [looked.profile.total.fmas, (m * n * k) as u64],
        lines,
    }))
}

/// Two by two.
trait MapWith {
    fn map_with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self;
}

impl MapWith for [u64; 2] {
    fn map_with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        [f(self[0], other[0]), f(self[1], other[1])]
    }
}

/// The first row and column that a block stores, and how many of both.
fn stored(c: &Matrix, trace: &Trace) -> Option<([u64; 2], [u64; 2])> {
    let mut bounds: Option<[[u64; 2]; 2]> = None;
    let to_c = |access: &Accessed<'_>| {
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

impl Edges {
    /// The kinds of tiles: rows, columns, and how many there are.
    pub fn kinds(&self) -> Vec<([u64; 2], usize)> {
        let mut kinds: BTreeMap<[u64; 2], usize> = BTreeMap::new();
        for tile in &self.tiles {
            *kinds.entry(tile.extents).or_default() += 1;
        }
        kinds.into_iter().rev().collect()
    }

    /// How much of what lanes multiply is of the product, in percent; none where tensor cores multiply.
    pub fn share(&self) -> Option<String> {
        let [executed, needed] = self.fmas;
        (executed >= needed).then(|| crate::show::percent(needed as f64 / executed as f64))
    }

    /// Whether tiles are few enough to be drawn.
    pub fn is_drawn(&self) -> bool {
        self.tiles.len() <= MOST
    }

    /// The extents of all tiles, whole ones.
    pub fn covered(&self) -> [u64; 2] {
        let [m, n, _] = self.size;
        [m, n].map_with(self.tile, |extent, tile| extent.div_ceil(tile.max(1)) * tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Family;
    use gemm_dsl::cuda;
    use gemm_dsl::ir::Variant;

    fn edges(line: &str) -> Option<Edges> {
        let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
        let whole = spec.look(spec.at().expect("a shape")).expect("a launch");
        of(&spec, &whole, &cuda::listing(&whole.kernel)).expect("a launch")
    }

    /// Four blocks of 128 x 256, each of which multiplies 80 terms: 76 and four that are filled in.
    #[test]
    fn large_tiles_are_mostly_beyond_the_edge() {
        let line = "tile: 128x256x16, thread: 8x16, fragment: split, float4, transpose, pad_a: 4, stages: 5, spread: 10, warp: 32x128";
        let edges = edges(line).expect("a product");
        assert_eq!(edges.kinds(), [([128, 256], 1), ([128, 20], 1), ([20, 256], 1), ([20, 20], 1)]);
        assert_eq!(edges.fmas, [4 * 128 * 256 * 80, 148 * 276 * 76]);
        assert_eq!((edges.share().as_deref(), edges.covered()), (Some("29.6 %"), [256, 512]));
        assert_eq!(edges.tiles.iter().filter(|tile| tile.is_whole).count(), 1);
    }

    /// Statements of another variant are others: no line of it is compared with those of this one.
    #[test]
    fn lines_are_those_of_one_variant() {
        let spec =
            Spec::parse(Family::Sgemm, "tile: 32x32x8, thread: 4x4, float4").expect("a spec");
        let lines = |size| {
            let whole = spec.look(At::Size(size)).expect("a launch");
            let edges = of(&spec, &whole, &cuda::listing(&whole.kernel)).expect("a launch");
            (whole.kernel.variant, edges.expect("a product").lines.len())
        };
        let (vector, parting) = lines(Size::square(64));
        assert!(vector == Variant::Vector && parting > 0, "{vector} {parting}");
        assert_eq!(lines(Size { m: 32, n: 32, k: 34 }), (Variant::Scalar, 0));
    }

    /// A kernel without guards has none, and the report says why; of a cluster all tiles count.
    #[test]
    fn whole_tiles_alone_have_none() {
        let of = |line: &str| {
            let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
            none(&spec).expect("a plan")
        };
        let line = "tile: 32x64x8, thread: 4x4, bounds: aligned";
        assert!(edges(line).is_none());
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

    /// Tiles of 32 x 32: 4 and 8 whole ones, and 20 rows and columns of the last.
    #[test]
    fn small_tiles_fit_better() {
        let edges = edges("tile: 32x32x32").expect("a product");
        assert_eq!(edges.kinds(), [([32, 32], 32), ([32, 20], 4), ([20, 32], 8), ([20, 20], 1)]);
        // 76 terms are three tiles of 32.
        assert_eq!(edges.fmas[0], 45 * 32 * 32 * 96);
    }
}
