//! The tile of C of a block, as its threads hold it when all is summed: what those who take it to C, or leave it for
//! another block, know of the kernel.

use super::problem::Problem;
use super::schedule::{Origin, Part, Ranges};
use super::stream_k::Segment;
use super::tile::{Elements, Tiled};
use crate::ir::{Const, Expr, KernelBuilder, Var};
use crate::lower::sgemm::shared::split_k::Held;
use crate::lower::tickets;
use crate::plan::{EpiloguePlan, SgemmPlan};

/// The tile of C of a block.
pub(crate) struct BlockTile<'p> {
    pub plan: &'p SgemmPlan,
    pub epilogue: EpiloguePlan,
    pub problem: Problem,
    pub origin: Origin,
    /// Its rows and its columns.
    pub bm: Expr,
    pub bn: Expr,
    /// A thread's elements of it, along the rows and along the columns.
    pub rows: Elements,
    pub cols: Elements,
    /// The number of this thread's part among those of the block, and how many there are.
    pub holder: Expr,
    pub holders: Expr,
    /// Whether this thread holds a part, where not all do.
    pub holds: Option<Expr>,
    /// The number of this thread among all of the block, and how many there are.
    pub thread: (Expr, Expr),
    /// Whether this is the first thread of the block.
    pub first_thread: Expr,
    /// The threads that take part in a barrier, where these are not all of the block.
    pub meet: Option<u32>,
}

/// The part of its tile that a block sums, where others sum the rest.
pub(crate) enum Parts {
    /// One of the ranges of K, each of a block.
    Ranges(Ranges),
    /// As much as belongs to an even share.
    Segment(Segment),
}

impl<'p> BlockTile<'p> {
    /// Of a block that stages its operands: each thread of the first slice holds a part.
    pub fn of(tiled: &Tiled<'p>) -> Self {
        let is_zero = |var: Var| Expr::from(var).equals(0);
        let first_slice = tiled.slices.map(|slices| is_zero(slices.of_block.slice));
        let product = tiled.part.map(|part| is_zero(part.product));
        let first = first_slice.iter().cloned().chain(product);
        Self {
            plan: tiled.plan,
            epilogue: tiled.t.epilogue(),
            problem: tiled.problem,
            origin: tiled.origin,
            bm: tiled.bm.into(),
            bn: tiled.bn.into(),
            rows: tiled.rows,
            cols: tiled.cols,
            holder: match tiled.part {
                None => tiled.holder.into(),
                Some(part) => part.product * tiled.holders + tiled.holder,
            },
            holders: all_holders(tiled.holders, tiled.part),
            thread: match tiled.part {
                None => (tiled.tid.into(), tiled.threads.into()),
                Some(part) => {
                    (part.product * tiled.threads + tiled.tid, part.products * tiled.threads)
                }
            },
            first_thread: first.fold(is_zero(tiled.holder), Expr::and),
            holds: first_slice,
            meet: None,
        }
    }

    /// A barrier of all threads that know of the tile.
    pub fn barrier(&self, b: &mut KernelBuilder) {
        tickets::barrier(b, self.meet);
    }

    /// What its threads hold.
    pub fn held(&self) -> Held {
        let places = self.rows.name * self.cols.name;
        Held { places, holders: self.holders.clone(), by_all: self.holds.is_none() }
    }

    /// A thread's elements, along the rows and along the columns.
    pub fn elements(&self) -> [&Elements; 2] {
        [&self.rows, &self.cols]
    }

    /// Where a thread's sum of its element (m, n) lies in an array of all sums of the block: by the place in a thread,
    /// and of each place thread by thread, so that neighbours write and read neighbours.
    pub fn place(&self, m: &Expr, n: &Expr) -> Expr {
        (m.clone() * self.cols.name + n.clone()) * self.holders.clone() + self.holder.clone()
    }

    /// Does something by the threads that hold parts.
    pub fn by_holders(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder)) {
        match &self.holds {
            None => body(b),
            Some(holds) => b.if_(holds.clone(), body),
        }
    }
}

/// The threads that hold sums of a product, all products' together.
pub(crate) fn all_holders(of_product: Const, part: Option<Part>) -> Expr {
    match part {
        None => of_product.into(),
        Some(part) => part.products * of_product,
    }
}
