//! Strategies for bringing missing data to the ranks.

use std::fmt;

/// Strategy for bringing missing data to the ranks.
///
/// If ranks lack parts of both A and B, B is gathered first, and A arrives in parts. Otherwise the
/// incomplete factor arrives in parts. Parts are cut along the rows of A, or the columns of B, and
/// span all of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Gathers everything, then multiplies at once.
    Sequential,
    /// Multiplies while the missing data arrives. A rank first multiplies its own rows or columns,
    /// if they span all of K. The other rows or columns arrive in at least 1 part. The parts start
    /// after the rank's own rows or columns and wrap around.
    Gather {
        /// Number of parts. Fewer are used if there are fewer rows or columns.
        parts: usize,
    },
    /// Keeps two parts in memory. While one part is multiplied, the next arrives in the slot of the
    /// previous part. Each part is one other rank's shard, if shards span all of K.
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
