//! What a warp does that is no access of its own to memory.

use crate::mask::WARP;

/// Something that was done to a block, or in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// How many of the block's [`events`](super::Trace::events) were before.
    pub event: usize,
    /// The number in the cluster of the block whose warp did it: others bring boxes and arrive too.
    pub rank: u32,
    /// The warp, by its number in its block.
    pub warp: u32,
    /// The number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Where the loops around the statement were, for the first lane: an index into [`Trace::rounds`](super::Trace::rounds).
    pub rounds: u32,
    /// What was done.
    pub did: Action,
}

/// What a warp did. Barriers in shared memory are those of the block, by their numbers in the order of the declarations.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Lanes took values of 32 or of 64 bits from one another.
    Shuffle {
        /// What each lane gave, zero-extended.
        values: Box<[u64; WARP]>,
        /// The lane that each took from; none of one that took no part.
        sources: [Option<u8>; WARP],
    },
    /// A lane made a barrier.
    Made {
        /// The barrier.
        barrier: u32,
        /// The arrivals of each of its phases.
        arrivals: u32,
    },
    /// A lane arrived at a barrier.
    Arrived {
        /// The barrier.
        barrier: u32,
        /// Bytes that the phase expects from then on.
        bytes: u64,
    },
    /// A lane had a box copied. In the simulator it comes at once.
    BoxCopy(BoxCopy),
    /// With that, or with an arrival, a phase was complete.
    Completed {
        /// The barrier.
        barrier: u32,
        /// The phase, from 0 on.
        phase: u32,
    },
    /// Lanes of the warp waited for a phase, and it is over.
    Waited {
        /// The barrier.
        barrier: u32,
        /// The phase; -1 is the one before the first, which is over from the start.
        phase: i64,
    },
    /// The warp came to a matrix instruction of its warpgroup: it multiplied its quarter.
    Multiplied {
        /// What it read of A, 64 rows.
        a: Operand,
        /// And of B, rows of which are columns of the product.
        b: Operand,
        /// Columns of the product.
        columns: u32,
    },
}

/// A box of an array in global memory, as it was written to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoxCopy {
    /// The barrier at which its bytes count.
    pub barrier: u32,
    /// The number of the buffer that it is a box of.
    pub from: usize,
    /// Where it begins there: an index along each dimension.
    pub at: Vec<i64>,
    /// Its extents, from the outside in.
    pub tile: Vec<u64>,
    /// The number of the buffer that it went to.
    pub to: usize,
    /// The element of that at which it begins.
    pub first: u32,
    /// All its bytes.
    pub bytes: u64,
    /// Where the parts of 16 bytes of its first eight rows were written, row by row: bytes from the start of shared memory.
    pub parts: Vec<u32>,
}

/// A tile that a matrix instruction read in shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    /// The number of its buffer.
    pub buffer: usize,
    /// The element of that at which it begins.
    pub first: u32,
    /// What the instruction was given to find it.
    pub descriptor: u64,
    /// The byte of the first row at which it begins.
    pub column: u32,
    /// Bytes of a row that it has.
    pub bytes: u32,
    /// Where the parts of 16 bytes of its first eight rows were read, row by row: bytes from the start of shared memory.
    pub parts: Vec<u32>,
}
