//! Geometry of a kernel without shared-memory staging whose threads hold tiles of C. Each thread
//! reads its operands from global memory once for all its elements.
//!
//! K is divided into *steps* of one element or one vector. Steps are distributed among *shares*
//! that accumulate the same elements: the lanes of a warp under `lanes: k`, in each of the block's
//! slices. Share s takes the steps s, s + shares and so on. A *round* is the number of steps of all
//! shares whose loads are in flight at once.

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
    /// Reads of A's rows or B's columns by one thread.
    ReadPlan {
        elem: Elem,
        /// Axis that the operand shares with C: M for A, N for B. Its other axis is K.
        free: Axis,
        /// Contiguous axis in global memory.
        contiguous: Axis,
        /// Rows (of A) or columns (of B) per thread.
        extent: u32,
        /// Elements per access: a whole vector, or 1.
        width: u32,
        /// Elements that are read beyond the edge of C.
        edge: Edge,
        /// True if the last vector of a line is read whole although it may end in padding.
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

    /// Returns true if a vector covers adjacent rows or columns of a thread.
    pub fn has_free_vectors(&self) -> bool {
        self.width > 1 && !self.lies_along_k()
    }
}

facts! {
    /// Geometry of a kernel without shared-memory staging whose threads hold tiles of C.
    DirectPlan {
        /// Thread tiles along the rows of a block; each is held by one thread, or by the lanes of a
        /// warp under `lanes: k`.
        rows: u32,
        /// Thread tiles along the columns of a block.
        cols: u32,
        /// Axis along which consecutive threads are laid out.
        lanes: Lanes,
        /// Rows of C per thread.
        tm: u32,
        /// Columns of C per thread.
        tn: u32,
        /// Groups of threads that take alternate steps of K (sliced-K).
        slices: u32,
        /// Elements of K per step: a whole vector if a K-major matrix is read by vectors, else 1.
        /// The scalar variant has the same steps.
        step: u32,
        /// Steps of a share whose loads are in flight at once.
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
    /// Plans a variant of a spec whose block and thread tiles are valid.
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

    /// Thread tiles of C per block; each is held by one thread of the first slice.
    pub fn epilogue_threads(&self) -> u32 {
        self.rows * self.cols
    }

    /// Lanes that accumulate the same elements.
    pub fn lanes_of_sum(&self) -> u32 {
        lanes_of_sum(self.lanes)
    }

    /// Shares among which K is distributed.
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

/// Lanes that accumulate the same elements.
pub(super) fn lanes_of_sum(lanes: Lanes) -> u32 {
    match lanes {
        Lanes::N | Lanes::M => 1,
        Lanes::K => WARP,
    }
}

/// Bytes of shared memory, excluding accumulators staged for the epilogue. They hold the flag for
/// the last ticket and the partial results of slices. If only some threads hold accumulators, those
/// of all partitions are added.
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
