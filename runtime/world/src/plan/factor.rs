//! Factors A and B of a GEMM, and the axes of their blocks.

use super::Block;
use gemm_dsl::spec;
use std::fmt;
use std::ops::Range;

/// Factor of a GEMM: A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// Left factor, M x K.
    A,
    /// Right factor, K x N.
    B,
}

impl Factor {
    /// Both factors; index 0 is A and index 1 is B.
    pub const ALL: [Self; 2] = [Self::A, Self::B];

    /// Range of a block along M, for A, or along N, for B.
    pub(super) fn outer(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.rows,
            Self::B => &block.cols,
        }
    }

    /// Range of a block along K.
    pub(super) fn terms(self, block: &Block) -> &Range<usize> {
        match self {
            Self::A => &block.cols,
            Self::B => &block.rows,
        }
    }

    /// Creates a block from its range along M or N and its range along K.
    pub(super) fn block(self, outer: Range<usize>, terms: Range<usize>) -> Block {
        match self {
            Self::A => Block::new(outer, terms),
            Self::B => Block::new(terms, outer),
        }
    }
}

impl Factor {
    /// Returns true if a kernel's `layout` stores the factor as its transpose.
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
