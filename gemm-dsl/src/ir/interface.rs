//! The terms of contracts: what they are about.

use crate::ir::{Expr, Scalar};
use std::fmt;

/// An array that a launch binds to a buffer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The n-th array that the kernel only reads (A = 0 and B = 1 of a product).
    Input(usize),
    /// The n-th array that the kernel computes (C of a product; the value of a reduction).
    Output(usize),
    /// The n-th array that the kernel needs for itself, to write and to read.
    Temp(usize),
}

/// An extent of a problem, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent(pub &'static str);

impl Extent {
    /// The number of elements that a reduction folds into one result; of segments, that of all.
    pub const LENGTH: Extent = Extent("len");
    /// Rows of a reduction over rows, matrices of one over columns of many.
    pub const OUTER: Extent = Extent("outer");
    /// Columns of a reduction over columns.
    pub const INNER: Extent = Extent("inner");
    /// Segments of a reduction over segments.
    pub const SEGMENTS: Extent = Extent("segments");
    /// Of a piece of what is folded: the index of its first element in the whole.
    pub const FIRST: Extent = Extent("first");
    /// The length of the whole that pieces are cut from.
    pub const TOTAL: Extent = Extent("total");
    /// Rows of A and C.
    pub const M: Extent = Extent("m");
    /// Columns of B and C.
    pub const N: Extent = Extent("n");
    /// Columns of A, rows of B.
    pub const K: Extent = Extent("k");
    /// Products of a batch.
    pub const BATCH: Extent = Extent("batch");
    /// Matrices that are the A of some product of a batch: 1 where all share it.
    pub const BATCH_A: Extent = Extent("batch_a");
    /// The same of B.
    pub const BATCH_B: Extent = Extent("batch_b");
    /// As [`Extent::K`], of a kernel whose own may be 0 because none of the terms counts.
    pub const DEPTH: Extent = Extent("depth");
    /// Multiprocessors of the device.
    pub const SMS: Extent = Extent("sms");
    /// The most ranges of K.
    pub const RANGES: Extent = Extent("ranges");
    /// Tiles of C, of a batch of all its products.
    pub const TILES: Extent = Extent("tiles");
    /// Blocks that share them.
    pub const BLOCKS: Extent = Extent("blocks");
    /// Clusters of blocks that share them.
    pub const CLUSTERS: Extent = Extent("clusters");
    /// Terms of a row of planes, with its padding.
    pub const PITCH: Extent = Extent("pitch");
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Where the value of a scalar parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An extent of the problem.
    Extent(Extent),
    /// The distance between neighbours of an operand along one dimension, in elements. Along the
    /// rows of a matrix it is the leading dimension.
    Stride {
        /// The operand.
        operand: Operand,
        /// The dimension, outermost first.
        dim: usize,
    },
    /// The n-th number that the caller passes.
    Argument(usize),
}

/// What a launch must satisfy before the kernel may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// The base address of a buffer parameter is a multiple of `bytes`.
    Aligned {
        /// The operand.
        operand: Operand,
        /// The alignment.
        bytes: u32,
    },
    /// A scalar parameter is a multiple of `of`.
    Multiple {
        /// The parameter.
        scalar: Scalar,
        /// The divisor.
        of: u64,
    },
    /// A scalar parameter lies between two bounds, both included.
    Range {
        /// The parameter.
        scalar: Scalar,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// Three scalar parameters are a piece of a whole that is cut at multiples of `of`: from `first` on, `len` of
    /// `total`. The last piece ends with the whole, and one of nothing may be anywhere.
    Piece {
        /// The parameter that says where it begins.
        first: Scalar,
        /// The parameter that says how long it is.
        len: Scalar,
        /// The parameter that says how long the whole is.
        total: Scalar,
        /// The divisor.
        of: u64,
    },
}

/// Grid and block of a kernel. The grid is in expressions over its scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Threads of a block along x and y.
    pub block: (u32, u32),
    /// Blocks of the grid along x, y and z, of type [`Ty::U64`](crate::ir::Ty::U64); nothing is launched where one is 0.
    pub grid: [Expr; 3],
    /// Blocks that shall fit on a multiprocessor at once (`__launch_bounds__`).
    pub blocks_per_sm: u32,
}

impl Geometry {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.0 * self.block.1
    }
}

/// Which of the kernels that compute the same a kernel is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// There is no other.
    #[default]
    Only,
    /// The one with 16-byte accesses.
    Vector,
    /// The one for arguments that cannot be accessed 16 bytes at a time.
    Scalar,
    /// The one with guards at the edges, where the others have none.
    Guarded,
}

/// In lower case; nothing where there is but one.
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
