//! The geometry of a kernel that stages nothing and whose threads hold tiles of C: each reads what it multiplies
//! from global memory, once for all its elements.
//!
//! K is dealt out in *steps*, a term or four of them, among the *shares* that sum the same elements: the lanes of a
//! warp under `lanes: k`, in each of the block's slices. Share s takes the steps s, s + shares and so on, and a
//! *round* is as many steps of every share as have their loads under way at once.

pub(super) mod check;

use super::epilogue::EpiloguePlan;
use super::epilogue_staging::BlockSize;
use super::operand::{Axis, Edge, contiguous_axes};
use super::pipeline::Pipeline;
use super::{Decided, decided, facts};
use crate::ir::{Elem, Variant};
use crate::plan::sgemm::shared_memory::SharedExtras;
use crate::spec::{Bounds, Factor, Lanes, SgemmSpec};
use crate::target::arch::WARP;

facts! {
    /// How a thread reads its rows of A, or its columns of B.
    ReadPlan {
        /// What its elements are.
        elem: Elem,
        /// The axis that the operand shares with C: M of A, N of B. Its other axis is K.
        free: Axis,
        /// The axis along which neighbours in memory lie.
        contiguous: Axis,
        /// The rows or columns of a thread.
        extent: u32,
        /// Elements of one access: those of a vector, or 1.
        width: u32,
        /// What is read past the edge of C.
        edge: Edge,
        /// Whether the last vector of a line is read as a whole though it may end in padding.
        overhangs: bool,
    }
}

impl ReadPlan {
    /// Of a spec's A, whose free axis is M, or its B. `vectors` says whether 16 bytes may be read at once.
    fn new(spec: &SgemmSpec, free: Axis, extent: u32, vectors: bool) -> Self {
        let factor = free.factor();
        let contiguous = contiguous_axes(spec)[factor.index()];
        let along_free = contiguous == free;
        let elem = spec.types().factor(factor);
        let lanes = u32::from(elem.vector_lanes());
        let by_vectors = vectors && (!along_free || extent.is_multiple_of(lanes));
        let edge = match spec.bounds {
            Bounds::Aligned => Edge::Exact,
            Bounds::Guarded => Edge::guarded(by_vectors && along_free, spec.pitched),
        };
        let overhangs = edge == Edge::LastStart;
        let width = if by_vectors { lanes } else { 1 };
        Self { elem, free, contiguous, extent, width, edge, overhangs }
    }

    /// The operand's letter in the literature.
    pub fn letter(&self) -> char {
        self.free.factor().letter()
    }

    /// Whether neighbours in memory are terms of one sum.
    pub fn lies_along_k(&self) -> bool {
        self.contiguous == Axis::K
    }

    /// Whether a vector covers adjacent rows or columns of a thread.
    pub fn has_free_vectors(&self) -> bool {
        self.width > 1 && !self.lies_along_k()
    }
}

facts! {
    /// The geometry of a kernel that stages nothing and whose threads hold tiles of C.
    DirectPlan {
        /// Tiles of C along the rows of a block's, each held by a thread or by the lanes of a warp.
        rows: u32,
        /// Such tiles along the columns.
        cols: u32,
        /// The axis along which consecutive threads run.
        lanes: Lanes,
        /// Rows of C of a thread.
        tm: u32,
        /// Columns of C of a thread.
        tn: u32,
        /// Groups of threads that take alternate steps of K.
        slices: u32,
        /// Terms of a step: those of a vector where a matrix that lies along K is read by vectors, also in the
        /// variant that reads single elements; else 1.
        step: u32,
        /// Steps of a share whose loads are under way at once.
        unroll: u32,
        /// Bytes of shared memory, but for sums that wait for the epilogue.
        shared: u64,
        /// How A is read.
        a: ReadPlan,
        /// How B is read.
        b: ReadPlan,
        /// How the sums get into C.
        epilogue: EpiloguePlan,
    } decided {
        /// Whether the last step of a sum may have fewer terms than others.
        ragged: bool,
    }
}

