//! Kernel generator behind `gemm-runtime`: it turns a declarative spec into CUDA C.
//!
//! This crate is internal. Depend on `gemm-runtime`, whose interface is stable.
//!
//! [`parse`] reads a spec and calls [`plan`], which checks it and resolves its defaults. [`lower`]
//! builds the kernels from a plan, and the verifier of the [`ir`] checks each finished kernel.
//! [`cuda`] prints the kernels as CUDA C; the crate `gemm-sim` simulates the same kernels. The
//! verifier and the printer share the reserved names in [`target`]. An [`artifact`] contains all
//! that a launch needs except machine code.

pub mod artifact;
pub mod cuda;
pub mod error;
pub mod expr;
mod family;
pub mod ir;
pub mod lower;
pub mod parse;
pub mod plan;
#[cfg(feature = "serde")]
pub mod serialise;
pub mod spec;
pub mod stages;
mod syntax;
pub mod tables;
pub mod target;

pub use error::{SpecError, SpecErrors};
pub use family::{Family, Plan};
