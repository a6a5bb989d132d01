//! Recorded actions of a warp other than its own memory accesses.

use crate::mask::WARP;

/// Action on a block, or within it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detail {
    /// Number of the block's [`events`](super::Trace::events) recorded before this action.
    pub event: usize,
    /// Cluster rank of the acting warp's block; other blocks may also copy to this block and arrive
    /// here.
    pub rank: u32,
    /// Warp number in its own block.
    pub warp: u32,
    /// Number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub stmt: u32,
    /// Iteration of the enclosing loops, for the first lane: an index into
    /// [`Trace::rounds`](super::Trace::rounds).
    pub rounds: u32,
    pub did: Action,
}

/// Kind of an action. Mbarriers are those of the block, numbered in declaration order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// Exchange of 32-bit or 64-bit values between lanes.
    Shuffle {
        /// Value given by each lane, zero-extended.
        values: Box<[u64; WARP]>,
        /// Source lane of each lane; `None` for an inactive lane.
        sources: [Option<u8>; WARP],
    },
    /// A lane initialised an mbarrier.
    Made {
        barrier: u32,
        /// Arrivals that each phase expects.
        arrivals: u32,
    },
    /// A lane arrived at an mbarrier.
    Arrived {
        barrier: u32,
        /// Bytes added to the expectation of the phase.
        bytes: u64,
    },
    /// A lane issued a TMA copy; the simulator completes it at once.
    BoxCopy(BoxCopy),
    /// The preceding copy or arrival completed a phase.
    Completed {
        barrier: u32,
        /// Phase number, from 0 on.
        phase: u32,
    },
    /// Lanes of the warp waited for a phase, which is complete.
    Waited {
        barrier: u32,
        /// Phase number; -1 for the phase before the first, which is complete from the start.
        phase: i64,
    },
    /// The warp executed a matrix instruction of its warpgroup, and computed its quarter.
    Multiplied {
        /// Operand A, a tile of 64 rows.
        a: Operand,
        /// Operand B; its rows are columns of the result.
        b: Operand,
        columns: u32,
    },
}

/// TMA box, as written to shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BoxCopy {
    /// Mbarrier that counts the bytes.
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

/// Tile in shared memory read by a matrix instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operand {
    pub buffer: usize,
    /// First element of the tile in the buffer.
    pub first: u32,
    /// Matrix descriptor given to the instruction.
    pub descriptor: u64,
    /// First byte of the tile within its first row.
    pub column: u32,
    /// Bytes per row of the tile.
    pub bytes: u32,
    /// Addresses of the 16-byte parts of the first eight rows, row by row, in bytes from the start
    /// of shared memory.
    pub parts: Vec<u32>,
}
