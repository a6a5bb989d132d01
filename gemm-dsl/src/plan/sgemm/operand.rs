//! Path of one operand's tiles from global to shared memory, and from there to the registers of a
//! thread.

use super::pipeline::Ragged;
use super::{Decided, decided, facts};
use crate::ir::{Elem, Swizzle};
use crate::spec::{Factor, SgemmSpec};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Rows of A and C.
    M,
    /// Columns of B and C.
    N,
    /// Reduction axis: columns of A and rows of B.
    K,
}

impl Axis {
    /// Factor that shares this axis with C. The axis must not be K.
    pub(crate) fn factor(self) -> Factor {
        match self {
            Self::M => Factor::A,
            Self::N => Factor::B,
            Self::K => unreachable!("C has no axis K"),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::M => "M",
            Self::N => "N",
            Self::K => "K",
        })
    }
}

/// Contiguous axes of A and B in global memory.
pub(super) fn contiguous_axes(spec: &SgemmSpec) -> [Axis; 2] {
    let a = if spec.layout.transposes_a() { Axis::M } else { Axis::K };
    let b = if spec.layout.transposes_b() { Axis::K } else { Axis::N };
    [a, b]
}

/// Contiguous axes of A and B in their shared tiles. They are as in global memory, except for a
/// transposed matrix, whose contiguous axis becomes the one that it shares with C.
pub(super) fn shared_axes(spec: &SgemmSpec) -> [Axis; 2] {
    let [a, b] = contiguous_axes(spec);
    let lies = |axis, free| if spec.transpose { free } else { axis };
    [lies(a, Axis::M), lies(b, Axis::N)]
}

/// Mapping of a block's accesses to a tile. Consecutive threads are always laid out along the
/// contiguous axis of global memory. A *line* is the part of the tile along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The block covers `step` whole lines at a time.
    Lines {
        /// Lines that the block covers at a time.
        step: u32,
    },
    /// Eight threads cover a group of [`GROUP`] adjacent elements of a line. The block covers one
    /// group of `step` lines at a time, and all lines of one group before those of the next.
    Groups {
        /// Lines that the block covers at a time.
        step: u32,
        /// Steps that cover all lines of the tile.
        passes: u32,
    },
    /// Accesses are numbered along the lines and distributed one by one.
    Linear {
        /// Accesses of all threads together.
        total: u32,
        /// True if every thread has the same number of accesses.
        exact: bool,
    },
}

/// Adjacent elements of a line that eight threads load when asynchronous copies transpose. If the
/// length of shared rows is 4 more than a multiple of 8, the 8 x 4 elements of a warp occupy 32
/// distinct banks.
pub const GROUP: u32 = 8;

/// Maximum number of accesses that are unrolled together.
const UNROLLED: u32 = 16;

/// Pointers to the next elements that a thread copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointers {
    /// No pointers: loads compute their addresses.
    None,
    /// One pointer for all accesses, which are a fixed distance apart.
    One,
    /// One pointer for each pass down the tile.
    PerPass,
    /// One pointer for each access.
    PerAccess,
}

/// Elements that are read where a tile extends beyond C. They exist in memory, and their results
/// are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// No tile extends beyond C.
    Exact,
    /// Repeats the last row or column.
    Last,
    /// Last vector of a row, which ends where the row ends.
    LastVector,
    /// Last vector that starts inside; its end may be padding.
    LastStart,
}

impl Edge {
    /// Edge rule for tiles that extend beyond C. `vectors` is true if vector accesses run along the
    /// clamped axis.
    pub(super) fn guarded(vectors: bool, pitched: bool) -> Self {
        match (vectors, pitched) {
            (false, _) => Self::Last,
            (true, false) => Self::LastVector,
            (true, true) => Self::LastStart,
        }
    }
}

/// Value of the elements past the end of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// None: K is a multiple of the tile's K.
    None,
    PlusZero,
    /// −0. Its product with +0 is −0, which leaves every accumulator unchanged.
    MinusZero,
}

