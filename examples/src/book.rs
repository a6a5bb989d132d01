//! The book: why a kernel is as fast as it is, drawn from what the simulator has seen of it.
//!
//! ```text
//! a line ──gather──► Report: numbers, lines of the text, accesses, as data ──page──► HTML
//! ```
//!
//! Whatever a page says is in the [`Report`](report::Report), which is what tests hold against snapshots and traces; templates
//! only lay it out.

mod answer;
pub mod beside;
pub mod broken;
pub mod change;
mod cure;
pub mod edges;
pub mod folds;
mod further_off;
pub mod gather;
pub mod glossary;
pub mod ideas;
pub mod launch;
pub mod ledger;
pub mod live;
pub mod measured;
pub mod memory;
pub mod order;
pub mod owners;
pub mod page;
pub mod pipeline;
pub mod report;
pub mod resources;
mod roofline;
pub mod steps;
pub mod sync;
pub mod tensor;
pub mod undrawn;
mod unit_name;
pub mod units;
mod views;
pub mod whole;
mod words;

pub use gemm_draw::{access, algebra, pinned, resident, source};
