//! Faults of a kernel at an mbarrier.

use thiserror::Error;

/// Wrong use of an mbarrier by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MbarrierFault {
    /// No thread has initialised the mbarrier.
    #[error("no thread has initialised it")]
    NotMade,
    /// Nothing orders the initialisation before the use.
    #[error("this use is not ordered after its initialisation")]
    NotKnown,
    /// No fence makes the initialisation visible to asynchronous units or to another block of the
    /// cluster.
    #[error("no fence makes its initialisation visible to the copy or to another block")]
    NotShown,
    /// The mbarrier is initialised while it is in use.
    #[error("it is initialised already")]
    AlreadyMade,
    /// A thread arrives or issues a copy, and nothing orders this after the completion of the
    /// previous phase. The arrival or the bytes may therefore count in the previous phase.
    #[error(
        "this operation is not ordered after the phase before phase {phase}: it may count in that \
         phase"
    )]
    TooEarly { phase: u32 },
    /// A thread arrives in a phase that already has all its arrivals.
    #[error("phase {phase} has all its arrivals, but bytes are missing")]
    TooManyArrivals { phase: u32 },
    /// The number of pending bytes exceeds the range of an mbarrier.
    #[error("it cannot count {bytes} bytes")]
    TooManyBytes {
        /// Number of pending bytes after the operation; negative if bytes arrived before they were
        /// expected.
        bytes: i64,
    },
    /// A phase completes before all waits for the previous phase are known to have returned. A
    /// thread still in such a wait would wait forever.
    #[error(
        "phase {phase} completes before all waits for the previous phase are known to have returned"
    )]
    NotObserved { phase: u32 },
    /// A thread waits for a phase that is neither the current nor the previous phase.
    #[error("a wait for phase {phase}, but phase {now} has begun")]
    TooLate {
        /// Phase for which the thread waits; -1 for the phase before phase 0.
        phase: i64,
        now: u32,
    },
    /// All threads of the block have left the kernel, but none has waited for a copy that counts at
    /// the mbarrier.
    #[error("a copy that no thread has waited for may write after the block has exited")]
    LeftBehind,
    /// A thread of another block arrives at the mbarrier, and nothing orders this arrival before
    /// the exit of the mbarrier's block.
    #[error(
        "this arrival from another block is not ordered before the exit of the barrier's block"
    )]
    Gone,
    #[error("{parity} is not a parity")]
    NoParity { parity: i64 },
}
