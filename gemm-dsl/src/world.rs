//! Matrices on many devices: who has which part, and who sends what to whom before which product. All of it is data, made and
//! checked without a device, for two ranks or for five hundred.
//!
//! ```text
//! Layout ──shards──► Block of each rank ┐
//!                                       ├─ Schedule ──verify──► VerifiedSchedule ──► an executor
//! extents, Way ─────────────────────────┘        └──estimate (Machine)──► bytes, memory, time
//! ```
//!
//! Only data moves between ranks, and each element of C is computed once, with all of its terms, by the rank that keeps it: a
//! sharded product has the bits of the product of one device, however many ranks there are.

mod block;
mod build;
mod check;
mod estimate;
mod layout;
mod schedule;
#[cfg(test)]
mod tests;

pub use block::Block;
pub use build::Way;
pub use check::{ScheduleFault, VerifiedSchedule};
pub use estimate::{Estimate, Machine};
pub use layout::{Cut, Layout, LayoutError, Split};
pub use schedule::{Exchange, Layouts, Move, Place, Schedule, Side, Size, Step};
