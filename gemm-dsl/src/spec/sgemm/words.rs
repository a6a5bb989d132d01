//! Values of the keys of a GEMM.

use crate::ir::Elem;
use crate::spec::table::{Datum, KeyKind, KeyValue, words};
use crate::target::Format;
use std::fmt;

words! {
    /// Element type of a matrix of a GEMM.
    MatrixType {
        /// IEEE binary32.
        F32 = "f32",
        /// IEEE binary64.
        F64 = "f64",
        /// IEEE binary16. Products are summed in `f32`.
        F16 = "f16",
        /// bfloat16, the upper half of a binary32. Products are summed in `f32`.
        Bf16 = "bf16",
        /// 8 bits, with 4 bits of exponent and 3 of fraction. Products are summed in `f32`.
        E4m3 = "e4m3",
        /// 8 bits, with 5 bits of exponent and 2 of fraction. Products are summed in `f32`.
        E5m2 = "e5m2",
        /// Signed byte. Products are summed in `i32`, modulo 2^32.
        I8 = "i8",
        /// Unsigned byte. Products are summed in `i32`, modulo 2^32.
        U8 = "u8",
        /// Signed 32-bit integer, for C of `i8` and `u8`.
        I32 = "i32",
    }
}

impl MatrixType {
    /// Returns the element type of the IR.
    pub const fn elem(self) -> Elem {
        match self {
            Self::F32 => Elem::F32,
            Self::F64 => Elem::F64,
            Self::F16 => Elem::F16,
            Self::Bf16 => Elem::Bf16,
            Self::E4m3 => Elem::E4m3,
            Self::E5m2 => Elem::E5m2,
            Self::I8 => Elem::I8,
            Self::U8 => Elem::U8,
            Self::I32 => Elem::I32,
        }
    }

    /// Returns the format in which `wgmma` reads the type from memory, if any.
    pub fn format(self) -> Option<Format> {
        let reads = |format: &Format| Elem::from_format(*format) == self.elem();
        Format::ALL.into_iter().filter(|format| *format != Format::Tf32).find(reads)
    }

    /// Returns the type in which products of this type are summed. Sums of integers are bits of
    /// `i32`, because unsigned sums wrap.
    pub const fn acc(self) -> Elem {
        match self {
            Self::F64 => Elem::F64,
            Self::F32 | Self::F16 | Self::Bf16 | Self::E4m3 | Self::E5m2 => Elem::F32,
            Self::I8 | Self::U8 | Self::I32 => Elem::U32,
        }
    }
}

words! {
    /// Axis of a GEMM along which consecutive threads are arranged.
    Lanes {
        /// Along the columns of C: accesses to B and C are coalesced.
        N = "n",
        /// Along the rows of C.
        M = "m",
        /// Along K: the 32 lanes of a warp compute the same elements of C, each over a part of K.
        K = "k",
    }
}

words! {
    /// Assignment of the elements of C to threads.
    Fragment {
        /// Adjacent elements.
        Blocked = "blocked",
        /// Elements one block width apart, or one warp width inside a warp tile.
        Strided = "strided",
        /// Vectors of four elements along both axes. Along each axis, the vectors of a thread
        /// alternate with vectors of the other threads, or inside a warp tile with vectors of the
        /// other lanes.
        Split = "split",
        /// Vectors of four columns as in `split`; adjacent rows as in `blocked`.
        SplitN = "split_n",
    }
}

impl Fragment {
    /// Length of the runs of adjacent elements under `split` and `split_n`.
    pub(crate) const RUN: u32 = 4;
}

words! {
    /// Issue order of the multiply-adds of one fragment.
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
    /// Layouts of A and B in memory, one letter for each: `n` for row-major, `t` for column-major.
    /// A column-major matrix is stored like its row-major transpose.
    GemmLayout {
        /// A is row-major, M x K; B is row-major, K x N.
        Nn = "nn",
        /// A is row-major, M x K. B is column-major: memory holds its transpose, N x K, row-major.
        Nt = "nt",
        /// A is column-major: memory holds its transpose, K x M, row-major. B is row-major, K x N.
        Tn = "tn",
        /// A and B are column-major.
        Tt = "tt",
    }
}

impl GemmLayout {
    /// Returns the layouts of A and B. A flag is true if its matrix is column-major.
    pub fn from_columns(by_column: [bool; 2]) -> Self {
        match by_column {
            [false, false] => Self::Nn,
            [false, true] => Self::Nt,
            [true, false] => Self::Tn,
            [true, true] => Self::Tt,
        }
    }

    /// Returns true if A is column-major: contiguous along M, not along K.
    pub fn transposes_a(self) -> bool {
        matches!(self, GemmLayout::Tn | GemmLayout::Tt)
    }

