//! Block tile of C in the form in which its threads hold it after accumulation. The epilogue and
//! split-K use it.

use super::problem::GemmProblem;
use super::schedule::{BlockProduct, Origin, SplitKPartitions};
use super::stream_k::Segment;
use crate::ir::{Const, Expr, KernelBuilder};
use crate::lower::sgemm::shared::elements::Elements;
use crate::lower::tickets;
use crate::plan::{EpiloguePlan, SgemmPlan};

/// Block tile of C, held by the block's threads.
pub(crate) struct AccumulatorTile<'p> {
    pub plan: &'p SgemmPlan,
    pub epilogue: EpiloguePlan,
    pub problem: GemmProblem,
    pub origin: Origin,
    /// Rows and columns of the tile.
    pub bm: Expr,
    pub bn: Expr,
    /// Elements of this thread along the rows and along the columns.
    pub rows: Elements,
    pub cols: Elements,
    /// Index of this thread among those that hold accumulators, and their number.
    pub epilogue_thread: Expr,
    pub epilogue_threads: Expr,
    /// Condition for threads that hold accumulators; `None` if all threads do.
    pub in_epilogue: Option<Expr>,
    /// Index of this thread in the block, and the number of threads.
    pub thread: (Expr, Expr),
    /// True for the first thread of the block.
    pub first_thread: Expr,
    /// Number of threads that take part in a barrier, if not all threads of the block.
    pub meet: Option<u32>,
}

/// Numbers of accumulators per thread, and of threads that hold accumulators.
pub(crate) struct AccumulatorCounts {
    pub places: Expr,
    pub epilogue_threads: Expr,
    /// True if all threads hold accumulators.
    pub by_all: bool,
}

/// Share of K that a block accumulates for its tile while other blocks accumulate the rest.
pub(crate) enum TileParts {
    /// Split-K partitions, one per block.
    Ranges(SplitKPartitions),
    /// Stream-K segment: the part of the tile in an even share of all K iterations.
    Segment(Segment),
}

impl<'p> AccumulatorTile<'p> {
    /// Emits a barrier for all threads that hold the tile.
    pub fn barrier(&self, b: &mut KernelBuilder) {
        tickets::barrier(b, self.meet);
    }

    /// Numbers of accumulators of the tile.
    pub fn accumulators(&self) -> AccumulatorCounts {
        let places = self.rows.name * self.cols.name;
        AccumulatorCounts {
            places,
            epilogue_threads: self.epilogue_threads.clone(),
            by_all: self.in_epilogue.is_none(),
        }
    }

    /// Elements of this thread along the rows and along the columns.
    pub fn elements(&self) -> [&Elements; 2] {
        [&self.rows, &self.cols]
    }

    /// Index of this thread's element (m, n) in an array of all accumulators of the block. Threads
    /// are the fastest dimension, so that accesses are coalesced.
    pub fn place(&self, m: &Expr, n: &Expr) -> Expr {
        (m.clone() * self.cols.name + n.clone()) * self.epilogue_threads.clone()
            + self.epilogue_thread.clone()
    }

    /// Emits `body` for the threads that hold accumulators.
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

/// Threads that hold accumulators of one GEMM, times the GEMMs of the block.
pub(crate) fn all_epilogue_threads(of_product: Const, part: Option<BlockProduct>) -> Expr {
    match part {
        None => of_product.into(),
        Some(part) => part.products * of_product,
    }
}
