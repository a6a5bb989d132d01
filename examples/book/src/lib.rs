//! The book: pages that explain the performance of a kernel from its simulation.
//!
//! ```text
//! a spec ─analysis─► Report: numbers, source lines, accesses, as data ──page──► HTML
//! ```
//!
//! All facts on a page are in the [`Report`](report::Report), which tests compare with snapshots
//! and traces. The templates only lay the report out.

pub mod ablation;
pub mod analysis;
pub mod comparison;
mod deviations;
pub mod diff;
pub mod edges;
pub mod fault;
pub mod glossary;
pub mod ideas;
pub mod launch;
mod links;
pub mod live;
pub mod memory;
mod observation;
pub mod omissions;
pub mod ownership;
pub mod page;
pub mod partials;
pub mod pipeline;
pub mod raster;
pub mod report;
pub mod resources;
mod roofline;
pub mod site;
pub mod steps;
mod suggestion;
mod summary;
pub mod sync;
pub mod times;
mod unit_name;
pub mod units;
mod views;
pub mod wgmma;

pub use gemm_draw::{access, algebra, compiler, occupancy, source};
