//! Axes of the blocks of A and B.

use super::Block;
use gemm_dsl::spec::{Factor, GemmLayout};
use std::ops::Range;

/// Ranges of a factor's blocks along M or N, and along K.
pub(crate) trait FactorExt {
    /// Range of a block along M for A, along N for B.
    fn outer(self, block: &Block) -> &Range<usize>;

    /// Range of a block along K.
    fn terms(self, block: &Block) -> &Range<usize>;

    /// Creates a block from its range along M or N and its range along K.
    fn block(self, outer: Range<usize>, terms: Range<usize>) -> Block;

    /// Returns true if a kernel's `layout` stores the transpose of this factor.
    fn is_transposed(&self, layout: GemmLayout) -> bool;
}

impl FactorExt for Factor {
    fn outer(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.rows,
            Self::B => &block.cols,
        }
    }

    fn terms(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.cols,
            Self::B => &block.rows,
        }
    }

    fn block(self, outer: Range<usize>, terms: Range<usize>) -> Block {
        match self {
            Self::A => Block::new(outer, terms),
            Self::B => Block::new(terms, outer),
        }
    }

    fn is_transposed(&self, layout: GemmLayout) -> bool {
        match self {
            Self::A => layout.transposes_a(),
            Self::B => layout.transposes_b(),
        }
    }
}
