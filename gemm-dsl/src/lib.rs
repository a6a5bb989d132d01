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
pub mod predict;
#[cfg(feature = "sim")]
pub mod sim;
pub mod spec;
pub mod stages;
pub mod tensor_core;
pub mod tuned;
pub mod value;
pub mod world;

pub use error::{SpecError, SpecErrors};

use ir::VerifiedProgram;
use spec::{Arith, Instruction, Layout, ReduceSpec, SgemmOperand, SgemmSpec, Spec, Tile};

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

/// Planes that are made once, for many products.
impl SgemmSpec {
    /// The program where the caller gives the planes of A, of B or of both, as [`planes_of_b`](Self::planes_of_b) makes
    /// them, behind all other inputs: the planes of each, then, where lines are scaled, the greatest magnitudes of each. None where
    /// there are no planes, or products have some of their own: but for single products under `mma: wgmma`.
    ///
    /// # Errors
    /// As [`Family::program`].
    pub fn program_given(&self, planes: [bool; 2]) -> Result<Option<VerifiedProgram>, SpecErrors> {
        let plan = self.plan()?;
        if !lower::has_planes_to_give(&plan) {
            return Ok(None);
        }
        Ok(Some(lower::sgemm_of(&plan, planes)?))
    }

    /// The program that makes the planes of B for products in an arithmetic, whatever their tiles are. Its extents are N
    /// and K, its input is B, row by row or column by column. Its outputs are the planes and, where they stand for `f32`, a
    /// word, given as 0, that then says whether they do not hold all numbers, and, where columns are scaled, the greatest
    /// magnitude of each, given as zeros.
    ///
    /// # Errors
    /// `arith: f32` has no planes.
    pub fn planes_of_b(arith: Arith, by_column: bool) -> Result<VerifiedProgram, SpecErrors> {
        if arith == Arith::F32 {
            return Err(SpecErrors::of([error::tensor::no_planes()]));
        }
        let tile = Tile::new(64, 8, 32);
        let spec = Self::default().tile(tile).arith(arith).mma(Instruction::Wgmma).pitched(true);
        let layout = if by_column { Layout::Nt } else { Layout::Nn };
        Ok(lower::planes_of_b(&spec.layout(layout).plan()?)?)
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
