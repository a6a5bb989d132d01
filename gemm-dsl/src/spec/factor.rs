//! The matrices that a GEMM multiplies.

use std::fmt::{Display, Formatter, Result as Formatted};

/// One of the two matrices that a GEMM multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// M×K.
    A,
    /// K×N.
    B,
}

impl Factor {
    pub const BOTH: [Factor; 2] = [Factor::A, Factor::B];

    /// Index among the operands: 0 for A, 1 for B.
    pub const fn index(self) -> usize {
        match self {
            Factor::A => 0,
            Factor::B => 1,
        }
    }

    /// Returns the other one of A and B.
    pub const fn other(self) -> Self {
        match self {
            Factor::A => Factor::B,
            Factor::B => Factor::A,
        }
    }

    pub const fn letter(self) -> char {
        match self {
            Factor::A => 'A',
            Factor::B => 'B',
        }
    }
}

impl Display for Factor {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        self.letter().fmt(f)
    }
}
