//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.

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

pub use error::{SpecError, SpecErrors};

/// What a macro call leaves in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The canonical line of the DSL.
    pub line: String,
    /// The CUDA C text of the preferred kernel.
    pub source: String,
}

/// Runs the pipeline from a spec to its text.
///
/// # Errors
/// All of the spec's faults.
pub fn generate(spec: &impl spec::Spec) -> Result<Generated, SpecErrors> {
    let program = spec.program()?;
    Ok(Generated { line: spec.to_string(), source: cuda::source(program.preferred()) })
}
