//! What of a block of A or B becomes rows and columns of C.

use super::Block;
use gemm_dsl::spec::{Factor, GemmLayout};
use std::ops::Range;

/// What plans ask of a matrix that is multiplied.
pub(crate) trait FactorExt {
    /// What of a block becomes rows or columns of C.
    fn outer(self, block: &Block) -> &Range<usize>;

    /// The terms of a block.
    fn terms(self, block: &Block) -> &Range<usize>;

    /// The block of these rows or columns of C, and these terms.
    fn block(self, outer: Range<usize>, terms: Range<usize>) -> Block;

    /// Whether the transpose of it is stored, as a kernel's `layout` says.
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
