//! Many devices that work on one product or one reduction: the GPUs of this process, one rank of a job of many processes, or
//! simulated ones.
//!
//! ```
//! use gemm_runtime::{SgemmKernel, sgemm_kernel};
//! use gemm_world::{Distribution, OnRank, World};
//!
//! const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2);
//!
//! let (m, n, k) = (20, 24, 9);
//! let products = World::simulated(3)?.run(|rank| {
//!     // Once on each rank, in a thread of its own. Each loads the part that it has.
//!     let a = rank.load(&Distribution::rows(m, k), |block| Ok(vec![1.0; block.len()]))?;
//!     let b = rank.load(&Distribution::cols(k, n), |block| Ok(vec![2.0; block.len()]))?;
//!     let mut c = rank.alloc(&Distribution::cols(m, n))?;
//!     GEMM.on(rank).launch(&a, &b, &mut c)?;
//!     rank.gather(&c, 0)
//! })?;
//! assert_eq!(products[0], Some(vec![18.0; m * n]));
//! # Ok::<(), gemm_world::Error>(())
//! ```
//!
//! The words: a [`World`] is all [`Rank`]s, each of which has a device. A [`Distribution`] says how a matrix is dealt out, and a
//! [`Sharded`] is one rank's part of it. What ranks do for a product is a [`Schedule`], which is data, and is checked before
//! it is used.
//!
//! **Bits.** Only data goes from rank to rank, and each element of a product has all its terms from the rank that keeps it, unless
//! [terms are dealt out](ShardedCall::launch_by_terms), whose sums that rank adds in their order; a
//! reduction is folded along runs that do not depend on who has them. So results have the same bits on one device and on any
//! number of them, simulated or not. No sum is left to whoever carries the data.
//!
//! **Faults.** A rank that fails, panics, ends or is late is an error on all others, [`WorldError::RankLost`], within the
//! [patience](World::timeout) of the world; ranks of a job that do not meet are [`WorldError::Rendezvous`]. Launches return before
//! their work is done: what it writes is good when a later call of all ranks, or [`World::run`], has returned without an error.
//!
//! # Environment
//!
//! * `GEMM_CARRY`: the transport ([`TransportKind`]); `GEMM_MEETING`: how long the ranks of a job wait for one another.
//! * `GEMM_NCCL_PATH`: the NCCL library or a directory that holds it; else the loader's path, the Python wheels
//!   `nvidia-nccl-cu12` and `-cu13`, and the toolkit are searched. Read with the feature `nccl` alone.

mod call;
mod channel;
mod codec;
mod collective;
mod consensus;
mod error;
mod execution;
mod failure_watch;
mod inbox;
mod kernels;
mod mailbox;
#[cfg(feature = "nccl")]
mod nccl;
#[cfg(feature = "npy")]
mod npy;
mod partials;
mod partition;
pub mod plan;
mod rank;
mod recent;
mod reduce;
mod reduction_plan;
mod run;
mod selection;
mod sharded;
mod split_k;
mod staging;
mod tcp;
#[cfg(test)]
mod tests;
mod transport;
mod transposition;

pub use call::{ShardedCall, ShardedLaunch};
pub use error::{Error, LossReason, NpyFault, Result, WorldError};
pub use mailbox::{Delivery, Fault, FaultKind};
#[cfg(feature = "npy")]
pub use npy::NpyFile;
pub use plan::{
    Block, ClusterModel, Cut, Distribution, DistributionError, Distributions, Estimate, Exchange,
    Factor, Gpu, Hosts, Link, Move, Place, Rate, Schedule, ScheduleChoice, ScheduleFault, Size,
    Split, Splits, Step, Strategy, Tile, VerifiedSchedule,
};
pub use rank::{OnRank, Rank};
pub use reduce::{ShardedFor, ShardedReduce};
pub use run::World;
pub use sharded::Sharded;
pub use transport::TransportKind;

// For the test of that name.
#[cfg(feature = "nccl")]
#[doc(hidden)]
pub mod __private {
    pub mod nccl {
        pub use crate::nccl::*;
    }
}
