//! Block tile of C after accumulation, distributed over the block's threads. The epilogue and
//! split-K read it.

use super::problem::GemmProblem;
use super::schedule::{BlockProduct, Origin, SplitKPartitions};
use super::stream_k::Segment;
use crate::ir::{Const, Expr, KernelBuilder};
use crate::lower::sgemm::common::elements::Elements;
use crate::lower::tickets;
use crate::plan::{EpiloguePlan, SgemmPlan};

/// Block tile of C in the accumulators of the block's threads.
pub(crate) struct AccumulatorTile<'p> {
    pub plan: &'p SgemmPlan,
    pub epilogue: EpiloguePlan,
    pub problem: GemmProblem,
    pub origin: Origin,
    /// Number of rows of the tile; `bn` is the number of columns.
    pub bm: Expr,
    pub bn: Expr,
    /// This thread's elements along the rows of C; `cols` are those along the columns.
    pub rows: Elements,
    pub cols: Elements,
    /// Index of this thread among the threads with final accumulators; `epilogue_threads` is their
    /// number.
    pub epilogue_thread: Expr,
    pub epilogue_threads: Expr,
    /// Condition that is true for threads with final accumulators; `None` if all threads have them.
    pub in_epilogue: Option<Expr>,
    /// Index of this thread in the block, and the block's number of threads.
    pub thread: (Expr, Expr),
    /// Condition that is true for the first thread of the block.
    pub first_thread: Expr,
    /// Number of threads that take part in a barrier; `None` for all threads of the block.
    pub meet: Option<u32>,
}

/// Numbers of accumulators per thread, and of threads with final accumulators.
pub(crate) struct AccumulatorCounts {
    pub places: Expr,
    pub epilogue_threads: Expr,
    /// True if all threads have final accumulators.
    pub by_all: bool,
}

/// Part of K that a block accumulates for its tile, if other blocks accumulate the rest.
pub(crate) enum TileParts {
    /// Split-K partitions, one per block.
    Partitions(SplitKPartitions),
    /// Stream-K segment: the part of the tile in an even share of all K iterations.
    Segment(Segment),
}

impl<'p> AccumulatorTile<'p> {
    /// Emits a barrier for all threads that hold parts of the tile.
    pub fn barrier(&self, b: &mut KernelBuilder) {
        tickets::barrier(b, self.meet);
    }

    /// Returns the numbers of accumulators of the tile.
    pub fn accumulators(&self) -> AccumulatorCounts {
        let places = self.rows.name * self.cols.name;
        AccumulatorCounts {
            places,
            epilogue_threads: self.epilogue_threads.clone(),
            by_all: self.in_epilogue.is_none(),
        }
    }

    /// Returns this thread's elements along the rows and along the columns.
    pub fn elements(&self) -> [&Elements; 2] {
        [&self.rows, &self.cols]
    }

    /// Index of this thread's element (m, n) in an array of all accumulators of the block. The
    /// thread index is the fastest dimension, so accesses are coalesced.
    pub fn place(&self, m: &Expr, n: &Expr) -> Expr {
        (m.clone() * self.cols.name + n.clone()) * self.epilogue_threads.clone()
            + self.epilogue_thread.clone()
    }

    /// Emits `body` for the threads that have final accumulators.
    pub fn by_epilogue_threads(
        &self,
        b: &mut KernelBuilder,
        body: impl FnOnce(&mut KernelBuilder),
    ) {
        match &self.in_epilogue {
            None => body(b),
            Some(in_epilogue) => b.if_(in_epilogue.clone(), body),
        }
    }
}

/// Number of threads of the block with final accumulators: those of one GEMM, times the number of
/// GEMMs of the block.
pub(crate) fn all_epilogue_threads(of_product: Const, part: Option<BlockProduct>) -> Expr {
    match part {
        None => of_product.into(),
        Some(part) => part.products * of_product,
    }
}
