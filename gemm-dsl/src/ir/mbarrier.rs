//! Barriers in shared memory that count arrivals and bytes (`mbarrier`), and the proxy fences.

use super::{Expr, MbarrierId, MemoryOrder};

/// Declaration of an array of barriers in shared memory, 8 bytes each.
#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierDecl {
    pub name: String,
    /// Number of barriers, over literals and constants.
    pub count: Expr,
    /// Description for the comment beside the declaration; may be empty.
    pub meaning: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierRef {
    pub barriers: MbarrierId,
    /// Index in the declaration: an integer.
    pub index: Expr,
}

/// Operation on a barrier in shared memory, performed by each thread that executes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mbarrier {
    pub at: MbarrierRef,
    pub op: MbarrierOp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MbarrierOp {
    /// Initialises the barrier in phase 0; each phase completes after `count` arrivals.
    Init {
        /// Constant, 1 to [`Mbarrier::MOST`].
        count: Expr,
    },
    /// Arrives without waiting.
    Arrive,
    /// Arrives at this barrier in another block of the cluster, without waiting.
    ArriveRemote {
        /// Index of the block in the cluster, an [`I32`](super::Ty::I32). It may be the thread's
        /// own block.
        block: Expr,
        /// Either [`MemoryOrder::Release`], as for any other arrival, or [`MemoryOrder::Relaxed`].
        /// After a relaxed arrival, waiting threads are ordered after the copies and matrix
        /// instructions that the thread knows to be complete, but not after loads and stores of
        /// threads. This suffices to release a pipeline stage, and needs no device-wide fence.
        order: MemoryOrder,
    },
    /// Adds to the bytes that asynchronous copies have yet to write in this phase, then arrives.
    ArriveExpect {
        /// Number of bytes: an [`I32`](super::Ty::I32), 0 to [`Mbarrier::MOST`].
        bytes: Expr,
    },
    /// Waits until the phase of this parity is complete.
    Wait {
        /// Either 0 or 1, an [`I32`](super::Ty::I32).
        parity: Expr,
    },
}

impl MbarrierOp {
    pub(crate) fn operand(&self) -> Option<&Expr> {
        match self {
            Self::Init { count: e }
            | Self::ArriveRemote { block: e, order: _ }
            | Self::ArriveExpect { bytes: e }
            | Self::Wait { parity: e } => Some(e),
            Self::Arrive => None,
        }
    }
}

impl Mbarrier {
    /// Maximum number of arrivals of a phase, of bytes expected in one, and of bytes that arrive
    /// before they are expected.
    pub const MOST: u32 = (1 << 20) - 1;

    /// Size of a barrier in bytes.
    pub const BYTES: u64 = 8;
}

/// Fence of one thread between two proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// Orders ordinary accesses and accesses of asynchronous units to the block's shared memory
    /// (`fence.proxy.async.shared::cta`). Each kind after the fence is ordered after the accesses
    /// of the other kind that the thread knew before it. Global memory needs no such fence:
    /// statements access no array that has a tensor map.
    Async,
    /// Publishes barriers that the thread initialised to asynchronous units and to other blocks of
    /// the cluster (`fence.mbarrier_init`).
    MbarrierInit,
}
