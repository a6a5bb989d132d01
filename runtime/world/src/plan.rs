//! Matrices on many devices: who has which part, and who sends what to whom before which product. All of it is data, made and
//! checked without a device, for two ranks or for five hundred.
//!
//! ```text
//! Layout of A, B, C ─┐
//!                    ├─ Schedule ─verify─► VerifiedSchedule ─┬─► an executor
//! ranks, Way ────────┘                                       └─estimate─► bytes, memory, time on a Machine
//! ```
//!
//! Only data moves between ranks, and each element of C is computed once, with all of its terms, by the rank that keeps it: a
//! sharded product has the bits of the product of one device, however many ranks there are.
//!
//! ```
//! use gemm_world::plan::{Layout, Layouts, Machine, Schedule};
//!
//! // A is dealt out by rows, B and C by columns: each rank needs all of A.
//! let n = 16384;
//! let layouts = Layouts { a: Layout::rows(n, n), b: Layout::cols(n, n), c: Layout::cols(n, n) };
//! let chosen = Schedule::cheapest(layouts, 4, &Machine::h200_copy_engines(), None)?;
//! println!("{chosen}{}", chosen.estimate);
//! assert!(chosen.estimate.efficiency() > 0.95);
//! # Ok::<(), gemm_world::plan::ScheduleFault>(())
//! ```

mod block;
mod build;
mod check;
mod choose;
mod estimate;
mod layout;
mod machine;
mod roles;
mod schedule;
#[cfg(test)]
mod tests;
mod verified;
mod work;

pub use block::Block;
pub use build::Way;
pub use check::ScheduleFault;
pub use choose::Chosen;
pub use estimate::Estimate;
pub use layout::{Cut, Layout, LayoutError, Split};
pub use machine::{Gpu, Hosts, Link, Machine, Planes, Rate, Tile};
pub use schedule::{Exchange, Layouts, Move, Place, Room, Schedule, Side, Size, Step};
pub use verified::{Shards, VerifiedSchedule};