facts! {
    /// Path of one operand's tiles. All widths are the elements of a vector, or 1.
    OperandPlan {
        elem: Elem,
        /// Axis that the operand shares with C: M for A, N for B. Its other axis is K.
        free: Axis,
        /// Contiguous axis in global memory.
        contiguous: Axis,
        /// Contiguous axis in the shared tile.
        shared: Axis,
        /// Elements of the tile along the free axis.
        extent: u32,
        /// Elements of the tile along K.
        depth: u32,
        /// Elements of padding at the end of each shared row.
        pad: u32,
        /// Swizzle of the vectors in shared rows.
        swizzle: Option<Swizzle>,
        /// Elements per access to global memory.
        width: u32,
        /// Elements per store to shared memory.
        store_width: u32,
        /// Elements per read of a fragment from shared memory.
        fragment_width: u32,
        /// Accesses per thread; the last may be idle.
        accesses: u32,
        /// Elements that are read beyond the edge of C.
        edge: Edge,
        /// True if a vector may reach past the end of K into padding, which is not zero.
        straddles: bool,
        /// True if the last vector of a row is read whole although it may end in padding.
        overhangs: bool,
    } decided {
        /// Mapping of the block's accesses to the tile.
        walk: Walk,
        /// Accesses of a thread that are unrolled together; `None` for all.
        unroll: Option<u32>,
        pointers: Pointers,
        /// Value of the elements past the end of K.
        fill: Fill,
    }
}

/// Inputs from which the plan of an operand follows.
#[derive(Clone, Copy)]
pub(super) struct OperandFacts {
    pub elem: Elem,
    pub free: Axis,
    pub contiguous: Axis,
    pub shared: Axis,
    pub extent: u32,
    pub depth: u32,
    pub pad: u32,
    /// True if K-major rows are swizzled.
    pub swizzle: bool,
    pub threads: u32,
    /// True if accesses to shared memory are 16 bytes wide where the layout allows.
    pub shared_vectors: bool,
    /// True if accesses to global memory are 16 bytes wide where the layout allows.
    pub global_vectors: bool,
    /// True if the elements of a thread are adjacent in whole vectors.
    pub by_vectors: bool,
    pub asynchronous: bool,
    pub pitched: bool,
    /// True if tensor cores multiply the tiles.
    pub mma: bool,
}

impl OperandFacts {
    /// Elements of a 16-byte vector.
    fn lanes(&self) -> u32 {
        self.elem.vector_lanes().into()
    }

    fn aligned_rows(&self) -> bool {
        let (_, row) = shared_tile(self.free, self.shared, self.extent, self.depth, self.pad);
        row.is_multiple_of(self.lanes())
    }

    /// Returns true if a loaded vector can be stored as 16 bytes along a shared row.
    fn stores_vectors(&self) -> bool {
        self.contiguous == self.shared && self.aligned_rows()
    }

    /// Returns true if global memory is read 16 bytes at a time. An asynchronous copy has the same
    /// width at its source and its destination.
    fn reads_vectors(&self) -> bool {
        self.global_vectors && (!self.asynchronous || self.stores_vectors())
    }

    /// Returns true if a vector may reach past the end of K, as the row stride allows any K.
    pub fn vectors_straddle_k(&self) -> bool {
        self.pitched && self.reads_vectors() && self.contiguous == Axis::K
    }
}

