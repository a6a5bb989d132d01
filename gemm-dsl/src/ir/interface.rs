//! Vocabulary of contracts: operands, extents, requirements and grids.

use crate::ir::{Expr, Scalar};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The n-th array that the kernel only reads (A = 0 and B = 1 of a GEMM).
    Input(usize),
    /// The n-th array that the kernel computes (C of a GEMM; the value of a reduction).
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
    /// Rows of a row reduction; matrices of a batched column reduction.
    pub const OUTER: Extent = Extent("outer");
    pub const INNER: Extent = Extent("inner");
    pub const SEGMENTS: Extent = Extent("segments");
    /// Index in the whole of the first element of a piece.
    pub const FIRST: Extent = Extent("first");
    /// Length of the whole that is cut into pieces.
    pub const TOTAL: Extent = Extent("total");
    pub const M: Extent = Extent("m");
    pub const N: Extent = Extent("n");
    pub const K: Extent = Extent("k");
    pub const BATCH: Extent = Extent("batch");
    /// Number of distinct matrices A in a batch: 1 if all GEMMs share it.
    pub const BATCH_A: Extent = Extent("batch_a");
    /// Number of distinct matrices B in a batch.
    pub const BATCH_B: Extent = Extent("batch_b");
    /// K of the problem, for a kernel whose own [`Extent::K`] is 0 if the result does not depend on
    /// A and B.
    pub const DEPTH: Extent = Extent("depth");
    pub const SMS: Extent = Extent("sms");
    /// Maximum number of split-K partitions.
    pub const RANGES: Extent = Extent("ranges");
    /// Output tiles; for a batch, those of all its GEMMs.
    pub const TILES: Extent = Extent("tiles");
    /// Blocks that share the output tiles.
    pub const BLOCKS: Extent = Extent("blocks");
    /// Clusters that share the output tiles.
    pub const CLUSTERS: Extent = Extent("clusters");
    /// Row stride of a split operand along K, with its padding.
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
    /// Stride of an operand along one dimension, in elements. Along the rows of a matrix it is the
    /// leading dimension.
    Stride {
        operand: Operand,
        /// Dimension, outermost first.
        dim: usize,
    },
    Argument(usize),
}

/// Condition that a launch must satisfy before the kernel may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// The base address of a buffer parameter is a multiple of `bytes`.
    Aligned {
        operand: Operand,
        bytes: u32,
    },
    Multiple {
        scalar: Scalar,
        of: u64,
    },
    /// A scalar parameter lies between two bounds, both inclusive.
    Range {
        scalar: Scalar,
        min: u64,
        max: u64,
    },
    /// Three scalar parameters describe a piece of a whole that is cut at multiples of `of`: `len`
    /// of `total` elements, starting at `first`. The last piece ends with the whole; an empty piece
    /// may start anywhere.
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
    /// Blocks of the grid along x, y and z, of type [`Ty::U64`](crate::ir::Ty::U64). Nothing is
    /// launched if one is 0.
    pub grid: [Expr; 3],
    /// Minimum number of resident blocks per SM (`__launch_bounds__`), if the compiler is told one.
    pub blocks_per_sm: Option<u32>,
}

impl Geometry {
    pub fn threads(&self) -> u32 {
        self.block.0 * self.block.1
    }
}

/// Role of a kernel among those that compute the same result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// No other kernel computes the same result.
    #[default]
    Only,
    Vector,
    /// Accepts arguments that do not allow 16-byte accesses.
    Scalar,
    /// Guards the edges, where the others have no guards.
    Guarded,
}

/// Lower-case name; empty for [`Variant::Only`].
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
