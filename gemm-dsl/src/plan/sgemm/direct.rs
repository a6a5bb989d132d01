//! Geometry of a kernel whose threads compute tiles of C without staging their operands in shared
//! memory. A thread reads each operand element from global memory once for all its elements of C.
//!
//! K is divided into *steps* of one element or one vector. Steps are distributed among *shares*,
//! which accumulate the same elements of C. A share is a slice of the block, or one lane of a slice
//! under `lanes: k`. Share s takes the steps s, s + n, s + 2n and so on, where n is the number of
//! shares. A *round* is the set of steps of all shares whose loads are in flight at once.

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
    /// Reads of one thread from rows of A or columns of B.
    ReadPlan {
        elem: Elem,
        /// Axis that the operand shares with C: M for A, N for B. The operand's other axis is K.
        free: Axis,
        /// Contiguous axis in global memory.
        contiguous: Axis,
        /// Rows (of A) or columns (of B) per thread.
        extent: u32,
        /// Elements per access: a whole vector, or 1.
        width: u32,
        /// Elements that are read in place of elements beyond the edge of C.
        edge: Edge,
        /// True if the last vector of a row or column is read whole although it may end in padding.
        overhangs: bool,
    }
}

impl ReadPlan {
    /// Plans the reads of A (free axis M) or B (free axis N). `vectors` permits 16-byte reads.
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

    /// Conventional name of the operand: A or B.
    pub fn letter(&self) -> char {
        self.free.factor().letter()
    }

    /// Returns true if the operand is K-major.
    pub fn lies_along_k(&self) -> bool {
        self.contiguous == Axis::K
    }

    /// Returns true if a vector covers adjacent rows or columns of C that belong to one thread.
    pub fn has_free_vectors(&self) -> bool {
        self.width > 1 && !self.lies_along_k()
    }
}

facts! {
    /// Geometry of a kernel whose threads compute tiles of C without staging operands in shared
    /// memory.
    DirectPlan {
        /// Number of thread tiles along the rows of a block. A thread tile belongs to one thread,
        /// or under `lanes: k` to the lanes of a warp.
        rows: u32,
        /// Number of thread tiles along the columns of a block.
        cols: u32,
        /// Axis along which consecutive threads are laid out.
        lanes: Lanes,
        /// Rows of C per thread.
        tm: u32,
        /// Columns of C per thread.
        tn: u32,
        /// Number of groups of threads that take the steps of K in turn (sliced-K).
        slices: u32,
        /// Elements of K per step: a whole vector if vectors of a K-major matrix are read, else 1.
        /// The scalar variant has steps of the same length.
        step: u32,
        /// Number of steps of a share whose loads are in flight at once.
        unroll: u32,
        /// Bytes of shared memory, excluding accumulators staged for the epilogue.
        shared: u64,
        a: ReadPlan,
        b: ReadPlan,
        epilogue: EpiloguePlan,
    } decided {
        /// True if the last step of K may be shorter than the others.
        ragged: bool,
    }
}

impl DirectPlan {
    /// Plans one variant of a kernel. The spec's block and thread tiles must be valid.
    pub(super) fn new(spec: &SgemmSpec, variant: Variant) -> Self {
        let (block, thread) = (spec.block_or_default(), spec.thread);
        let vectors = spec.float4 && matches!(variant, Variant::Only | Variant::Vector);
        let a = ReadPlan::new(spec, Axis::M, thread.m, vectors);
        let b = ReadPlan::new(spec, Axis::N, thread.n, vectors);
        let step = step(spec);
        let whole = |read: &ReadPlan| read.lies_along_k() && read.width > 1 && !spec.pitched;
        let ragged = match spec.bounds {
            Bounds::Aligned => decided(false, "K is a multiple of the block's K round"),
            Bounds::Guarded if step == 1 => decided(false, "a step is one element of K"),
            Bounds::Guarded if whole(&a) || whole(&b) => {
                decided(false, "packed K-major rows are read as whole vectors")
            }
            Bounds::Guarded => decided(true, "K is arbitrary"),
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
            BlockSize { threads: epilogue_threads, shared },
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

    /// Number of threads that run the epilogue: one for each thread tile of C.
    pub fn epilogue_threads(&self) -> u32 {
        self.rows * self.cols
    }

    /// Lanes that accumulate the same elements.
    pub fn lanes_of_sum(&self) -> u32 {
        lanes_of_sum(self.lanes)
    }

    /// Number of shares among which K is distributed.
    pub fn shares(&self) -> u32 {
        self.lanes_of_sum() * self.slices
    }

    /// Elements of K that a block processes at once.
    pub fn round(&self) -> u32 {
        self.shares() * self.step * self.unroll
    }

    pub fn threads_of_slice(&self) -> u32 {
        self.epilogue_threads() * self.lanes_of_sum()
    }

    /// Threads per block, at most 1024.
    pub fn threads(&self) -> u32 {
        self.threads_of_slice() * self.slices
    }

    /// Returns true if any access to global memory is 16 bytes wide.
    pub fn has_vectors(&self) -> bool {
        [self.a.width, self.b.width, self.epilogue.width()].iter().any(|width| *width > 1)
    }

    /// Bytes of shared memory per block: partial results of slices, the flag for the last ticket,
    /// and accumulators staged for the epilogue.
    pub fn shared_bytes(&self) -> u64 {
        self.epilogue.shared_bytes(self.shared, self.epilogue_threads(), self.tn)
    }
}

/// Number of lanes that accumulate the same elements of C.
pub(super) fn lanes_of_sum(lanes: Lanes) -> u32 {
    match lanes {
        Lanes::N | Lanes::M => 1,
        Lanes::K => WARP,
    }
}

/// Bytes of shared memory, excluding accumulators staged for the epilogue: the flag for the last
/// ticket, and the partial results of slices. If only some threads have accumulators, the
/// accumulators of all split-K partitions are added.
pub(super) fn shared(spec: &SgemmSpec) -> u128 {
    let (block, thread) = (spec.block_or_default(), spec.thread);
    let factors = [block.rows, block.cols, thread.m, thread.n];
    SharedExtras::of_spec(spec, factors.into_iter().map(u128::from).product()).behind(0)
}

/// Elements of K per step: the longest vector of a K-major matrix under `float4`, else 1.
pub(super) fn step(spec: &SgemmSpec) -> u32 {
    let factors = contiguous_axes(spec).into_iter().zip(Factor::BOTH);
    let along_k = factors.filter(|(axis, _)| spec.float4 && *axis == Axis::K);
    along_k.map(|(_, factor)| spec.types().factor(factor).vector_lanes().into()).max().unwrap_or(1)
}
