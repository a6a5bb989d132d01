//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.

pub mod cuda;
pub mod intrinsic;
pub mod ir;
