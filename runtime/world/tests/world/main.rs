//! Worlds of simulated devices return the same bits as one device, for any number of ranks,
//! distributions, shapes and specs. Faults are reported to all ranks.

mod faults;
mod jobs;
mod mismatches;
#[cfg(feature = "npy")]
mod npy;
mod products;
mod reductions;
mod sampling;
