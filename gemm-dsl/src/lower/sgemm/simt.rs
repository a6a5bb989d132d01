//! Kernels whose threads multiply, and the pipelines that bring tiles to shared memory for them.

pub(crate) mod async_copy;
pub(crate) mod fragment;
pub(crate) mod load;
pub(crate) mod multistage;
pub(crate) mod naive;
pub(crate) mod pipeline;
