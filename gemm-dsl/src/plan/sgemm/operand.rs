//! How the tiles of one operand travel: from global to shared memory, and from there to the
//! registers of a thread.

use super::pipeline::Ragged;
use super::{Decided, decided, facts};
use crate::ir::{Elem, Swizzle};
use crate::spec::{Factor, SgemmSpec};
use std::fmt;

/// An axis of the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The rows of A and C.
    M,
    /// The columns of B and C.
    N,
    /// The axis that is summed over.
    K,
}

impl Axis {
    /// The factor whose free axis it is, which C has too.
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

/// The axes along which neighbours of A and of B lie in memory.
pub(super) fn contiguous_axes(spec: &SgemmSpec) -> [Axis; 2] {
    let a = if spec.layout.transposes_a() { Axis::M } else { Axis::K };
    let b = if spec.layout.transposes_b() { Axis::K } else { Axis::N };
    [a, b]
}

/// The axes along which neighbours lie in their shared tiles: as in memory, but for a matrix that is
/// transposed on its way, whose neighbours then lie along C.
pub(super) fn shared_axes(spec: &SgemmSpec) -> [Axis; 2] {
    let [a, b] = contiguous_axes(spec);
    let lies = |axis, free| if spec.transpose { free } else { axis };
    [lies(a, Axis::M), lies(b, Axis::N)]
}

/// How the accesses of a block cover a tile. Consecutive threads always lie along the axis that is
/// contiguous in global memory; a *line* is the part of the tile along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// The block covers whole lines, this many at a time.
    Lines {
        /// How many.
        step: u32,
    },
    /// Eight threads cover a group of [`GROUP`] adjacent elements of a line. The block covers one
    /// group of `step` lines at a time, all lines of one group before those of the next.
    Groups {
        /// Lines at a time.
        step: u32,
        /// Steps down the tile.
        passes: u32,
    },
    /// Accesses are numbered along the lines and dealt out one by one.
    Linear {
        /// All accesses.
        total: u32,
        /// Whether every thread has as many.
        exact: bool,
    },
}

/// Adjacent elements of a line that eight threads bring in when asynchronous copies transpose: with
/// shared rows of 4 elements more than a multiple of 8, the 8 x 4 elements of a warp then lie on 32
/// distinct banks.
pub const GROUP: u32 = 8;

/// The most accesses that are unrolled into one another.
const UNROLLED: u32 = 16;

/// The pointers to what a thread copies next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointers {
    /// None: loads compute their addresses.
    None,
    /// One for all accesses, which lie a fixed distance apart.
    One,
    /// One for each pass down the tile.
    PerPass,
    /// One for each access.
    PerAccess,
}

/// What is read where a tile reaches past the edge of C: something that exists and whose products
/// are never stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// No tile does.
    Exact,
    /// The last row or column.
    Last,
    /// The last vector, with which a row ends.
    LastVector,
    /// The last vector that starts inside; its end may be padding.
    LastStart,
}

impl Edge {
    /// Where some tile does, by vectors that lie along the edge or not.
    pub(super) fn guarded(vectors: bool, pitched: bool) -> Self {
        match (vectors, pitched) {
            (false, _) => Self::Last,
            (true, false) => Self::LastVector,
            (true, true) => Self::LastStart,
        }
    }
}

/// What stands for the terms past the end of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Nothing: K is a multiple of the tile's.
    None,
    /// +0.
    PlusZero,
    /// −0, whose product with +0 leaves every sum as it is.
    MinusZero,
}

facts! {
    /// How the tiles of one operand travel. All widths are the elements of a vector, or 1.
    OperandPlan {
        /// What its elements are.
        elem: Elem,
        /// The axis that the operand shares with C: M of A, N of B. Its other axis is K.
        free: Axis,
        /// The axis along which neighbours in global memory lie.
        contiguous: Axis,
        /// The axis along which neighbours in its shared tile lie.
        shared: Axis,
        /// Elements of its tile along the free axis.
        extent: u32,
        /// Elements of its tile along K.
        depth: u32,
        /// Unused elements at the end of each shared row.
        pad: u32,
        /// How the vectors of shared rows are exchanged, if they are.
        swizzle: Option<Swizzle>,
        /// Elements of one access to global memory.
        width: u32,
        /// Elements of one store to shared memory.
        store_width: u32,
        /// Elements of one read of a fragment from shared memory.
        fragment_width: u32,
        /// Accesses of one thread, the last maybe idle.
        accesses: u32,
        /// What is read past the edge of C.
        edge: Edge,
        /// Whether a vector may reach past the end of K into padding, which is not zero.
        straddles: bool,
        /// Whether the last vector of a row is read as a whole though it may end in padding.
        overhangs: bool,
    } decided {
        /// How the accesses of the block cover the tile.
        walk: Walk,
        /// How many of a thread's accesses are unrolled into one another; `None` for all.
        unroll: Option<u32>,
        /// The pointers of asynchronous copies.
        pointers: Pointers,
        /// What stands for the terms past the end of K.
        fill: Fill,
    }
}

