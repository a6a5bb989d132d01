//! Data shown on the pages of a kernel: its text with the cost of each line, memory accesses,
//! occupancy, and the small shape for its simulation.
//!
//! The crate depends on the generator and its simulator, not on a device. The static pages of the
//! book and the live page in a browser therefore share one implementation.

pub mod access;
pub mod algebra;
pub mod compiler;
pub mod counters;
pub mod metrics;
pub mod number;
pub mod occupancy;
pub mod shapes;
pub mod source;
pub mod suggestion;
pub mod view;
