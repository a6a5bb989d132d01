//! Operators that fold values: their identities, and how two values are combined.

use super::literal::number;
use crate::expr::FoldOp;
use crate::ir::{Elem, Expr, Intrinsic};

/// Value of a fold without elements.
pub(super) fn identity(op: FoldOp, elem: Elem) -> Expr {
    match op {
        FoldOp::Sum => none_added(elem),
        FoldOp::Prod => number(elem, 1),
        FoldOp::Max => extreme(elem, false),
        FoldOp::Min => extreme(elem, true),
    }
}

/// Combines two values of a fold. The extrema of integers are a comparison and a selection.
pub(super) fn combined(op: FoldOp, a: Expr, b: Expr) -> Expr {
    match op {
        FoldOp::Sum => a + b,
        FoldOp::Prod => a * b,
        FoldOp::Max if a.ty().is_float() => Expr::Call(Intrinsic::Maximum, vec![a, b]),
        FoldOp::Min if a.ty().is_float() => Expr::Call(Intrinsic::Minimum, vec![a, b]),
        FoldOp::Max => a.clone().lt(b.clone()).select(b, a),
        FoldOp::Min => b.clone().lt(a.clone()).select(b, a),
    }
}

/// Sum of no elements: −0, the identity of IEEE addition.
pub(super) fn none_added(elem: Elem) -> Expr {
    match elem {
        Elem::F32 => Expr::F32(-0.0),
        Elem::F64 => Expr::F64(-0.0),
        elem => number(elem, 0),
    }
}

/// Greatest or smallest value of a type.
pub(super) fn extreme(elem: Elem, greatest: bool) -> Expr {
    match elem {
        Elem::F32 if greatest => Expr::F32(f32::INFINITY),
        Elem::F32 => Expr::F32(f32::NEG_INFINITY),
        Elem::F64 if greatest => Expr::F64(f64::INFINITY),
        Elem::F64 => Expr::F64(f64::NEG_INFINITY),
        Elem::I32 => Expr::I32(if greatest { i32::MAX } else { i32::MIN }),
        Elem::U32 => Expr::U32(if greatest { u32::MAX } else { 0 }),
        Elem::I64 => Expr::I64(if greatest { i64::MAX } else { i64::MIN }),
        Elem::U64 => Expr::U64(if greatest { u64::MAX } else { 0 }),
        other => unreachable!("AccType: no accumulator is a {other}"),
    }
}