/// Facts from which the plan of an operand follows.
#[derive(Clone, Copy)]
pub(super) struct OperandFacts {
    pub elem: Elem,
    pub free: Axis,
    pub contiguous: Axis,
    pub shared: Axis,
    pub extent: u32,
    pub depth: u32,
    pub pad: u32,
    /// Whether the vectors of rows along K are exchanged.
    pub swizzle: bool,
    pub threads: u32,
    /// Whether 16 bytes are moved at once where the layout allows, in shared memory.
    pub shared_vectors: bool,
    /// The same in global memory.
    pub global_vectors: bool,
    /// Whether the elements of a thread are adjacent by vectors.
    pub by_vectors: bool,
    pub asynchronous: bool,
    pub pitched: bool,
    /// Whether tensor cores multiply.
    pub mma: bool,
}

impl OperandFacts {
    /// Elements of a vector.
    fn lanes(&self) -> u32 {
        self.elem.vector_lanes().into()
    }

    fn aligned_rows(&self) -> bool {
        let (_, row) = shared_tile(self.free, self.shared, self.extent, self.depth, self.pad);
        row.is_multiple_of(self.lanes())
    }

    /// Whether a store of 16 bytes, which lies along a shared row, can hold what was read.
    fn stores_vectors(&self) -> bool {
        self.contiguous == self.shared && self.aligned_rows()
    }

    /// Whether global memory is read 16 bytes at a time. An asynchronous copy is as wide at its
    /// target as at its source.
    fn reads_vectors(&self) -> bool {
        self.global_vectors && (!self.asynchronous || self.stores_vectors())
    }

    /// Whether a vector may reach past the end of K: a pitched row is of any length.
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
                true => {
                    decided(Some(UNROLLED / 4), "a long run need not be in registers all at once")
                }
            },
            pointers: match walk.value {
                _ if !given.asynchronous => decided(Pointers::None, "loads compute addresses"),
                Walk::Lines { .. } if contiguous == free => {
                    decided(Pointers::One, "lines lie a fixed distance apart")
                }
                Walk::Groups { .. } => {
                    decided(Pointers::PerPass, "groups of a line lie a fixed distance apart")
                }
                Walk::Lines { .. } if guarded => {
                    decided(Pointers::PerAccess, "each line stops at the edge of C by itself")
                }
                Walk::Lines { .. } => decided(
                    Pointers::PerAccess,
                    "as with guards, where each line stops at the edge of C",
                ),
                Walk::Linear { .. } => {
                    decided(Pointers::PerAccess, "accesses are dealt out one by one")
                }
            },
            edge: match guarded {
                false => Edge::Exact,
                true => Edge::guarded(reads_vectors && contiguous == free, given.pitched),
            },
            fill: match ragged {
                Ragged::Nowhere => decided(Fill::None, "K is a multiple of the tile's"),
                _ if given.mma => decided(Fill::PlusZero, "a matrix instruction sums no zeros"),
                Ragged::First if given.asynchronous => {
                    decided(Fill::PlusZero, "a copy fills with no other; it comes before the terms")
                }
                Ragged::First | Ragged::Last if free == Axis::M => {
                    decided(Fill::MinusZero, "its product with +0 changes no sum, no zero's sign")
                }
                Ragged::First | Ragged::Last => {
                    decided(Fill::PlusZero, "its product with -0 changes no sum, no zero's sign")
                }
            },
            straddles,
            // Where an asynchronous copy would straddle, it is split into elements.
            overhangs: guarded
                && given.pitched
                && reads_vectors
                && !(straddles && given.asynchronous),
        }
    }

    /// The operand's letter in the literature.
    pub fn letter(&self) -> char {
        self.free.factor().letter()
    }

    /// Rows of the shared tile and the elements of each, padding included.
    pub fn shared_tile(&self) -> (u32, u32) {
        shared_tile(self.free, self.shared, self.extent, self.depth, self.pad)
    }

    /// Whether a line is a row of the matrix that is multiplied; else it is a column.
    pub fn lines_are_rows(&self) -> bool {
        (self.free == Axis::M) == (self.contiguous == Axis::K)
    }

    /// Elements of a line of the tile: its extent along the contiguous axis.
    pub fn line(&self) -> u32 {
        if self.contiguous == self.free { self.extent } else { self.depth }
    }

    /// Registers of a thread in which its share of a tile waits.
    pub fn staged(&self) -> u32 {
        self.accesses * self.width
    }
}

/// How rows of so many elements exchange their vectors: as many rows as lie on all banks once do so alike.
fn exchange(depth: u32, lanes: u32) -> Swizzle {
    let vectors = (depth / lanes).max(1).ilog2().min(3) as u8;
    Swizzle { bits: vectors, base: lanes.ilog2() as u8, shift: 3 - vectors }
}

fn shared_tile(free: Axis, shared: Axis, extent: u32, depth: u32, pad: u32) -> (u32, u32) {
    if shared == free { (depth, extent + pad) } else { (extent, depth + pad) }
}

/// How a block covers `lines` of `line` elements by accesses of `width`.
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
            // Eight shared rows then start on all multiples of 4 among the banks.
            4 => "a sector of a line each; transposed to distinct banks",
            _ => "a sector of a line each",
        };
        return decided(Walk::Groups { step, passes: lines / step }, why);
    }
    let per_line = line / width;
    if threads.is_multiple_of(per_line) && lines.is_multiple_of(threads / per_line) {
        return decided(Walk::Lines { step: threads / per_line }, "");
    }
    let total = per_line * lines;
    let exact = total.is_multiple_of(threads);
    decided(Walk::Linear { total, exact }, "whole lines do not divide among the threads")
}