impl DirectPlan {
    /// A variant of a spec whose block and thread are sound.
    pub(super) fn new(spec: &SgemmSpec, variant: Variant) -> Self {
        let (block, thread) = (spec.block_or_default(), spec.thread);
        let vectors = spec.float4 && matches!(variant, Variant::Only | Variant::Vector);
        let a = ReadPlan::new(spec, Axis::M, thread.m, vectors);
        let b = ReadPlan::new(spec, Axis::N, thread.n, vectors);
        let step = step(spec);
        let whole = |read: &ReadPlan| read.lies_along_k() && read.width > 1 && !spec.pitched;
        let ragged = match spec.bounds {
            Bounds::Aligned => decided(false, "K is a multiple of a block's rounds"),
            Bounds::Guarded if step == 1 => decided(false, "a step is one term"),
            Bounds::Guarded if whole(&a) || whole(&b) => decided(
                false,
                "where a packed matrix is read by fours along K, K is a multiple of 4",
            ),
            Bounds::Guarded => decided(true, "K may be any"),
        };
        let (slices, shared) = (spec.slices, shared(spec));
        let stores_vectors =
            vectors && thread.n.is_multiple_of(spec.types().c.vector_lanes().into());
        let epilogue_threads = block.rows * block.cols;
        let epilogue = EpiloguePlan::new(
            spec,
            thread,
            Pipeline::Single,
            stores_vectors,
            BlockSize { threads: epilogue_threads, shared: shared.next_multiple_of(16) },
        );
        Self {
            rows: block.rows,
            cols: block.cols,
            lanes: spec.lanes,
            tm: thread.m,
            tn: thread.n,
            slices,
            step,
            unroll: spec.unroll.unwrap_or(1),
            shared: u64::try_from(shared).unwrap_or(u64::MAX),
            a,
            b,
            epilogue,
            ragged,
        }
    }

    /// Tiles of C of a block, each of which is held by a thread of the first slice.
    pub fn epilogue_threads(&self) -> u32 {
        self.rows * self.cols
    }

    /// Lanes that sum the same elements.
    pub fn lanes_of_sum(&self) -> u32 {
        lanes_of_sum(self.lanes)
    }

    /// The parts in which K is dealt out.
    pub fn shares(&self) -> u32 {
        self.lanes_of_sum() * self.slices
    }

    /// Terms that a block takes at once.
    pub fn round(&self) -> u32 {
        self.shares() * self.step * self.unroll
    }

    /// Threads of a slice.
    pub fn threads_of_slice(&self) -> u32 {
        self.epilogue_threads() * self.lanes_of_sum()
    }

    /// Threads of a block, at most 1024.
    pub fn threads(&self) -> u32 {
        self.threads_of_slice() * self.slices
    }

    /// Whether some access to global memory moves 16 bytes.
    pub fn has_vectors(&self) -> bool {
        [self.a.width, self.b.width, self.epilogue.width()].iter().any(|width| *width > 1)
    }

    /// Bytes of shared memory of a block: what slices hand over, the word that says who has the last ticket, and sums
    /// that wait.
    pub fn shared_bytes(&self) -> u64 {
        self.epilogue.shared_bytes(self.shared, self.epilogue_threads(), self.tn)
    }
}

/// Lanes that sum the same elements.
pub(super) fn lanes_of_sum(lanes: Lanes) -> u32 {
    match lanes {
        Lanes::N | Lanes::M => 1,
        Lanes::K => WARP,
    }
}

/// Bytes of shared memory that a spec asks for, but for sums that wait: the word that says who has the last ticket, the
/// sums of all parts where only some threads hold sums, and those that slices hand over.
pub(super) fn shared(spec: &SgemmSpec) -> u128 {
    let (block, thread) = (spec.block_or_default(), spec.thread);
    let factors = [block.rows, block.cols, thread.m, thread.n];
    SharedExtras::of_spec(spec, factors.into_iter().map(u128::from).product()).behind(0)
}

/// Terms of a step: those of the longest vector of a matrix that lies along K, where it is read by vectors.
pub(super) fn step(spec: &SgemmSpec) -> u32 {
    let factors = contiguous_axes(spec).into_iter().zip(Factor::BOTH);
    let along_k = factors.filter(|(axis, _)| spec.float4 && *axis == Axis::K);
    along_k.map(|(_, factor)| spec.types().factor(factor).vector_lanes().into()).max().unwrap_or(1)
}
