//! Greatest or smallest value and its index. Of equal values, the first index wins. NaN wins over
//! all numbers.

use super::Cell;
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty};
use crate::lower::folds::extreme;
use crate::lower::literal::nowhere;
use crate::plan::Types;

pub(super) struct Arg {
    greatest: bool,
    /// Function that returns true if a value beats the best value.
    beyond: FunctionId,
    /// Function that returns true if a value with its index beats another value with its index.
    wins: FunctionId,
}

impl Arg {
    pub(super) fn new(b: &mut KernelBuilder, greatest: bool, types: Types) -> Self {
        let (value, index) = (Ty::Scalar(types.acc), Ty::Scalar(types.index));
        let word = if greatest { "greater" } else { "smaller" };
        let nan = if types.acc.is_float() { "; NaN beats every number" } else { "" };
        let name = if greatest { "is_greater" } else { "is_smaller" };
        let meaning = format!("True if a value is {word} than the best so far{nan}.");
        let beyond = b.function(name, &[&meaning], &[("value", value), ("best", value)], |_, p| {
            let (value, best) = (Expr::from(p[0]), Expr::from(p[1]));
            let is =
                |left: Expr, right: Expr| if greatest { left.gt(right) } else { left.lt(right) };
            if !types.acc.is_float() {
                return is(value, best);
            }
            // A value beats the best one unless it is at most the best one; a comparison with NaN
            // is false.
            let at_most = if greatest { value.le(best.clone()) } else { value.ge(best.clone()) };
            at_most.negated().and(best.clone().equals(best))
        });
        let meaning = "As above; among equal values, the lower index wins.";
        let params = [("value", value), ("at", index), ("best", value), ("best_at", index)];
        let wins = b.function("wins", &[meaning], &params, |_, p| {
            let [value, at, best, best_at] = [p[0], p[1], p[2], p[3]].map(Expr::from);
            let less = beyond.apply([best.clone(), value.clone()]);
            beyond.apply([value, best]).or(less.negated().and(at.lt(best_at)))
        });
        Self { greatest, beyond, wins }
    }

    pub(super) fn identity(&self, part: usize, elem: Elem) -> Expr {
        if part == 0 { extreme(elem, !self.greatest) } else { nowhere(elem) }
    }

    /// Starts with the index of the thread's first element. The first index is then also correct if
    /// all elements equal the identity.
    pub(super) fn begin(&self, b: &mut KernelBuilder, at: &Cell, is_there: Expr, first: Expr) {
        b.comment(
            "Start with the index of this thread's first element, which is the result if all \
             elements equal the identity.",
        );
        b.if_(is_there, |b| at.set(b, first.cast(at.elem())));
    }

    pub(super) fn absorb(&self, b: &mut KernelBuilder, kept: &[Cell], value: Expr, index: Expr) {
        let [best, at] = [&kept[0], &kept[1]];
        b.if_(self.beyond.apply([value.clone(), best.get()]), |b| {
            best.set(b, value);
            at.set(b, index.cast(at.elem()));
        });
    }

    pub(super) fn combine(
        &self,
        b: &mut KernelBuilder,
        left: &[Expr],
        right: &[Expr],
    ) -> Vec<Expr> {
        let pair = |p: &[Expr]| [p[0].clone(), p[1].clone()];
        let wins = b.let_("other_wins", self.wins.apply(pair(right).into_iter().chain(pair(left))));
        let chosen = |n: usize| Expr::from(wins).select(right[n].clone(), left[n].clone());
        vec![chosen(0), chosen(1)]
    }
}
