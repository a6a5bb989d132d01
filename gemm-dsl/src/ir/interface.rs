//! Vocabulary of contracts: operands, extents, requirements and grids.

use crate::ir::{Expr, Scalar};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The n-th array that the kernel only reads. In a GEMM, A is 0 and B is 1.
    Input(usize),
    /// The n-th array that the kernel computes, such as C of a GEMM or the result of a reduction.
    Output(usize),
    /// The n-th scratch array, which the kernel writes and reads.
    Temp(usize),
}

/// Problem extent, identified by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent(pub &'static str);

impl Extent {
    /// Number of elements that a reduction folds into one result; for segments, the total number of
    /// elements.
    pub const LENGTH: Extent = Extent("len");
    /// Number of rows of a row reduction, or of matrices of a batched column reduction.
    pub const OUTER: Extent = Extent("outer");
    pub const INNER: Extent = Extent("inner");
    pub const SEGMENTS: Extent = Extent("segments");
    /// Index of the first element of a piece, counted in the whole array.
    pub const FIRST: Extent = Extent("first");
    /// Length of the whole array that is cut into pieces.
    pub const TOTAL: Extent = Extent("total");
    /// Number of elements of each result of a reduction that selects several.
    pub const TOPK: Extent = Extent("topk");
    pub const M: Extent = Extent("m");
    pub const N: Extent = Extent("n");
    pub const K: Extent = Extent("k");
    /// Number of GEMMs of a batch, over all of its axes.
    pub const BATCH: Extent = Extent("batch");
    /// Extent of the second axis of a batch, at least 1.
    pub const BATCH_1: Extent = Extent("batch_1");
    /// Extent of the third axis of a batch, at least 1.
    pub const BATCH_2: Extent = Extent("batch_2");
    /// Extents of the axes of a batch after the first.
    pub const INNER_AXES: [Extent; 2] = [Self::BATCH_1, Self::BATCH_2];
    /// Number of distinct matrices A in a batch: 1 if all GEMMs share one A.
    pub const BATCH_A: Extent = Extent("batch_a");
    /// Number of distinct matrices B in a batch: 1 if all GEMMs share one B.
    pub const BATCH_B: Extent = Extent("batch_b");
    /// K of the problem. The kernel's own [`Extent::K`] may be 0 instead, if the result does not
    /// depend on A and B.
    pub const DEPTH: Extent = Extent("depth");
    pub const SMS: Extent = Extent("sms");
    /// Maximum number of split-K partitions.
    pub const PARTITIONS: Extent = Extent("ranges");
    /// Number of output tiles; for a batch, those of all its GEMMs.
    pub const TILES: Extent = Extent("tiles");
    /// Number of blocks that share the output tiles.
    pub const BLOCKS: Extent = Extent("blocks");
    /// Number of clusters that share the output tiles.
    pub const CLUSTERS: Extent = Extent("clusters");
    /// Number of rows of C whose folds are computed; for a batch, those of all its GEMMs.
    pub const FOLD_ROWS: Extent = Extent("fold_rows");
    /// Number of parts of each row that are folded.
    pub const FOLD_PARTS: Extent = Extent("fold_parts");
    /// Row stride of a K-major split operand, including padding.
    pub const PITCH: Extent = Extent("pitch");
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Extent(Extent),
    /// Stride of an operand along one dimension, in elements. Between the rows of a matrix it is
    /// the leading dimension.
    Stride {
        operand: Operand,
        /// Dimension, outermost first.
        dim: usize,
    },
    Argument(usize),
}

/// Condition that a launch must satisfy.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// The base address of a buffer parameter must be a multiple of `bytes`.
    Aligned {
        operand: Operand,
        bytes: u32,
    },
    Multiple {
        scalar: Scalar,
        of: u64,
    },
    /// A scalar parameter must be between two bounds, both inclusive.
    Range {
        scalar: Scalar,
        min: u64,
        max: u64,
    },
    /// Three scalar parameters must describe a piece of an array that is cut at multiples of `of`:
    /// `len` of its `total` elements, starting at `first`. Only the last piece may end elsewhere.
    /// An empty piece may start anywhere.
    Piece {
        /// Index of the first element of the piece.
        first: Scalar,
        len: Scalar,
        total: Scalar,
        of: u64,
    },
}

/// Grid and block of a kernel. Grid extents are expressions over its scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Threads of a block along x and y.
    pub block: (u32, u32),
    /// Blocks of the grid along x, y and z, of type [`Ty::U64`](crate::ir::Ty::U64). If an extent
    /// is 0, nothing is launched.
    pub grid: [Expr; 3],
    /// Minimum number of resident blocks per SM (`__launch_bounds__`), if the compiler is given
    /// this number.
    pub blocks_per_sm: Option<u32>,
}

impl Geometry {
    pub fn threads(&self) -> u32 {
        self.block.0 * self.block.1
    }
}

/// Role of a kernel among the kernels that compute the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// No other kernel computes the same result.
    #[default]
    Only,
    Vector,
    /// Accepts arguments that do not allow 16-byte accesses.
    Scalar,
    /// Guards the edges; the other kernels have no guards.
    Guarded,
}

/// Prints the name in lower case, or nothing for [`Variant::Only`].
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Variant::Only => "",
            Variant::Vector => "vector",
            Variant::Scalar => "scalar",
            Variant::Guarded => "guarded",
        })
    }
}
