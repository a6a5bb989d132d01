//! The values of the keys of a GEMM.

use crate::spec::table::{Datum, KeyKind, KeyValue, words};
use std::fmt;

words! {
    /// Along which axis of the product consecutive threads run.
    Lanes {
        /// Along the columns of C: accesses to B and C coalesce.
        N = "n",
        /// Along the rows of C.
        M = "m",
        /// Along K: the 32 lanes of a warp sum the same elements, each its share of the terms.
        K = "k",
    }
}

words! {
    /// Which elements of C a thread owns.
    Fragment {
        /// Adjacent ones.
        Blocked = "blocked",
        /// One block width apart (inside a warp tile: one warp width).
        Strided = "strided",
        /// On both axes vectors of four; from one vector to the next, four elements for each thread
        /// along that axis (inside a warp tile: for each lane).
        Split = "split",
    }
}

words! {
    /// The order in which the multiply-adds of one fragment are issued.
    Order {
        /// Row by row.
        Row = "row",
        /// Column by column.
        Column = "column",
        /// Row by row, every other row backwards.
        RowSerpentine = "row_serpentine",
        /// Column by column, every other column backwards.
        ColumnSerpentine = "column_serpentine",
    }
}

words! {
    /// How A and B lie in memory, a letter for each: `n` row by row, `t` column by column, which is the
    /// transpose row by row.
    GemmLayout {
        /// Memory holds A, M x K, and B, K x N.
        Nn = "nn",
        /// A, and the transpose of B, N x K.
        Nt = "nt",
        /// The transpose of A, K x M, and B.
        Tn = "tn",
        /// The transposes of both.
        Tt = "tt",
    }
}

impl GemmLayout {
    /// That of A and B that lie column by column, or do not.
    pub fn from_columns(by_column: [bool; 2]) -> Self {
        match by_column {
            [false, false] => Self::Nn,
            [false, true] => Self::Nt,
            [true, false] => Self::Tn,
            [true, true] => Self::Tt,
        }
    }

    /// Whether A lies column by column: its neighbours along M, not along K.
    pub fn transposes_a(self) -> bool {
        matches!(self, GemmLayout::Tn | GemmLayout::Tt)
    }

    /// Whether B lies column by column: its neighbours along K, not along N.
    pub fn transposes_b(self) -> bool {
        matches!(self, GemmLayout::Nt | GemmLayout::Tt)
    }
}

words! {
    /// Which shapes a kernel accepts.
    Bounds {
        /// Any: what lies outside changes no result and is not written.
        Guarded = "guarded",
        /// Only multiples of the tile, or without one of what a block computes and takes of K at once; checked at
        /// the launch.
        Aligned = "aligned",
    }
}

words! {
    /// Where the matrices of a batch of products lie.
    Batch {
        /// Each of A, B and C a fixed distance behind the one before it, which for A and B may be 0.
        Strided = "strided",
        /// Each wherever its pointer says: A, B and C are lists of as many matrices as there are products.
        Pointers = "pointers",
    }
}

words! {
    /// Which instruction asks tensor cores.
    Instruction {
        /// `mma.sync`, of a warp whose lanes bring A and B: sm_80 and later.
        Sync = "sync",
        /// `wgmma`, of four warps, which reads A and B in shared memory: sm_90a alone.
        Wgmma = "wgmma",
    }
}

words! {
    /// Who copies tiles to shared memory for such an instruction.
    Copies {
        /// All threads, before they multiply.
        Threads = "threads",
        /// The tensor memory accelerator: one thread asks for whole tiles, which come while others are multiplied.
        Tma = "tma",
    }
}

/// How many ranges of K blocks of their own sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SplitK {
    /// So many, or fewer where K has fewer tiles.
    Ranges(u32),
    /// As many as the launch finds best for its extents and the device.
    Auto,
}

impl SplitK {
    const AUTO: &str = "auto";
}

impl From<u32> for SplitK {
    fn from(ranges: u32) -> Self {
        Self::Ranges(ranges)
    }
}

impl fmt::Display for SplitK {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ranges(ranges) => ranges.fmt(f),
            Self::Auto => f.write_str(Self::AUTO),
        }
    }
}

impl KeyValue for SplitK {
    const KIND: KeyKind = KeyKind::NumberOr(Self::AUTO);
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Number(ranges) => Some(Self::Ranges(*ranges)),
            Datum::Word(word) => (word == Self::AUTO).then_some(Self::Auto),
            _ => None,
        }
    }
    fn smallest(&self) -> Option<u32> {
        match self {
            Self::Ranges(ranges) => Some(*ranges),
            Self::Auto => None,
        }
    }
}

/// Whose terms a block sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All of its tile.
    Whole,
    /// A range of K of its tile, one of so many at most.
    Ranges(u32),
    /// A range of K of its tile, one of as many as the launch decides.
    AutoRanges,
    /// As many steps of as many tiles as any other block.
    Stream,
}
