//! Worlds of simulated devices against one device: the same bits, whatever the ranks, the layouts, the shapes and the lines
//! are; and what becomes of worlds in which something goes wrong.

mod draw;
mod faults;
#[cfg(feature = "npy")]
mod files;
mod jobs;
mod odds;
mod products;
mod reductions;
