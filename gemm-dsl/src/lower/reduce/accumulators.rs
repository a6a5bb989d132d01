//! Accumulators of a thread in a reduction kernel.

use super::fold::{Cell, Fold, LoadedElements};
use super::place::FoldPlace;
use super::reader::Consumer;
use crate::ir::{Access, BufferId, Expr, KernelBuilder, Var};

/// Accumulators of a thread, for each of its results.
pub(super) enum FoldAccumulators {
    /// One result: a variable for each part.
    One(Vec<Var>),
    /// Several columns: a register array for each part.
    Many(Vec<BufferId>),
}

impl FoldAccumulators {
    pub(super) fn new(
        b: &mut KernelBuilder,
        fold: &Fold,
        identity: &[Expr],
        place: &FoldPlace,
    ) -> Self {
        let parts = fold.parts().iter().zip(identity);
        let Some(width) = place.columns().and_then(|columns| columns.width) else {
            let parts = parts.map(|(part, identity)| b.mut_(part.name, identity.clone()));
            return Self::One(parts.collect());
        };
        let arrays = parts.map(|(part, _)| {
            b.registers(part.name, part.elem, [width.into()], "one per column of the thread")
        });
        let kept = Self::Many(arrays.collect());
        kept.reset(b, place, identity);
        kept
    }

    /// Parts of one accumulator; `w` selects one of several columns.
    pub(super) fn cells(&self, w: Option<Expr>) -> Vec<Cell> {
        match (self, w) {
            (Self::One(vars), _) => vars.iter().map(|var| Cell::Var(*var)).collect(),
            (Self::Many(arrays), Some(w)) => {
                arrays.iter().map(|array| Cell::At(Access::new(*array, [w.clone()]))).collect()
            }
            (Self::Many(_), None) => {
                unreachable!("Columns::each: it passes an index if there are several columns")
            }
        }
    }

    /// Resets the accumulators to the identity.
    pub(super) fn reset(&self, b: &mut KernelBuilder, place: &FoldPlace, identity: &[Expr]) {
        place.each(b, |b, w| {
            for (part, identity) in self.cells(w).iter().zip(identity) {
                part.set(b, identity.clone());
            }
        });
    }
}

/// Fold of the elements into a thread's accumulators.
pub(super) struct Folding<'f> {
    pub(super) fold: &'f Fold,
    pub(super) place: &'f FoldPlace,
    pub(super) kept: &'f FoldAccumulators,
}

impl Consumer for Folding<'_> {
    fn begin(&self, b: &mut KernelBuilder, is_there: Expr, first: Expr) {
        self.place.each(b, |b, w| {
            self.fold.begin(b, &self.kept.cells(w), is_there.clone(), first.clone());
        });
    }

    fn absorb(&self, b: &mut KernelBuilder, loaded: &dyn Fn(Option<Expr>) -> LoadedElements) {
        self.place.each(b, |b, w| {
            self.fold.absorb(b, &self.kept.cells(w.clone()), &loaded(w));
        });
    }
}