impl OperandPlan {
    pub(super) fn new(given: OperandFacts, ragged: Ragged) -> Self {
        let OperandFacts { elem, free, contiguous, shared, extent, depth, pad, threads, .. } =
            given;
        let reads_vectors = given.reads_vectors();
        let width_if = |vectors: bool| if vectors { given.lanes() } else { 1 };
        let width = width_if(reads_vectors);
        let fragment =
            given.shared_vectors && shared == free && given.aligned_rows() && given.by_vectors;
        let (lines, line) = if contiguous == free { (depth, extent) } else { (extent, depth) };
        let walk = walk(&given, lines, line, width);
        let accesses = (line / width * lines).div_ceil(threads);
        let guarded = ragged != Ragged::Nowhere;
        let straddles = guarded && given.vectors_straddle_k();
        Self {
            elem,
            free,
            contiguous,
            shared,
            extent,
            depth,
            pad,
            swizzle: (given.swizzle && shared == Axis::K).then(|| exchange(depth, given.lanes())),
            width,
            store_width: width_if(reads_vectors && given.stores_vectors()),
            fragment_width: width_if(fragment),
            walk,
            accesses,
            unroll: match accesses > UNROLLED {
                false => decided(None, ""),
                true => decided(Some(UNROLLED / 4), "limits the registers of staged elements"),
            },
            pointers: match walk.value {
                _ if !given.asynchronous => {
                    decided(Pointers::None, "loads compute their addresses")
                }
                Walk::Lines { .. } if contiguous == free => {
                    decided(Pointers::One, "accesses have a fixed stride")
                }
                Walk::Groups { .. } => decided(Pointers::PerPass, "groups have a fixed stride"),
                Walk::Lines { .. } if guarded => decided(
                    Pointers::PerAccess,
                    "each access is clamped to the edge of C separately",
                ),
                Walk::Lines { .. } => decided(
                    Pointers::PerAccess,
                    "as with guards, where each access is clamped separately",
                ),
                Walk::Linear { .. } => {
                    decided(Pointers::PerAccess, "linear accesses have no common stride")
                }
            },
            edge: match guarded {
                false => Edge::Exact,
                true => Edge::guarded(reads_vectors && contiguous == free, given.pitched),
            },
            fill: match ragged {
                Ragged::Nowhere => decided(Fill::None, "K is a multiple of the tile's K"),
                _ if given.mma => {
                    decided(Fill::PlusZero, "zero products do not change a tensor-core sum")
                }
                Ragged::First if given.asynchronous => {
                    decided(Fill::PlusZero, "cp.async fills with +0 only, before the first product")
                }
                Ragged::First | Ragged::Last if free == Axis::M => {
                    decided(Fill::MinusZero, "its product with +0 is -0, which changes no sum")
                }
                Ragged::First | Ragged::Last => {
                    decided(Fill::PlusZero, "its product with -0 is -0, which changes no sum")
                }
            },
            straddles,
            // An asynchronous copy that would straddle is split into elements.
            overhangs: guarded
                && given.pitched
                && reads_vectors
                && !(straddles && given.asynchronous),
        }
    }

    /// Conventional name of the operand: A or B.
    pub fn letter(&self) -> char {
        self.free.factor().letter()
    }

    /// Rows of the shared tile and elements per row, including padding.
    pub fn shared_tile(&self) -> (u32, u32) {
        shared_tile(self.free, self.shared, self.extent, self.depth, self.pad)
    }

    /// Returns true if a line is a row of the matrix, false if it is a column.
    pub fn lines_are_rows(&self) -> bool {
        (self.free == Axis::M) == (self.contiguous == Axis::K)
    }

    /// Elements per line of the tile: its extent along the contiguous axis.
    pub fn line(&self) -> u32 {
        if self.contiguous == self.free { self.extent } else { self.depth }
    }

    /// Registers of a thread that hold its share of a prefetched tile.
    pub fn staged(&self) -> u32 {
        self.accesses * self.width
    }
}

/// XOR swizzle of rows with `depth` elements. Consecutive rows that together span all banks once
/// share one pattern.
fn exchange(depth: u32, lanes: u32) -> Swizzle {
    let vectors = (depth / lanes).max(1).ilog2().min(3) as u8;
    Swizzle { bits: vectors, base: lanes.ilog2() as u8, shift: 3 - vectors }
}

fn shared_tile(free: Axis, shared: Axis, extent: u32, depth: u32, pad: u32) -> (u32, u32) {
    if shared == free { (depth, extent + pad) } else { (extent, depth + pad) }
}

/// Maps the accesses of a block to `lines` of `line` elements, `width` elements each.
fn walk(given: &OperandFacts, lines: u32, line: u32, width: u32) -> Decided<Walk> {
    let OperandFacts { free, contiguous, shared, extent, depth, pad, threads, .. } = *given;
    let step = threads / GROUP;
    if given.asynchronous
        && contiguous != shared
        && width == 1
        && line.is_multiple_of(GROUP)
        && threads.is_multiple_of(GROUP)
        && lines.is_multiple_of(step)
    {
        let (_, row) = shared_tile(free, shared, extent, depth, pad);
        let why = match row % GROUP {
            // Eight shared rows then start at the multiples of 4 among the banks.
            4 => "each group is a sector, stored without bank conflicts",
            _ => "each group is a sector",
        };
        return decided(Walk::Groups { step, passes: lines / step }, why);
    }
    let per_line = line / width;
    if threads.is_multiple_of(per_line) && lines.is_multiple_of(threads / per_line) {
        return decided(Walk::Lines { step: threads / per_line }, "");
    }
    let total = per_line * lines;
    let exact = total.is_multiple_of(threads);
    decided(Walk::Linear { total, exact }, "whole rows or columns do not divide among the threads")
}
