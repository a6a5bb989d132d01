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
mod reduce_device;
mod reduce_each;
mod reduce_faults;
mod reduce_ops;
mod reduce_over;
mod reduce_random;
mod reduce_semantics;
mod reduce_tuned;
mod sgemm;
mod sgemm_counters;
mod speaking;
mod views;
