//! Recorded actions of a warp other than its own memory accesses.

use crate::mask::WARP;

/// Action on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// Number of the block's [`events`](super::Trace::events) that were recorded before this
    /// action.
    pub event: usize,
    /// Cluster rank of the acting warp's block. Warps of other blocks may also copy to this block
    /// and arrive at its mbarriers.
    pub rank: u32,
    /// Number of the warp in its own block.
    pub warp: u32,
    /// Number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Iteration of the enclosing loops for the first lane, as an index into
    /// [`Trace::rounds`](super::Trace::rounds).
    pub rounds: u32,
    pub did: Action,
}

/// Kind of an action. Mbarriers belong to the recorded block, and are numbered in the order of
/// declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Lanes exchanged 32-bit or 64-bit values.
    Shuffle {
        /// Value that each lane supplied, zero-extended.
        values: Box<[u64; WARP]>,
        /// Lane from which each lane read; `None` for an inactive lane.
        sources: [Option<u8>; WARP],
    },
    /// A lane initialised an mbarrier.
    Made {
        barrier: u32,
        /// Number of arrivals that each phase expects.
        arrivals: u32,
    },
    /// A lane arrived at an mbarrier.
    Arrived {
        barrier: u32,
        /// Number of bytes that the arrival added to the expected bytes of the phase.
        bytes: u64,
    },
    /// A lane issued a TMA copy, which the simulator completes at once.
    BoxCopy(BoxCopy),
    /// The preceding copy or arrival has completed a phase.
    Completed {
        barrier: u32,
        /// Number of the phase, from 0.
        phase: u32,
    },
    /// Lanes of the warp waited for a phase that is now complete.
    Waited {
        barrier: u32,
        /// Number of the phase; -1 for the phase before phase 0, which is complete from the start.
        phase: i64,
    },
    /// The warp executed a matrix instruction of its warpgroup, and computed its quarter of the
    /// result.
    Multiplied {
        /// Operand A, a tile of 64 rows.
        a: Operand,
        /// Operand B, whose rows are columns of the result.
        b: Operand,
        columns: u32,
    },
}

/// TMA box as it was written to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoxCopy {
    /// Mbarrier at which the bytes count.
    pub barrier: u32,
    pub from: usize,
    /// Start of the box in the source: one index per dimension.
    pub at: Vec<i64>,
    /// Extents of the box, outermost first.
    pub tile: Vec<u64>,
    pub to: usize,
    pub first: u32,
    /// Size of the box in bytes.
    pub bytes: u64,
    /// Addresses of the 16-byte parts of the first eight rows, row by row, in bytes from the start
    /// of shared memory.
    pub parts: Vec<u32>,
}

/// Tile in shared memory that a matrix instruction read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    pub buffer: usize,
    /// First element of the tile in the buffer.
    pub first: u32,
    /// Descriptor that the instruction received.
    pub descriptor: u64,
    /// First byte of the tile in its first row.
    pub column: u32,
    /// Bytes per row of the tile.
    pub bytes: u32,
    /// Addresses of the 16-byte parts of the first eight rows, row by row, in bytes from the start
    /// of shared memory.
    pub parts: Vec<u32>,
}
