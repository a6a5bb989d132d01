//! What is wrong at a barrier in shared memory.

use thiserror::Error;

/// What a thread did wrong at a barrier in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MbarrierFault {
    /// Nobody has made it a barrier.
    #[error("nobody has initialised it")]
    NotMade,
    /// Nothing says that it has been made before.
    #[error("nothing says that it is initialised before")]
    NotKnown,
    /// Nothing shows asynchronous units, or another block of the cluster, that it has been made.
    #[error("no fence shows its initialisation to the copy, or to another block")]
    NotShown,
    /// It is made while it is one.
    #[error("it is a barrier already")]
    AlreadyMade,
    /// A thread arrives, or a copy counts, and nothing says that the phase before is over: it may count there.
    #[error("nothing says that the phase before phase {phase} is complete: this may count in it")]
    TooEarly {
        /// The current phase.
        phase: u32,
    },
    /// A thread arrives in a phase in which all have.
    #[error("all arrivals of phase {phase} have been, and bytes are missing")]
    TooManyArrivals {
        /// The phase.
        phase: u32,
    },
    /// More bytes are expected, or have come before they are, than a barrier counts.
    #[error("it cannot count {bytes} bytes")]
    TooManyBytes {
        /// What there would be: below zero where they have come and were not expected.
        bytes: i64,
    },
    /// A phase is complete, and nothing says that all have waited who wait for the one before: they would wait for ever.
    #[error("phase {phase} is complete before all are known to have waited for the one before")]
    NotObserved {
        /// The phase.
        phase: u32,
    },
    /// A thread waits for a phase that is neither the current one nor the one before.
    #[error("a wait for phase {phase}, and phase {now} has begun")]
    TooLate {
        /// The phase that it waits for, -1 where that is the one before the first.
        phase: i64,
        /// The current phase.
        now: u32,
    },
    /// A copy counts at it, and all threads have left the kernel without having waited for that.
    #[error("a copy that nobody has waited for may write when the block is gone")]
    LeftBehind,
    /// A thread of another block arrives, and nothing says that it does before all threads of the barrier's have left the kernel.
    #[error("nothing says that this arrival from another block comes before its block is gone")]
    Gone,
    /// A parity is neither 0 nor 1.
    #[error("{parity} is no parity")]
    NoParity {
        /// What was given.
        parity: i64,
    },
}
