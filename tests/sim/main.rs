//! What generated kernels compute, count and must not do, on the simulator.

mod batch;
mod blas;
mod counters;
mod elements;
mod epilogue;
mod lists;
mod parts;
mod plant;
mod races;
mod reduce;
mod reduce_semantics;
mod sgemm;
mod sgemm_counters;
mod speaking;
mod views;
