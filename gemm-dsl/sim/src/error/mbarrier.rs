//! Faults that a kernel commits at an mbarrier.

use thiserror::Error;

/// Misuse of an mbarrier by a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MbarrierFault {
    /// No thread has initialised the mbarrier.
    #[error("no thread has initialised it")]
    NotMade,
    /// Nothing orders the initialisation before the use.
    #[error("this use is not ordered after its initialisation")]
    NotKnown,
    /// No fence makes the initialisation visible to asynchronous units, or to another block of the
    /// cluster.
    #[error("no fence makes its initialisation visible to the copy or to another block")]
    NotShown,
    /// The mbarrier is initialised while it is in use.
    #[error("it is initialised already")]
    AlreadyMade,
    /// A thread arrives, or a copy counts bytes, and nothing orders it after the completion of the
    /// previous phase. It may count in that phase.
    #[error(
        "this operation is not ordered after the phase before phase {phase}: it may count in that \
         phase"
    )]
    TooEarly { phase: u32 },
    /// A thread arrives in a phase that has all its arrivals.
    #[error("phase {phase} has all its arrivals, but bytes are missing")]
    TooManyArrivals { phase: u32 },
    /// The pending byte count exceeds the range of an mbarrier.
    #[error("it cannot count {bytes} bytes")]
    TooManyBytes {
        /// Byte count after the operation; negative if the bytes arrived before they were expected.
        bytes: i64,
    },
    /// A phase completes before all waiters of the previous phase are known to have returned. They
    /// would wait forever.
    #[error(
        "phase {phase} completes before all waits for the previous phase are known to have returned"
    )]
    NotObserved { phase: u32 },
    /// A thread waits for a phase that is neither the current nor the previous one.
    #[error("a wait for phase {phase}, but phase {now} has begun")]
    TooLate {
        /// Awaited phase; -1 for the phase before the first.
        phase: i64,
        now: u32,
    },
    /// A copy counts at the mbarrier, and all threads have left the kernel without waiting for it.
    #[error("a copy that no thread has waited for may write after the block has exited")]
    LeftBehind,
    /// A thread of another block arrives, and nothing orders the arrival before the exit of the
    /// mbarrier's own block.
    #[error(
        "this arrival from another block is not ordered before the exit of the barrier's block"
    )]
    Gone,
    #[error("{parity} is not a parity")]
    NoParity { parity: i64 },
}