    /// Returns true if B is column-major: contiguous along K, not along N.
    pub fn transposes_b(self) -> bool {
        matches!(self, GemmLayout::Nt | GemmLayout::Tt)
    }
}

words! {
    /// Shapes that a kernel accepts.
    Bounds {
        /// Any shape. Elements outside the matrices affect no result and are not written.
        Guarded = "guarded",
        /// Only shapes that are multiples of the tile. Without a tile, they must be multiples of a
        /// block's elements of C and of its K step. The launch checks this, and the kernel has no
        /// bounds checks.
        Aligned = "aligned",
    }
}

words! {
    /// Locations of the matrices of a batch of GEMMs.
    Batch {
        /// Matrices at a fixed stride for each of A, B and C. A stride of 0 shares one A or B among
        /// all GEMMs.
        Strided = "strided",
        /// Batch with two axes, such as the sequences and the heads of attention: each of A, B and
        /// C has a stride for each axis.
        Strided2 = "strided2",
        /// Batch with three axes, such as sequences, groups of heads and heads.
        Strided3 = "strided3",
        /// Matrices anywhere: A, B and C are lists with a pointer per GEMM.
        Pointers = "pointers",
        /// Groups of rows, each with a B of its own, as for a mixture of experts. A and C are
        /// single matrices, in which the rows of a group follow each other, and B is a batch with a
        /// matrix per group. The kernel reads the first row of each group from an array on the
        /// device. A row has the same bits in any group.
        Grouped = "grouped",
    }
}

impl Batch {
    /// Greatest number of axes of a strided batch.
    pub const MAX_AXES: usize = 3;

    /// Returns the strided batch with this number of axes, which is from 1 to 3.
    pub fn strided(axes: usize) -> Option<Self> {
        match axes {
            1 => Some(Self::Strided),
            2 => Some(Self::Strided2),
            3 => Some(Self::Strided3),
            _ => None,
        }
    }

    /// Returns the number of axes along which A and C have strides; 0 for pointers and groups.
    pub fn axes(self) -> usize {
        match self {
            Self::Strided => 1,
            Self::Strided2 => 2,
            Self::Strided3 => 3,
            Self::Pointers | Self::Grouped => 0,
        }
    }
}

words! {
    /// Tensor core instruction.
    Instruction {
        /// `mma.sync`: an instruction of one warp, with A and B in registers; sm_80 and later.
        Sync = "sync",
        /// `wgmma`: an instruction of four warps, with A and B in shared memory; sm_90a only.
        Wgmma = "wgmma",
    }
}

words! {
    /// Place where `mma.sync` GEMMs convert A and B to the format of `arith`, or split them.
    Convert {
        /// In registers: each warp converts its own fragments, and several warps convert the same
        /// values. For small GEMMs: it needs one launch and no scratch memory.
        Fragment = "fragment",
        /// In global memory: a launch before the GEMM converts all of A and B once, and pads them
        /// to whole tiles. The GEMM reads its tiles with `ldmatrix`, and its main loop has no
        /// guards. Compared with `fragment`, tiles take half the bytes for `bf16` and `f16`, as
        /// many for `tf32`, 1.5 times as many for `bf16x6` and `bf16x9`, and twice as many for
        /// `tf32x3`. For large GEMMs: it costs a second launch, and scratch memory for the
        /// converted A and B.
        Matrix = "matrix",
    }
}

words! {
    /// Method of copying tiles to shared memory for `wgmma`.
    Copies {
        /// All threads copy a tile, then all multiply it.
        Threads = "threads",
        /// TMA (tensor memory accelerator): one thread issues copies of whole tiles, which overlap
        /// with the multiplication of earlier tiles.
        Tma = "tma",
    }
}

/// Number of split-K partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SplitK {
    /// At most this number; fewer if K has fewer tiles.
    Partitions(u32),
    /// A number that suits the extents and the device of each launch.
    Auto,
}

impl SplitK {
    const AUTO: &str = "auto";
}

impl From<u32> for SplitK {
    fn from(partitions: u32) -> Self {
        Self::Partitions(partitions)
    }
}

impl fmt::Display for SplitK {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Partitions(partitions) => partitions.fmt(f),
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
            Datum::Number(partitions) => Some(Self::Partitions(*partitions)),
            Datum::Word(word) => (word == Self::AUTO).then_some(Self::Auto),
            _ => None,
        }
    }
    fn smallest(&self) -> Option<u32> {
        match self {
            Self::Partitions(partitions) => Some(*partitions),
            Self::Auto => None,
        }
    }
}

/// Part of K that a block sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// All of K, for its tile.
    Whole,
    /// One split-K partition of its tile; there are at most this many.
    Partitions(u32),
    /// One split-K partition of its tile; the launch chooses the number of partitions.
    AutoPartitions,
    /// An equal number of K steps for each block, over any tiles (stream-K).
    Stream,
}
