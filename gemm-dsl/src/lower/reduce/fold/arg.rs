//! Greatest or smallest value and its index. Of equal values, the first index wins. NaN wins over
//! all numbers. A selection of values without indices distinguishes the zeros.

use super::Cell;
use crate::ir::{Elem, Expr, FunctionId, KernelBuilder, Ty};
use crate::lower::folds::extreme;
use crate::lower::literal::nowhere;
use crate::plan::Types;

pub(super) struct Arg {
    greatest: bool,
    /// Function that returns true if a value beats the best value.
    beyond: FunctionId,
    /// Function that returns true if a value with its index beats another value with its index;
    /// `None` for values without indices.
    wins: Option<FunctionId>,
}

impl Arg {
    pub(super) fn new(
        b: &mut KernelBuilder,
        greatest: bool,
        types: Types,
        has_index: bool,
    ) -> Self {
        let (value, index) = (Ty::Scalar(types.acc), Ty::Scalar(types.index));
        let word = if greatest { "greater" } else { "smaller" };
        let nan = match (types.acc.is_float(), has_index) {
            (false, _) => "",
            (true, true) => "; NaN beats every number",
            (true, false) => "; NaN beats every number, and -0 is less than +0",
        };
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
            let (a, b) = (value.clone(), best.clone());
            let at_most = if greatest { a.le(b) } else { a.ge(b) };
            let beyond = at_most.negated().and(best.clone().equals(best.clone()));
            if has_index {
                return beyond;
            }
            // Of equal values only the zeros have different bits.
            let bits = if types.acc == Elem::F64 { Elem::I64 } else { Elem::I32 };
            let other_zero = is(value.clone().bitcast(bits), best.clone().bitcast(bits));
            beyond.or(value.equals(best).and(other_zero))
        });
        if !has_index {
            return Self { greatest, beyond, wins: None };
        }
        let meaning = "As above; among equal values, the lower index wins.";
        let params = [("value", value), ("at", index), ("best", value), ("best_at", index)];
        let wins = b.function("wins", &[meaning], &params, |_, p| {
            let [value, at, best, best_at] = [p[0], p[1], p[2], p[3]].map(Expr::from);
            let less = beyond.apply([best.clone(), value.clone()]);
            beyond.apply([value, best]).or(less.negated().and(at.lt(best_at)))
        });
        Self { greatest, beyond, wins: Some(wins) }
    }

    /// Returns true if the value with its index, if there is one, beats the best ones.
    pub(super) fn wins(&self, value: &[Expr], best: &[Expr]) -> Expr {
        let operands = value.iter().chain(best).cloned();
        self.wins.unwrap_or(self.beyond).apply(operands)
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
        let wins = b.let_("other_wins", self.wins(right, left));
        let chosen = |n: usize| Expr::from(wins).select(right[n].clone(), left[n].clone());
        vec![chosen(0), chosen(1)]
    }
}
