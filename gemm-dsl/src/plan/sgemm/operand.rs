//! Path of an operand's tiles from global to shared memory, and from shared memory to a thread's
//! registers.

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
    /// Returns the matrix, A or B, that shares this axis with C. The axis must not be K.
    pub(crate) fn factor(self) -> Factor {
        match self {
            Self::M => Factor::A,
            Self::N => Factor::B,
            Self::K => unreachable!("OperandPlan: the free axis of an operand is M or N"),
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

/// Contiguous axes of the arrays from which the tiles of A and B are copied: the matrices, or their
/// splits, which are K-major.
pub(super) fn copied_axes(spec: &SgemmSpec) -> [Axis; 2] {
    if spec.converts_matrices() { [Axis::K; 2] } else { contiguous_axes(spec) }
}

/// Contiguous axes of A and B in their shared tiles. They are the same as in global memory, except
/// for a transposed matrix. Its contiguous shared axis is the axis that the matrix has in common
/// with C.
pub(super) fn shared_axes(spec: &SgemmSpec) -> [Axis; 2] {
    let [a, b] = copied_axes(spec);
    let lies = |axis, free| if spec.transpose { free } else { axis };
    [lies(a, Axis::M), lies(b, Axis::N)]
}

/// Assignment of a tile's runs to the threads of a block. A *line* is a row or column of the tile
/// along the contiguous axis of global memory, and a *run* is a vector or adjacent elements of a
/// line. Consecutive threads always copy consecutive runs of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The block covers `step` whole lines at a time.
    Lines {
        /// Lines that the block covers at a time.
        step: u32,
    },
    /// Eight threads cover a group of [`GROUP`] adjacent elements of a line. The block covers one
    /// group in `step` lines at a time, and finishes this group in all lines before the next group.
    Groups {
        /// Lines that the block covers at a time.
        step: u32,
        /// Number of repetitions after which all lines of the tile are covered.
        passes: u32,
    },
    /// Runs are numbered along the lines, and threads take them in turn.
    Linear {
        /// Number of runs of all threads together.
        total: u32,
        /// True if every thread has the same number of runs.
        exact: bool,
    },
}

/// Adjacent elements of a line that eight threads load if asynchronous copies transpose. If the
/// length of a shared row is 4 more than a multiple of 8, the 8 x 4 elements of a warp occupy 32
/// distinct banks.
pub const GROUP: u32 = 8;

const REGISTER_BYTES: u32 = 4;

/// Maximum number of accesses that are unrolled together.
const UNROLLED: u32 = 16;

/// Pointers of a thread to the next elements that it copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointers {
    /// No pointers: loads compute their addresses.
    None,
    /// One pointer for all accesses, which are a fixed distance apart.
    One,
    /// One pointer for each pass over the lines of the tile.
    PerPass,
    /// One pointer for each access.
    PerAccess,
}

/// Elements that are read in place of elements beyond the edge of C. They exist in memory, and
/// results computed from them are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// No tile extends beyond C.
    Exact,
    /// The last row or column is repeated.
    Last,
    /// The last vector of a row is read, which ends where the row ends.
    LastVector,
    /// The last vector that starts inside the row is read; its end may be padding.
    LastStart,
}

impl Edge {
    /// Returns the rule for tiles that extend beyond C. `vectors` is true if vectors are read along
    /// the axis that is clamped.
    pub(super) fn guarded(vectors: bool, pitched: bool) -> Self {
        match (vectors, pitched) {
            (false, _) => Self::Last,
            (true, false) => Self::LastVector,
            (true, true) => Self::LastStart,
        }
    }
}

/// Value stored in a tile for elements past the end of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// None: K is a multiple of the tile's K.
    None,
    PlusZero,
    /// −0. Its product with +0 is −0, which changes no accumulator.
    MinusZero,
}

facts! {
    /// Path of one operand's tiles. A width is the number of elements of a vector, or 1.
    OperandPlan {
        elem: Elem,
        /// Axis that the operand shares with C: M for A, N for B. The operand's other axis is K.
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
        /// Number of shared tiles per K tile: one for each split of a value.
        splits: u32,
        /// Swizzle of the vectors in shared rows.
        swizzle: Option<Swizzle>,
        /// Elements per access to global memory.
        width: u32,
        /// Adjacent elements of a line that a thread copies together: those of one access, or
        /// several that it accesses one by one.
        run: u32,
        /// Elements per store to shared memory.
        store_width: u32,
        /// Elements per read of a fragment from shared memory.
        fragment_width: u32,
        /// Number of runs per thread; a thread may skip its last run.
        runs: u32,
        /// Elements that are read in place of elements beyond the edge of C.
        edge: Edge,
        /// True if a vector may extend past the end of K into padding, which need not be zero.
        straddles: bool,
        /// True if the last vector of a row or column is read whole although it may end in padding.
        overhangs: bool,
    } decided {
        /// Mapping of the block's runs to the tile.
        walk: Walk,
        /// Number of a thread's runs that are unrolled together; `None` for all.
        unroll: Option<u32>,
        pointers: Pointers,
        /// Value stored in the tile for elements past the end of K.
        fill: Fill,
    }
}

