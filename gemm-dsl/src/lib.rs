//! Kernel generator behind `gemm-runtime`: it turns a declarative spec into CUDA C.
//!
//! This crate is internal. Depend on `gemm-runtime`, whose interface is the stable one.
//!
//! [`parse`] reads a spec, and has it checked and resolved to a [`plan`]. [`lower`] builds the
//! kernels, each verified when it is finished, and [`cuda`] prints them; the simulator runs the
//! same kernels. An [`artifact`] has all that a launch needs besides machine code. Each step depends on earlier steps only, except that the grammar asks the plan for
//! the faults of a spec. The rules of the IR and the printer share the reserved names of
//! [`target`].

pub mod artifact;
pub mod cuda;
pub mod error;
pub mod expr;
mod family;
pub mod ir;
pub mod lower;
pub mod parse;
pub mod plan;
pub mod spec;
pub mod stages;
mod syntax;
pub mod tables;
pub mod target;

pub use error::{SpecError, SpecErrors};
pub use family::{Family, Plan};
