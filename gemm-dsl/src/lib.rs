//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.
//!
//! The pipeline: [`parse`] reads a spec and has it checked and resolved, once, to a [`plan`]; [`lower`] builds its
//! kernels, each verified where it is finished, and [`cuda`] prints them. The simulator runs the same kernels.
//! No step knows those behind it, except that the grammar asks the plan for the faults of what it
//! read. Which names are taken, the rules of the IR and the printer both have from [`target`].

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
