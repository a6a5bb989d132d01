//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.

pub mod intrinsic;
pub mod ir;
#[cfg(feature = "sim")]
pub mod sim;
