//! The ways in which ranks come by what they lack.

use std::fmt;

/// How a rank comes by what it needs of others.
///
/// Where ranks lack something of A and of B, B is gathered first, and A comes in parts; otherwise the one does of which
/// something is missing. Parts are cut along the rows of A, or along the columns of B, and have all terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// It gathers all of it, and then multiplies, at once.
    Sequential,
    /// It gathers all of it, and multiplies while it comes: first what it has with all terms, then the rest in so many parts, at
    /// least 1, which begin behind what it has and go round.
    Gather {
        /// How many. There are fewer where there is less than that.
        parts: usize,
    },
    /// It has room for two parts alone, one of which comes while the other is multiplied: each is what one other rank has, where
    /// that has all terms, and the memory of the one before the last.
    Rotate,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sequential => f.write_str("sequential"),
            Self::Gather { parts } => write!(f, "gather in {parts}"),
            Self::Rotate => f.write_str("rotate"),
        }
    }
}
