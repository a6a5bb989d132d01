//! Compensated sums. The rounding errors are computed by the error-free sum of two numbers (O.
//! Møller, D. Knuth) and summed separately, as in A. Neumaier's summation.

use super::Cell;
use crate::ir::{Elem, Expr, KernelBuilder, Ty, Var};
use crate::lower::folds::none_added;
use crate::lower::literal::zero;
use crate::target::intrinsic::Intrinsic;

pub(super) fn identity(part: usize, elem: Elem) -> Expr {
    if part == 0 { none_added(elem) } else { zero(elem) }
}

/// Rounded sum of two numbers, and its rounding error.
fn two_sum(b: &mut KernelBuilder, left: Expr, right: Expr) -> (Var, Expr) {
    let total = b.let_("total", left.clone() + right.clone());
    let added = b.let_("added", total - left.clone());
    (total, (left - (total - added)) + (right - added))
}

pub(super) fn absorb(b: &mut KernelBuilder, kept: &[Cell], value: Expr) {
    let (total, lacks) = two_sum(b, kept[0].get(), value);
    kept[1].set(b, kept[1].get() + lacks);
    kept[0].set(b, total);
}

pub(super) fn combine(b: &mut KernelBuilder, left: &[Expr], right: &[Expr]) -> Vec<Expr> {
    let (total, lacks) = two_sum(b, left[0].clone(), right[0].clone());
    let error = b.let_("both_errors", (left[1].clone() + right[1].clone()) + lacks);
    vec![total.into(), error.into()]
}

/// Returns the sum plus its error. If the error is 0 or NaN, it returns the sum itself, which
/// preserves the sign of a zero. The error is NaN if the sum, or an intermediate difference, is
/// infinite or NaN.
pub(super) fn value(all: &[Expr]) -> Expr {
    let (sum, error) = (all[0].clone(), all[1].clone());
    let zero = match error.ty() {
        Ty::F64 => Expr::F64(0.0),
        _ => Expr::F32(0.0),
    };
    let counts = Expr::Call(Intrinsic::Abs, vec![error.clone()]).gt(zero);
    counts.select(sum.clone() + error, sum)
}
