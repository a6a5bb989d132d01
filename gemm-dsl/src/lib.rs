//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.

pub mod cuda;
pub mod error;
pub mod intrinsic;
pub mod ir;
pub mod lower;
pub mod plan;
pub mod spec;

pub use error::{SpecError, SpecErrors};
