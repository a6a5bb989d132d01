//! Kernels that multiply on CUDA cores, and their pipelines for tiles in shared memory. `mma.sync`
//! kernels use the same pipelines.

pub(crate) mod async_copy;
pub(crate) mod fragment;
pub(crate) mod load;
pub(crate) mod multistage;
pub(crate) mod naive;
pub(crate) mod pipeline;
pub(crate) mod staged;
