//! The tile of C of a block, as its threads hold it when all is summed: what those who take it to C, or leave it for
//! another block, know of the kernel.

use super::problem::GemmProblem;
use super::schedule::{BlockProduct, KRanges, Origin};
use super::stream_k::Segment;
use crate::ir::{Const, Expr, KernelBuilder};
use crate::lower::sgemm::shared::elements::Elements;
use crate::lower::tickets;
use crate::plan::{EpiloguePlan, SgemmPlan};

/// The tile of C of a block.
pub(crate) struct AccumulatorTile<'p> {
    pub plan: &'p SgemmPlan,
    pub epilogue: EpiloguePlan,
    pub problem: GemmProblem,
    pub origin: Origin,
    /// Its rows and its columns.
    pub bm: Expr,
    pub bn: Expr,
    /// A thread's elements of it, along the rows and along the columns.
    pub rows: Elements,
    pub cols: Elements,
    /// The number of this thread's part among those of the block, and how many there are.
    pub epilogue_thread: Expr,
    pub epilogue_threads: Expr,
    /// Whether this thread holds a part, where not all do.
    pub in_epilogue: Option<Expr>,
    /// The number of this thread among all of the block, and how many there are.
    pub thread: (Expr, Expr),
    /// Whether this is the first thread of the block.
    pub first_thread: Expr,
    /// The threads that take part in a barrier, where these are not all of the block.
    pub meet: Option<u32>,
}

/// The sums of a block: how many a thread holds, and how many threads hold some.
pub(crate) struct AccumulatorCounts {
    pub places: Expr,
    pub epilogue_threads: Expr,
    /// Whether these are all threads.
    pub by_all: bool,
}

/// The part of its tile that a block sums, where others sum the rest.
pub(crate) enum TileParts {
    /// One of the ranges of K, each of a block.
    Ranges(KRanges),
    /// As much as belongs to an even share.
    Segment(Segment),
}

impl<'p> AccumulatorTile<'p> {
    /// A barrier of all threads that know of the tile.
    pub fn barrier(&self, b: &mut KernelBuilder) {
        tickets::barrier(b, self.meet);
    }

    /// What its threads hold.
    pub fn accumulators(&self) -> AccumulatorCounts {
        let places = self.rows.name * self.cols.name;
        AccumulatorCounts {
            places,
            epilogue_threads: self.epilogue_threads.clone(),
            by_all: self.in_epilogue.is_none(),
        }
    }

    /// A thread's elements, along the rows and along the columns.
    pub fn elements(&self) -> [&Elements; 2] {
        [&self.rows, &self.cols]
    }

    /// Where a thread's sum of its element (m, n) lies in an array of all sums of the block: by the place in a thread,
    /// and of each place thread by thread, so that neighbours write and read neighbours.
    pub fn place(&self, m: &Expr, n: &Expr) -> Expr {
        (m.clone() * self.cols.name + n.clone()) * self.epilogue_threads.clone()
            + self.epilogue_thread.clone()
    }

    /// Does something by the threads that hold parts.
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

/// The threads that hold sums of a product, all products' together.
pub(crate) fn all_epilogue_threads(of_product: Const, part: Option<BlockProduct>) -> Expr {
    match part {
        None => of_product.into(),
        Some(part) => part.products * of_product,
    }
}
