//! Matrices on many devices: who has which part, and who sends what to whom before which product. All of it is data, made and
//! checked without a device, for two ranks or for five hundred.
//!
//! ```text
//! Distribution of A, B, C ─┐
//!                    ├─ Schedule ─verify─► VerifiedSchedule ─┬─► an executor
//! ranks, Strategy ────────┘                                       └─estimate─► bytes, memory, time on a ClusterModel
//! ```
//!
//! Only data moves between ranks, and each element of C is computed once, with all of its terms, by the rank that keeps it: a
//! sharded product has the bits of the product of one device, however many ranks there are.
//!
//! ```
//! use gemm_world::plan::{ClusterModel, Distribution, Distributions, Schedule};
//!
//! // A is dealt out by rows, B and C by columns: each rank needs all of A.
//! let n = 16384;
//! let distributions = Distributions { a: Distribution::rows(n, n), b: Distribution::cols(n, n), c: Distribution::cols(n, n) };
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
