//! Worlds of simulated devices against one device: the same bits, whatever the ranks, the layouts, the shapes and the lines
//! are; and what becomes of worlds in which something goes wrong.

mod faults;
mod jobs;
mod mismatches;
#[cfg(feature = "npy")]
mod npy;
mod products;
mod reductions;
mod sampling;