/// Facts that determine the plan of an operand.
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
    /// True if a thread's elements of C form whole vectors of adjacent elements.
    pub by_vectors: bool,
    pub asynchronous: bool,
    pub pitched: bool,
    /// Adjacent elements that a thread copies by scalar accesses.
    pub adjacent: u32,
    /// True if tensor cores multiply the tiles.
    pub mma: bool,
    /// Number of splits of a value, if splits are staged. Splits are padded to whole tiles.
    pub splits: Option<u32>,
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

    /// Returns true if a loaded vector can be stored as 16 bytes in a shared row.
    fn stores_vectors(&self) -> bool {
        self.contiguous == self.shared && self.aligned_rows()
    }

    /// Returns true if global memory is read 16 bytes at a time. An asynchronous copy reads and
    /// writes the same number of bytes, so it also needs 16-byte stores.
    fn reads_vectors(&self) -> bool {
        self.global_vectors && (!self.asynchronous || self.stores_vectors())
    }

    /// Returns true if a vector may extend past the end of K: with row strides, K need not be a
    /// multiple of a vector.
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
        let run = width.max(given.adjacent);
        let (lines, line) = if contiguous == free { (depth, extent) } else { (extent, depth) };
        let walk = walk(&given, lines, line, run);
        let runs = (line / run * lines).div_ceil(threads);
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
            splits: given.splits.unwrap_or(1),
            swizzle: (given.swizzle && shared == Axis::K).then(|| exchange(depth, given.lanes())),
            width,
            store_width: width_if(reads_vectors && given.stores_vectors()),
            fragment_width: width_if(fragment),
            run,
            walk,
            runs,
            unroll: match runs.saturating_mul(run / width) > UNROLLED {
                false => decided(None, ""),
                true => {
                    let by = (UNROLLED / 4 / (run / width)).max(1);
                    decided(Some(by), "limits the registers of staged elements")
                }
            },
            pointers: match walk.value {
                _ if !given.asynchronous => {
                    decided(Pointers::None, "loads compute their addresses")
                }
                Walk::Lines { .. } if contiguous == free || given.splits.is_some() => {
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
                Ragged::Nowhere if given.splits.is_some() => {
                    decided(Fill::None, "the splits are padded to whole tiles")
                }
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
            // An asynchronous copy of a vector that extends past the end of K is split into single
            // elements.
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

    /// Number of rows of the shared tile, and number of elements per row including padding.
    pub fn shared_tile(&self) -> (u32, u32) {
        shared_tile(self.free, self.shared, self.extent, self.depth, self.pad)
    }

    /// Returns true if a line of the tile is part of a row of the matrix, false if part of a
    /// column.
    pub fn lines_are_rows(&self) -> bool {
        (self.free == Axis::M) == (self.contiguous == Axis::K)
    }

    /// Elements per line of the tile: its extent along the contiguous axis.
    pub fn line(&self) -> u32 {
        if self.contiguous == self.free { self.extent } else { self.depth }
    }

    /// Number of accesses of a run.
    pub fn accesses_of_run(&self) -> u32 {
        self.run / self.width
    }

    /// Registers of a thread that hold its share of a prefetched tile.
    pub fn staged(&self) -> u32 {
        let bytes = self.runs * self.run * self.elem.size();
        self.splits * bytes.div_ceil(REGISTER_BYTES)
    }
}

/// XOR swizzle for rows of `depth` elements. Consecutive rows share one pattern if together they
/// span all banks once.
fn exchange(depth: u32, lanes: u32) -> Swizzle {
    let vectors = (depth / lanes).max(1).ilog2().min(3) as u8;
    Swizzle { bits: vectors, base: lanes.ilog2() as u8, shift: 3 - vectors }
}

fn shared_tile(free: Axis, shared: Axis, extent: u32, depth: u32, pad: u32) -> (u32, u32) {
    if shared == free { (depth, extent + pad) } else { (extent, depth + pad) }
}

/// Assigns the runs of a block to threads. The tile has `lines` lines of `line` elements, and a run
/// has `run` elements.
fn walk(given: &OperandFacts, lines: u32, line: u32, run: u32) -> Decided<Walk> {
    let OperandFacts { free, contiguous, shared, extent, depth, pad, threads, .. } = *given;
    let step = threads / GROUP;
    if given.asynchronous
        && contiguous != shared
        && run == 1
        && line.is_multiple_of(GROUP)
        && threads.is_multiple_of(GROUP)
        && lines.is_multiple_of(step)
    {
        let (_, row) = shared_tile(free, shared, extent, depth, pad);
        let why = match row % GROUP {
            // Eight shared rows then start at banks that are distinct multiples of 4.
            4 => "each group is a sector, stored without bank conflicts",
            _ => "each group is a sector",
        };
        return decided(Walk::Groups { step, passes: lines / step }, why);
    }
    let per_line = line / run;
    if threads.is_multiple_of(per_line) && lines.is_multiple_of(threads / per_line) {
        return decided(Walk::Lines { step: threads / per_line }, "");
    }
    let total = per_line * lines;
    let exact = total.is_multiple_of(threads);
    decided(Walk::Linear { total, exact }, "whole rows or columns do not divide among the threads")
}
