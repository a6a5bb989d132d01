//! Data shown on the page of a kernel: the source with the cost of each line, memory accesses,
//! occupancy, and the small shape for the simulation.
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
