//! Stored form of distributed A and B: the kernel's `layout` decides whether a matrix or its
//! transpose is stored.
//!
//! A schedule does not depend on the stored form: its blocks are blocks of A and B. They are
//! transposed only when they are converted to areas of memory.

use super::{Block, Distribution, Distributions, Factor};
use crate::plan::FactorExt;
use gemm_dsl::spec::{self, SgemmSpec};
use gemm_runtime::MatrixRef;
use std::borrow::Cow;

/// For A and for B: true if the transpose is stored.
#[derive(Clone, Copy)]
pub(crate) struct Transposition(spec::GemmLayout);

impl Transposition {
    pub(crate) fn from_spec(spec: &SgemmSpec) -> Self {
        Self(spec.layout)
    }

    /// Returns true if the transpose of a matrix is stored.
    pub(crate) fn is_turned(self, factor: Factor) -> bool {
        factor.is_transposed(self.0)
    }

    /// Converts a block of a matrix to a block of its stored form, or back.
    pub(crate) fn block(self, factor: Factor, block: &Block) -> Block {
        if self.is_turned(factor) { block.t() } else { block.clone() }
    }

    /// Converts the distribution of the stored form to the matrix's own.
    pub(crate) fn distribution(
        self,
        factor: Factor,
        transposition: &Distribution,
    ) -> Cow<'_, Distribution> {
        if self.is_turned(factor) {
            Cow::Owned(transposition.t())
        } else {
            Cow::Borrowed(transposition)
        }
    }

    /// Converts the distributions of stored A, B and C to those of the GEMM.
    pub(crate) fn distributions(
        self,
        a: &Distribution,
        b: &Distribution,
        c: &Distribution,
    ) -> Distributions {
        let of = |factor, transposition| self.distribution(factor, transposition).into_owned();
        Distributions { a: of(Factor::A, a), b: of(Factor::B, b), c: c.clone() }
    }

    /// Converts a view of the stored form to a view of the matrix itself.
    pub(crate) fn view<'v>(self, factor: Factor, transposition: MatrixRef<'v>) -> MatrixRef<'v> {
        if self.is_turned(factor) { transposition.t() } else { transposition }
    }

    /// Name of a matrix in messages.
    pub(crate) fn name(self, factor: Factor) -> &'static str {
        match (factor, self.is_turned(factor)) {
            (Factor::A, false) => "A",
            (Factor::B, false) => "B",
            (Factor::A, true) => "A, whose transpose is stored (`layout`),",
            (Factor::B, true) => "B, whose transpose is stored (`layout`),",
        }
    }
}
