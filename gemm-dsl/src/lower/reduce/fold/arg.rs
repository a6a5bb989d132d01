//! The greatest value, or the smallest, and its index. The first index wins; a NaN is beyond all numbers.

use super::value::extreme;
use super::{Cell, nowhere};
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty};
use crate::plan::Types;

pub(super) struct Arg {
    greatest: bool,
    /// Whether a value is beyond another.
    beyond: FunctionId,
    /// Whether a value with its index comes before another.
    wins: FunctionId,
}

impl Arg {
    pub(super) fn new(k: &mut KernelBuilder, greatest: bool, types: Types) -> Self {
        let (value, index) = (Ty::Scalar(types.acc), Ty::Scalar(types.index));
        let word = if greatest { "greater" } else { "smaller" };
        let nan = if types.acc.is_float() { "; a NaN is beyond all numbers" } else { "" };
        let name = if greatest { "is_greater" } else { "is_smaller" };
        let meaning = format!("Whether a value is {word} than the best{nan}.");
        let beyond = k.function(name, &[&meaning], &[("value", value), ("best", value)], |_, p| {
            let (value, best) = (Expr::from(p[0]), Expr::from(p[1]));
            let is = |a: Expr, b: Expr| if greatest { a.gt(b) } else { a.lt(b) };
            if !types.acc.is_float() {
                return is(value, best);
            }
            // What is not at most the best is beyond it, or a NaN.
            let at_most = if greatest { value.le(best.clone()) } else { value.ge(best.clone()) };
            at_most.negated().and(best.clone().equals(best))
        });
        let meaning = "The same; of equal values that of the lower index.";
        let params = [("value", value), ("at", index), ("best", value), ("best_at", index)];
        let wins = k.function("wins", &[meaning], &params, |_, p| {
            let [value, at, best, best_at] = [p[0], p[1], p[2], p[3]].map(Expr::from);
            let less = beyond.apply([best.clone(), value.clone()]);
            beyond.apply([value, best]).or(less.negated().and(at.lt(best_at)))
        });
        Self { greatest, beyond, wins }
    }

    pub(super) fn identity(&self, part: usize, elem: Elem) -> Expr {
        if part == 0 { extreme(elem, !self.greatest) } else { nowhere(elem) }
    }

    /// The thread's first element has the index to begin with: the first of elements that are all as small
    /// as can be wins too.
    pub(super) fn begin(&self, k: &mut KernelBuilder, at: &Cell, is_there: Expr, first: Expr) {
        k.if_(is_there, |k| at.set(k, first.cast(at.elem())));
    }

    pub(super) fn absorb(&self, k: &mut KernelBuilder, kept: &[Cell], value: Expr, index: Expr) {
        let [best, at] = [&kept[0], &kept[1]];
        k.if_(self.beyond.apply([value.clone(), best.get()]), |k| {
            best.set(k, value);
            at.set(k, index.cast(at.elem()));
        });
    }

    pub(super) fn combine(&self, k: &mut KernelBuilder, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
        let pair = |p: &[Expr]| [p[0].clone(), p[1].clone()];
        let wins = k.let_("other_wins", self.wins.apply(pair(b).into_iter().chain(pair(a))));
        let chosen = |n: usize| Expr::from(wins).select(b[n].clone(), a[n].clone());
        vec![chosen(0), chosen(1)]
    }
}
