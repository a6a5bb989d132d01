//! Minimum and maximum of two integers, which CUDA has as functions.

use crate::ir::{BinaryOp, Expr, Ty};

/// Names of CUDA's minimum and maximum of two integers.
pub(super) const MIN: &str = "min";
pub(super) const MAX: &str = "max";

/// Returns the name of the minimum or maximum that the selection of two integers computes, if any.
/// Floating-point numbers are excluded, because CUDA's functions differ if an operand is NaN.
pub(super) fn extremum(cond: &Expr, a: &Expr, b: &Expr) -> Option<&'static str> {
    let lower = |a: &Expr, b: &Expr| *cond == Expr::binary(BinaryOp::LT, a.clone(), b.clone());
    if !a.ty().is_index() && a.ty() != Ty::U32 {
        None
    } else if lower(a, b) {
        Some(MIN)
    } else {
        lower(b, a).then_some(MAX)
    }
}
