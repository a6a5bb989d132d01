//! Plans for GEMMs on many devices: the distribution of matrices, the exchanges between ranks, and
//! the order of exchanges and multiplications. A plan is plain data. It is created and verified
//! without a device, for any number of ranks.
//!
//! ```text
//! Distribution of A, B, C ─┐
//!                          ├─ Schedule ─verify─► VerifiedSchedule ─┬─► an executor
//! ranks, Strategy ─────────┘                                       └─ClusterModel─► Estimate
//! ```
//!
//! Only matrix data moves between ranks. The rank that keeps an element of C computes the element,
//! over all of K. A sharded GEMM therefore has the same bits as the GEMM on one device, for any
//! number of ranks.
//!
//! ```
//! use gemm_world::plan::{ClusterModel, Distribution, Distributions, Schedule};
//!
//! // A is distributed by rows, B and C by columns: each rank needs all of A.
//! let n = 16384;
//! let distributions = Distributions {
//!     a: Distribution::rows(n, n),
//!     b: Distribution::cols(n, n),
//!     c: Distribution::cols(n, n),
//! };
//! let chosen = Schedule::cheapest(distributions, 4, &ClusterModel::h200_copy_engines(), None)?;
//! println!("{chosen}{}", chosen.estimate);
//! assert!(chosen.estimate.efficiency() > 0.95);
//! # Ok::<(), gemm_world::plan::ScheduleFault>(())
//! ```

mod block;
mod build;
mod check;
mod choose;
mod distribution;
mod estimate;
mod factor;
mod fault;
mod machine;
mod roles;
mod schedule;
mod strategy;
#[cfg(test)]
mod tests;
mod verified;
mod work;

pub use block::Block;
pub use choose::ScheduleChoice;
pub use distribution::{Cut, Distribution, DistributionError, Split};
pub use estimate::Estimate;
pub(crate) use factor::FactorExt;
pub use fault::ScheduleFault;
pub use gemm_dsl::spec::Factor;
pub use machine::{ClusterModel, Gpu, Hosts, Link, Rate, Splits, Tile};
pub use schedule::{Distributions, Exchange, Move, Place, Schedule, Size, StagingBuffer, Step};
pub use strategy::Strategy;
pub use verified::{Shards, VerifiedSchedule};
