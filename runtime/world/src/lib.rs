//! GEMMs and reductions on many devices: the GPUs of one process, the GPUs of a job with one
//! process for each GPU, or simulated devices.
//!
//! ```
//! use gemm_runtime::{SgemmKernel, sgemm_kernel};
//! use gemm_world::{Distribution, OnRank, World};
//!
//! const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2);
//!
//! let (m, n, k) = (20, 24, 9);
//! let products = World::simulated(3)?.run(|rank| {
//!     // Runs once on each rank, in its own thread. Each rank loads its own part.
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
//! # Terms
//!
//! * A [`World`] is the set of all [`Rank`]s. A rank is one device with its thread.
//! * A [`Distribution`] assigns the elements of a matrix to ranks. A [`Sharded`] is one rank's part
//!   of a distributed matrix.
//! * A [`Schedule`] lists the exchanges and multiplications of all ranks for one GEMM. It is plain
//!   data, and is verified before use.
//!
//! # Determinism
//!
//! Results have the same bits on one device and on any number of devices, simulated or not. Ranks
//! exchange matrix data, and the rank that keeps an element of C computes the whole sum over K for
//! it. With [split-K](ShardedCall::launch_split_k), this rank adds the partial sums of all ranks in
//! the order of K. A reduction folds runs of `run` elements, whose bounds do not depend on the
//! distribution. A transport never adds numbers.
//!
//! # Failures
//!
//! A rank is *lost* if it fails, panics, ends or is late. All other ranks then return
//! [`WorldError::RankLost`] within the world's [timeout](World::timeout). Ranks of a job that do
//! not find each other return [`WorldError::Rendezvous`].
//!
//! A launch returns before its work is complete. Its results are valid once a later collective
//! call, or [`World::run`], has returned without an error.
//!
//! # Environment
//!
//! * `GEMM_CARRY`: the transport, `peers`, `nccl` or `host` ([`TransportKind`]).
//! * `GEMM_MEETING`: time limit in seconds for the ranks of a job to find each other.
//! * `GEMM_RENDEZVOUS`: host and port at which rank 0 of a job listens, such as `node0:29400`
//!   ([`World::from_env`]).
//! * `GEMM_JOB`: name of the job, which replaces the launcher's name of it. Rank 0 rejects ranks
//!   with another name.
//! * `GEMM_NCCL_PATH`: the NCCL library, or its directory. If the variable is not set, NCCL is
//!   looked up on the loader's path, in the Python wheels `nvidia-nccl-cu12` and `-cu13`, and in
//!   the toolkit. Only the feature `nccl` reads this variable.

#![deny(missing_docs)]

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

// Used by the integration test `nccl`.
#[cfg(feature = "nccl")]
#[doc(hidden)]
pub mod __private {
    pub mod nccl {
        pub use crate::nccl::*;
    }
}
