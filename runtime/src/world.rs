//! Many devices that work on one product or one reduction: the GPUs of this process, one rank of a job of many processes, or
//! simulated ones.
//!
//! ```
//! use gemm_runtime::world::{Layout, World};
//! use gemm_runtime::{SgemmKernel, sgemm_kernel};
//!
//! const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 2x2);
//!
//! let (m, n, k) = (20, 24, 9);
//! let products = World::simulated(3)?.run(|rank| {
//!     // Once on each rank, in a thread of its own. Each loads the part that it has.
//!     let a = rank.load(&Layout::rows(m, k), |block| Ok(vec![1.0; block.len()]))?;
//!     let b = rank.load(&Layout::cols(k, n), |block| Ok(vec![2.0; block.len()]))?;
//!     let mut c = rank.alloc(&Layout::cols(m, n))?;
//!     GEMM.on(rank).launch(&a, &b, &mut c)?;
//!     rank.gather(&c, 0)
//! })?;
//! assert_eq!(products[0], Some(vec![18.0; m * n]));
//! # Ok::<(), gemm_runtime::Error>(())
//! ```
//!
//! The words: a [`World`] is all [`Rank`]s, each of which has a device. A [`Layout`] says how a matrix is dealt out, and a
//! [`Sharded`] is one rank's part of it. What ranks do for a product is a [`Schedule`], which is data, and is checked before
//! it is used.
//!
//! **Bits.** Only data goes from rank to rank, and each element of a product has all its terms from the rank that keeps it, unless
//! [terms are dealt out](ShardedCall::launch_by_terms), whose sums that rank adds in their order; a
//! reduction is folded along runs that do not depend on who has them. So results have the same bits on one device and on any
//! number of them, simulated or not. No sum is left to whoever carries the data.
//!
//! **Faults.** A rank that fails, panics, ends or is late is an error on all others, [`WorldError::RankLost`], within the
//! [patience](World::patience) of the world; ranks of a job that do not meet are [`WorldError::Rendezvous`]. Launches return before
//! their work is done: what it writes is good when a later call of all ranks, or [`World::run`], has returned without an error.

mod agree;
mod call;
mod carrier;
mod chosen;
mod codec;
mod cuts;
mod error;
mod fold;
mod inbox;
mod kernels;
mod known;
mod mailbox;
#[cfg(feature = "npy")]
mod npy;
mod partials;
mod product;
mod ranges;
mod rank;
mod room;
mod run;
mod sharded;
mod stored;
mod tcp;
#[cfg(test)]
mod tests;
mod watch;
mod wire;

pub use call::{ShardedCall, ShardedLaunch};
pub use carrier::Carry;
pub use error::{Lost, WorldError};
pub use fold::{ShardedFor, ShardedReduce};
pub use gemm_world::plan::{
    Block, Chosen, Cut, Estimate, Exchange, Gpu, Hosts, Layout, LayoutError, Layouts, Link,
    Machine, Move, Place, Planes, Rate, Schedule, ScheduleFault, Side, Size, Split, Step, Tile,
    VerifiedSchedule, Way,
};
pub use mailbox::{Delivery, Fault, FaultKind};
pub use rank::Rank;
pub use run::World;
pub use sharded::Sharded;
