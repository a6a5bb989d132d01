//! How threads make one of what each of them keeps.

mod shuffle;
mod tree;

use super::fold::{Cell, Fold};
use crate::ir::{Access, BufferId, BufferLayout, Const, Expr, KernelBuilder};
use crate::plan::{BlockFold, ReducePlan};

/// What is done with what all threads have kept, by the one that has it.
pub(super) type Done<'d> = &'d mut dyn FnMut(&mut KernelBuilder, Vec<Expr>);

/// The same with the columns of a thread, by the one that has them: what all threads have kept of one of them.
pub(super) type DoneOf<'d> =
    &'d mut dyn FnMut(&mut KernelBuilder, &dyn Fn(Option<Expr>) -> Vec<Expr>);

/// The threads of a block.
pub(super) struct Team<'t> {
    pub(super) plan: &'t ReducePlan,
    pub(super) fold: &'t Fold,
    /// What a thread keeps of no elements.
    pub(super) identity: Vec<Expr>,
    /// How many there are.
    pub(super) block: Const,
    /// The index of the thread in its block.
    pub(super) tid: Expr,
    /// The shared arrays, a part each, once they are declared.
    pub(super) shared: Option<Vec<BufferId>>,
}

impl Team<'_> {
    /// The block folds what its threads keep; the first of them has the result.
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

    /// The shared arrays, with these extents where there are none yet.
    fn shared(
        &mut self,
        b: &mut KernelBuilder,
        dims: &[Expr],
        meaning: &'static str,
    ) -> Vec<BufferId> {
        let declare = || {
            let declared = self.fold.parts().iter().map(|part| {
                let layout = BufferLayout::row_major(dims.len());
                b.shared(part.plural, part.elem, dims.to_vec(), layout, meaning)
            });
            declared.collect()
        };
        self.shared.get_or_insert_with(declare).clone()
    }
}

/// What lies at an index of each array.
pub(super) fn load(arrays: &[BufferId], index: &[Expr]) -> Vec<Expr> {
    arrays.iter().map(|array| Access::new(*array, index.to_vec()).load()).collect()
}

/// Stores each part in its array.
pub(super) fn store(b: &mut KernelBuilder, arrays: &[BufferId], index: &[Expr], parts: Vec<Expr>) {
    for (array, part) in arrays.iter().zip(parts) {
        b.store(Access::new(*array, index.to_vec()), part);
    }
}

/// What a thread keeps, as values.
pub(super) fn values(kept: &[Cell]) -> Vec<Expr> {
    kept.iter().map(Cell::get).collect()
}
