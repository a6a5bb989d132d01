//! Folds the accumulators of several threads into one.

mod shuffle;
mod tree;

use super::fold::{Cell, Fold};
use crate::ir::{Access, BufferId, BufferLayout, Const, Expr, KernelBuilder};
use crate::plan::{BlockFold, ReducePlan};

/// Code for the thread that has the folded accumulator. It receives the accumulator.
pub(super) type Done<'d> = &'d mut dyn FnMut(&mut KernelBuilder, Vec<Expr>);

/// Code for a thread that has the folded accumulators of its columns. It receives a function that
/// returns the accumulator of a column.
pub(super) type DoneOf<'d> =
    &'d mut dyn FnMut(&mut KernelBuilder, &dyn Fn(Option<Expr>) -> Vec<Expr>);

/// Threads of a block that fold together.
pub(super) struct Team<'t> {
    pub(super) plan: &'t ReducePlan,
    pub(super) fold: &'t Fold,
    /// Accumulator of a fold without elements.
    pub(super) identity: Vec<Expr>,
    pub(super) block: Const,
    /// Index of the thread in its block.
    pub(super) tid: Expr,
    /// True if the block folds twice: the values of its threads, and the partial results.
    pub(super) folds_twice: bool,
    /// Shared arrays, one for each part; `None` until they are declared.
    pub(super) shared: Option<Vec<BufferId>>,
}

impl Team<'_> {
    /// Folds the accumulators of the block's threads; thread 0 receives the result.
    pub(super) fn by_block(&mut self, b: &mut KernelBuilder, kept: Vec<Expr>, done: Done<'_>) {
        match self.plan.block_fold() {
            BlockFold::Shuffle => self.by_shuffles(b, kept, done),
            BlockFold::Tree => self.by_tree(b, kept, 1, Some(done)),
            BlockFold::UnrolledWarp => {
                self.by_tree(b, kept, 2 * super::WARP, None);
                self.by_last_warp(b, done);
            }
        }
    }

    /// Returns the shared arrays. The first call declares them with these extents, for one value
    /// `per` thread or warp.
    fn shared(&mut self, b: &mut KernelBuilder, dims: &[Expr], per: &str) -> Vec<BufferId> {
        let declare = || {
            let declared = self.fold.parts().iter().map(|part| {
                let layout = BufferLayout::row_major(dims.len());
                let one = match (part.plural, self.fold.is_sum()) {
                    ("indices", _) => "index",
                    ("x" | "sums", true) => "sum",
                    _ => "value",
                };
                let meaning = format!("{one} of each {per}");
                b.shared(part.plural, part.elem, dims.to_vec(), layout, meaning)
            });
            declared.collect()
        };
        self.shared.get_or_insert_with(declare).clone()
    }
}

/// Loads the element at `index` from each array.
pub(super) fn load(arrays: &[BufferId], index: &[Expr]) -> Vec<Expr> {
    arrays.iter().map(|array| Access::new(*array, index.to_vec()).load()).collect()
}

/// Stores each part in its array at `index`.
pub(super) fn store(b: &mut KernelBuilder, arrays: &[BufferId], index: &[Expr], parts: Vec<Expr>) {
    for (array, part) in arrays.iter().zip(parts) {
        b.store(Access::new(*array, index.to_vec()), part);
    }
}

/// Values of an accumulator's parts.
pub(super) fn values(kept: &[Cell]) -> Vec<Expr> {
    kept.iter().map(Cell::get).collect()
}
