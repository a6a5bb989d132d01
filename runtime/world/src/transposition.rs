//! How A and B are stored that are dealt out: as a product has them, or as their transposes, as the `layout` of its kernel says.
//!
//! A schedule knows nothing of it: its blocks are those of A and B. They are turned where they become memory, and nowhere else.

use super::{Block, Distribution, Distributions, Factor};
use crate::plan::FactorExt;
use gemm_dsl::spec::{self, SgemmSpec};
use gemm_runtime::MatrixRef;
use std::borrow::Cow;

/// Which of A and B are stored as their transposes.
#[derive(Clone, Copy)]
pub(crate) struct Transposition(spec::GemmLayout);

impl Transposition {
    /// As a kernel takes them.
    pub(crate) fn from_spec(spec: &SgemmSpec) -> Self {
        Self(spec.layout)
    }

    /// Whether the transpose of a matrix is stored.
    pub(crate) fn is_turned(self, factor: Factor) -> bool {
        factor.is_transposed(self.0)
    }

    /// Where a block of a matrix is in what is stored, and the other way round.
    pub(crate) fn block(self, factor: Factor, block: &Block) -> Block {
        if self.is_turned(factor) { block.t() } else { block.clone() }
    }

    /// How a matrix is dealt out, where this is how what is stored is.
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

    /// Those of a product, as it has them.
    pub(crate) fn distributions(
        self,
        a: &Distribution,
        b: &Distribution,
        c: &Distribution,
    ) -> Distributions {
        let of = |factor, transposition| self.distribution(factor, transposition).into_owned();
        Distributions { a: of(Factor::A, a), b: of(Factor::B, b), c: c.clone() }
    }

    /// A matrix, where this is what is stored.
    pub(crate) fn view<'v>(self, factor: Factor, transposition: MatrixRef<'v>) -> MatrixRef<'v> {
        if self.is_turned(factor) { transposition.t() } else { transposition }
    }

    /// What messages call a matrix.
    pub(crate) fn name(self, factor: Factor) -> &'static str {
        match (factor, self.is_turned(factor)) {
            (Factor::A, false) => "A",
            (Factor::B, false) => "B",
            (Factor::A, true) => "A, whose transpose is stored (`layout`),",
            (Factor::B, true) => "B, whose transpose is stored (`layout`),",
        }
    }
}
