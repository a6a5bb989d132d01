//! Barriers in shared memory that count arrivals and bytes (`mbarrier`), and the fences between the ways to memory.

use super::{Expr, MbarrierId, MemoryOrder};

/// The declaration of barriers in shared memory, of 8 bytes each.
#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierDecl {
    /// Their name in the text.
    pub name: String,
    /// How many there are, over literals and constants.
    pub count: Expr,
    /// What they are for, for the comment beside the declaration; may be empty.
    pub meaning: String,
}

/// One of the barriers of a declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct MbarrierRef {
    /// The declaration.
    pub barriers: MbarrierId,
    /// Which of them: an integer.
    pub index: Expr,
}

/// What each thread that executes it does at a barrier in shared memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Mbarrier {
    /// The barrier.
    pub at: MbarrierRef,
    /// What is done.
    pub op: MbarrierOp,
}

/// What is done at a barrier in shared memory.
#[derive(Clone, Debug, PartialEq)]
pub enum MbarrierOp {
    /// Makes it a barrier, in phase 0, each of whose phases so many arrivals complete: a constant.
    Init {
        /// 1 to [`Mbarrier::MOST`].
        count: Expr,
    },
    /// Arrives, and does not wait.
    Arrive,
    /// Arrives at this barrier of a block of the cluster, and does not wait.
    ArriveRemote {
        /// The number of the block in the cluster, an [`I32`](super::Ty::I32). It may be that of the thread's own.
        block: Expr,
        /// [`MemoryOrder::Release`] as any other arrival, or [`MemoryOrder::Relaxed`]: who waits then comes after the asynchronous work
        /// that the thread knows to be over, copies and matrix instructions, and not after what threads have loaded and
        /// stored themselves. That is enough where a stage is given back, and needs no fence of the whole device.
        order: MemoryOrder,
    },
    /// Adds to the bytes that asynchronous copies have yet to bring in this phase, then arrives.
    ArriveExpect {
        /// How many: an [`I32`](super::Ty::I32), 0 to [`Mbarrier::MOST`].
        bytes: Expr,
    },
    /// Waits until the phase of this parity is complete.
    Wait {
        /// An [`I32`](super::Ty::I32): 0 or 1.
        parity: Expr,
    },
}

impl MbarrierOp {
    /// The expression that the operation takes, if any.
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
    /// The most arrivals of a phase, and the most bytes that may be expected in one, or may have come before they are.
    pub const MOST: u32 = (1 << 20) - 1;

    /// Bytes of a barrier.
    pub const BYTES: u64 = 8;
}

/// A fence of one thread between two ways to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyFence {
    /// What statements and what asynchronous units do with the shared memory of the block (`fence.proxy.async.shared::cta`):
    /// each comes behind the fence after what the thread knows of the other before it. Global memory needs none: statements
    /// access no array that has a tensor map.
    Async,
    /// Barriers that the thread has made, before what asynchronous units, and other blocks of a cluster, do at them
    /// (`fence.mbarrier_init`).
    MbarrierInit,
}
