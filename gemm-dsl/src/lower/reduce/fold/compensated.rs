//! Compensated sums: what rounding takes from each is summed beside it, by the error-free sum of two numbers
//! (O. Møller, D. Knuth), as A. Neumaier's sum does.

use super::{Cell, Part, zero};
use crate::intrinsic::Intrinsic;
use crate::ir::{Elem, Expr, KernelBuilder, Ty, Var};
use crate::plan::Types;

pub(super) fn parts(types: Types) -> Vec<Part> {
    let none = if types.acc == Elem::F64 { Expr::F64(-0.0) } else { Expr::F32(-0.0) };
    vec![Part::new("sum", "sums", none), Part::new("error", "errors", zero(types.acc))]
}

/// The sum of two, and what it lacks.
fn two_sum(k: &mut KernelBuilder, a: Expr, b: Expr) -> (Var, Expr) {
    let total = k.let_("total", a.clone() + b.clone());
    let added = k.let_("added", total - a.clone());
    (total, (a - (total - added)) + (b - added))
}

pub(super) fn absorb(k: &mut KernelBuilder, kept: &[Cell], value: Expr) {
    let (total, lacks) = two_sum(k, kept[0].get(), value);
    kept[1].set(k, kept[1].get() + lacks);
    kept[0].set(k, total);
}

pub(super) fn combine(k: &mut KernelBuilder, a: &[Expr], b: &[Expr]) -> Vec<Expr> {
    let (total, lacks) = two_sum(k, a[0].clone(), b[0].clone());
    let error = k.let_("both_errors", (a[1].clone() + b[1].clone()) + lacks);
    vec![total.into(), error.into()]
}

/// The sum with what it lacks, unless that is nothing, which leaves the sign of a zero, or comes of an
/// infinite sum.
pub(super) fn value(all: &[Expr]) -> Expr {
    let (sum, error) = (all[0].clone(), all[1].clone());
    let (zero, infinity) = match error.ty() {
        Ty::F64 => (Expr::F64(0.0), Expr::F64(f64::INFINITY)),
        _ => (Expr::F32(0.0), Expr::F32(f32::INFINITY)),
    };
    let size = Expr::Call(Intrinsic::Abs, vec![error.clone()]);
    let counts = size.clone().gt(zero).and(size.lt(infinity));
    counts.select(sum.clone() + error, sum)
}
