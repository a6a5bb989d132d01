//! Plans of kernels that multiply on CUDA cores.

pub(crate) mod check;
pub(crate) mod naive;
pub(crate) mod tiled;
