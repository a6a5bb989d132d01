//! Tests that worlds of simulated devices return the same bits as one device, for many rank counts,
//! distributions, shapes and specs, partly random. Faults are reported to all ranks.

mod faults;
mod jobs;
mod mismatches;
#[cfg(feature = "npy")]
mod npy;
mod products;
mod reductions;
mod sampling;
