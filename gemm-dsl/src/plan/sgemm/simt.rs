//! Plans of kernels whose threads multiply.

pub(crate) mod check;
pub(crate) mod naive;
pub(crate) mod tiled;
