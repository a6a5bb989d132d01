//! What a thread keeps of what it has folded.

use super::fold::{Cell, Fold};
use super::place::Place;
use crate::ir::{Access, BufferId, Expr, KernelBuilder, Var};

/// What a thread keeps, of each of its results.
pub(super) enum Kept {
    /// Of one: a variable for each part.
    One(Vec<Var>),
    /// Of several columns: an array of registers for each part.
    Many(Vec<BufferId>),
}

impl Kept {
    pub(super) fn new(
        b: &mut KernelBuilder,
        fold: &Fold,
        identity: &[Expr],
        place: &Place,
    ) -> Self {
        let parts = fold.parts().iter().zip(identity);
        let Some(width) = place.columns().and_then(|columns| columns.width) else {
            let parts = parts.map(|(part, identity)| b.mut_(part.name, identity.clone()));
            return Self::One(parts.collect());
        };
        let arrays = parts.map(|(part, _)| {
            b.registers(part.name, part.elem, [width.into()], "of each column of the thread")
        });
        let kept = Self::Many(arrays.collect());
        kept.reset(b, place, identity);
        kept
    }

    /// The parts, of one of several columns.
    pub(super) fn of(&self, w: Option<Expr>) -> Vec<Cell> {
        match (self, w) {
            (Self::One(vars), _) => vars.iter().map(|var| Cell::Var(*var)).collect(),
            (Self::Many(arrays), Some(w)) => {
                arrays.iter().map(|array| Cell::At(Access::new(*array, [w.clone()]))).collect()
            }
            (Self::Many(_), None) => unreachable!("there are several columns"),
        }
    }

    /// Keeps what is kept of no elements.
    pub(super) fn reset(&self, b: &mut KernelBuilder, place: &Place, identity: &[Expr]) {
        place.each(b, |b, w| {
            for (part, identity) in self.of(w).iter().zip(identity) {
                part.set(b, identity.clone());
            }
        });
    }
}
