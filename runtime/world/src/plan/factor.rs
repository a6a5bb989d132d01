//! The matrices that are multiplied, and what of their blocks becomes rows and columns of C.

use super::Block;
use gemm_dsl::spec;
use std::fmt;
use std::ops::Range;

/// A matrix that is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// The left one.
    A,
    /// The right one.
    B,
}

impl Factor {
    /// Both of them, in order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// What of a block becomes rows or columns of C.
    pub(super) fn outer(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.rows,
            Self::B => &block.cols,
        }
    }

    /// The terms of a block.
    pub(super) fn terms(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.cols,
            Self::B => &block.rows,
        }
    }

    /// The block of these rows or columns of C, and these terms.
    pub(super) fn block(self, outer: Range<usize>, terms: Range<usize>) -> Block {
        match self {
            Self::A => Block::new(outer, terms),
            Self::B => Block::new(terms, outer),
        }
    }
}

impl Factor {
    /// Whether the transpose of it is stored, as a kernel's `layout` says.
    pub fn is_transposed(self, distribution: spec::GemmLayout) -> bool {
        match self {
            Self::A => distribution.transposes_a(),
            Self::B => distribution.transposes_b(),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::B => "B",
        })
    }
}
