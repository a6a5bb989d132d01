//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.

pub mod arch;
pub mod cuda;
pub mod error;
pub mod intrinsic;
pub mod ir;
pub mod lower;
pub mod parse;
pub mod plan;
#[cfg(feature = "sim")]
pub mod sim;
pub mod spec;
pub mod stages;
pub mod value;

pub use error::{SpecError, SpecErrors};
