//! The kernel generator behind `gemm-runtime`: a declarative spec becomes CUDA C.
//!
//! The pipeline: [`parse`] reads a spec, its plan checks and resolves it, [`lower`]
//! builds kernels, each of which is verified where it is finished, and [`cuda`] prints them; the
//! simulator runs the same kernels. Nothing before a step knows of those behind it, but for the
//! grammar, which asks the plan for the faults of what it read, and for the rules of the IR, which
//! ask the printer which names are taken.

pub mod arch;
pub mod cuda;
pub mod error;
pub mod intrinsic;
pub mod ir;
pub mod kernel_table;
pub mod lower;
pub mod parse;
pub mod plan;
#[cfg(feature = "sim")]
pub mod sim;
pub mod spec;
pub mod stages;
pub mod tensor_core;
pub mod tuned;
pub mod value;

pub use error::{SpecError, SpecErrors};

use ir::VerifiedProgram;
use spec::{ReduceSpec, SgemmOperand, SgemmSpec, Spec};

/// A family of kernels, by the type of its specs: those of one macro, which are made into programs. What
/// every family has as data is a [`FamilyInfo`](spec::FamilyInfo).
pub trait Family: Spec {
    /// Checks the spec, resolves it and builds its kernels and launches, which are verified.
    ///
    /// # Errors
    /// All of the spec's faults.
    fn program(&self) -> Result<VerifiedProgram, SpecErrors>;

    /// What the caller gives beside the arrays that all kernels of the family take.
    fn operands(&self) -> Vec<SgemmOperand> {
        Vec::new()
    }
}

impl Family for ReduceSpec {
    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        let plan = self.plan()?;
        Ok(lower::reduce(&plan)?)
    }
}

impl Family for SgemmSpec {
    fn program(&self) -> Result<VerifiedProgram, SpecErrors> {
        let plan = self.plan()?;
        Ok(lower::sgemm(&plan)?)
    }

    fn operands(&self) -> Vec<SgemmOperand> {
        SgemmSpec::operands(self)
    }
}
