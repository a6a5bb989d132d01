//! Shapes at which the kernels of pinned specs are launched.

use crate::products::Products;
use gemm_dsl::spec::{Arith, Lanes, Over, ReduceSpec, SgemmSpec, SplitK, newer_word};
use gemm_oracle::product::Size;
use std::fmt;

/// Columns of a reduced matrix, and mean length of segments.
const COLUMNS: usize = 4096;
const SEGMENT: usize = 64;

/// Maximum number of GEMMs in a batch. Each may have its own buffers.
const BATCH: usize = 512;

/// Sides m = n = k of GEMMs and numbers of reduced elements; both are multiples of 4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub sides: Vec<usize>,
    pub lengths: Vec<usize>,
}

/// Kind of operands, which determines the kernels of a spec that are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// Rows are aligned to 16 bytes: launches the preferred kernels.
    Aligned,
    /// Rows are not aligned to 16 bytes: launches the scalar variants.
    Unaligned,
    /// A contains an infinity, which no split can represent: launches the fallback of FP32
    /// emulation.
    Infinite,
}

impl Operands {
    /// Returns true if a launch on these operands runs the kernel with this suffix.
    pub fn launch(self, suffix: &str) -> bool {
        match self {
            Self::Aligned => suffix != ".scalar",
            Self::Unaligned => suffix == ".scalar",
            Self::Infinite => suffix == ".f32",
        }
    }
}

/// Launch of a GEMM: extents, number of GEMMs, and kind of operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GemmCase {
    pub products: Products,
    pub operands: Operands,
}

impl fmt::Display for GemmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = if self.operands == Operands::Infinite { " with inf" } else { "" };
        write!(f, "{}{note}", self.products)
    }
}

/// Launch of a reduction: extents, kind of operands, and mean length of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionCase {
    pub outer: usize,
    pub len: usize,
    pub inner: usize,
    pub segments: Option<usize>,
    pub operands: Operands,
}

impl fmt::Display for ReductionCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { outer, len, inner, segments, .. } = self;
        match (outer, inner, segments) {
            (_, _, Some(segment)) => write!(f, "{len} in segments of {segment}"),
            (1, 1, None) => write!(f, "{len}"),
            (outer, 1, None) => write!(f, "{outer} rows of {len}"),
            (_, inner, None) => write!(f, "{inner} columns of {len}"),
        }
    }
}

/// Returns the launches of a GEMM for the given sizes.
pub fn gemm(spec: &SgemmSpec, sizes: &Sizes) -> Vec<GemmCase> {
    let mut cases = Vec::new();
    for &side in &sizes.sides {
        for products in aligned(spec, side) {
            let Size { m, n, k } = products.size;
            let fewer = |extent: usize| if extent > 1 { extent - 1 } else { 1 };
            let odd = Products { size: Size::new(fewer(m), fewer(n), fewer(k)), ..products };
            cases.push(GemmCase { products, operands: Operands::Aligned });
            cases.push(GemmCase { products: odd, operands: Operands::Unaligned });
            if emulates(spec.arith) {
                cases.push(GemmCase { products, operands: Operands::Infinite });
            }
        }
    }
    cases
}

/// True for FP32 emulation, which has a fallback.
fn emulates(arith: Arith) -> bool {
    arith.products().len() > 1
}

fn aligned(spec: &SgemmSpec, side: usize) -> Vec<Products> {
    if spec.lanes == Lanes::K {
        return vec![Products::single(Size::new(side, 1, side))];
    }
    if spec.batch.is_some() {
        // The GEMMs have two by two tiles. Together they have as many elements of C as one GEMM of
        // the full size.
        let tile = spec.tile.map_or(16, |tile| tile.m.max(tile.n) as usize);
        let each = (2 * tile).min(side);
        let count = (side / each).pow(2).clamp(4, BATCH);
        return vec![Products { size: Size::square(each), batch: Some(count) }];
    }
    let square = Products::single(Size::square(side));
    if spec.slices > 1 || spec.split_k != SplitK::Partitions(1) || spec.stream_k {
        let deep = Size::new(side.min(128), side.min(128), 4 * side);
        return vec![square, Products::single(deep)];
    }
    vec![square]
}

/// Returns the launches of a reduction for the given sizes. Arrays that are reduced as a whole are
/// aligned.
pub fn reduction(spec: &ReduceSpec, sizes: &Sizes) -> Vec<ReductionCase> {
    let mut cases = Vec::new();
    for &n in &sizes.lengths {
        let columns = COLUMNS.min(n / 4);
        let all = ReductionCase {
            outer: 1,
            len: n,
            inner: 1,
            segments: None,
            operands: Operands::Aligned,
        };
        let of = |columns: usize, operands| match spec.over {
            Over::All => all,
            Over::Segments => ReductionCase { segments: Some(SEGMENT), ..all },
            Over::Rows => ReductionCase { outer: n / columns, len: columns, operands, ..all },
            Over::Columns | Over::Middle => {
                ReductionCase { len: n / columns, inner: columns, operands, ..all }
            }
            over => newer_word(over),
        };
        cases.push(of(columns, Operands::Aligned));
        if !matches!(spec.over, Over::All | Over::Segments) {
            cases.push(of(columns - 1, Operands::Unaligned));
        }
    }
    cases
}
