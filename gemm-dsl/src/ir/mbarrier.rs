//! Mbarriers, which count arrivals and bytes in shared memory, and proxy fences.

use super::{Expr, MbarrierId, MemoryOrder};

/// Declaration of an array of mbarriers in shared memory, 8 bytes each.
#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierDecl {
    pub name: String,
    /// Number of mbarriers, an expression of literals and constants.
    pub count: Expr,
    /// Description for the comment next to the declaration; may be empty.
    pub meaning: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierRef {
    pub barriers: MbarrierId,
    /// Index in the declared array: an integer.
    pub index: Expr,
}

/// Operation on an mbarrier. Each thread that executes it performs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Mbarrier {
    pub at: MbarrierRef,
    pub op: MbarrierOp,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MbarrierOp {
    /// Initialises the mbarrier in phase 0. Each of its phases needs `count` arrivals.
    Init {
        /// Constant, 1 to [`Mbarrier::MOST`].
        count: Expr,
    },
    /// Arrives without waiting.
    Arrive,
    /// Arrives at the same mbarrier of another block of the cluster, without waiting.
    ArriveRemote {
        /// Index of the other block in the cluster, an [`I32`](super::Ty::I32). It may also be the
        /// index of the thread's own block.
        block: Expr,
        /// Either [`MemoryOrder::Release`], as for all other arrivals, or [`MemoryOrder::Relaxed`].
        /// A relaxed arrival publishes only asynchronous work. Waiting threads are then ordered
        /// after the copies and matrix instructions that the arriving thread knows to be complete,
        /// but not after loads and stores. This suffices to release a pipeline stage, and needs no
        /// device-wide fence.
        order: MemoryOrder,
    },
    /// Expects further bytes from asynchronous copies in the current phase, then arrives.
    ArriveExpect {
        /// Number of bytes: an [`I32`](super::Ty::I32), 0 to [`Mbarrier::MOST`].
        bytes: Expr,
    },
    /// Waits until the phase with this parity is complete.
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
    /// Maximum number of arrivals of a phase, of bytes that a phase expects, and of bytes that
    /// arrive before they are expected.
    pub const MOST: u32 = (1 << 20) - 1;

    /// Size of an mbarrier in bytes.
    pub const BYTES: u64 = 8;
}

/// Fence of one thread between two proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// Orders ordinary accesses to the block's shared memory and accesses of asynchronous units
    /// (`fence.proxy.async.shared::cta`). Accesses of one kind after the fence are ordered after
    /// the accesses of the other kind that the thread knew before the fence. Global memory needs no
    /// such fence, because no statement accesses an array that has a tensor map.
    Async,
    /// Publishes mbarriers that the thread has initialised to asynchronous units, and to other
    /// blocks of the cluster (`fence.mbarrier_init`).
    MbarrierInit,
}
