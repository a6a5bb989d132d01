//! Operators of folds over rows.

use crate::expr::FoldOp;
use crate::ir::{Elem, Expr, Intrinsic};
use crate::lower::reduce::{extreme, none_added};

/// Value of a fold without elements.
pub(super) fn identity(op: FoldOp, elem: Elem) -> Expr {
    match op {
        FoldOp::Sum => none_added(elem),
        FoldOp::Prod => match elem {
            Elem::F32 => Expr::F32(1.0),
            Elem::F64 => Expr::F64(1.0),
            _ => Expr::I64(1),
        },
        FoldOp::Max => extreme(elem, false),
        FoldOp::Min => extreme(elem, true),
    }
}

/// Combines two values of a fold.
pub(super) fn combined(op: FoldOp, elem: Elem, a: Expr, b: Expr) -> Expr {
    match op {
        FoldOp::Sum => a + b,
        FoldOp::Prod => a * b,
        FoldOp::Max if elem.is_float() => Expr::Call(Intrinsic::Maximum, vec![a, b]),
        FoldOp::Min if elem.is_float() => Expr::Call(Intrinsic::Minimum, vec![a, b]),
        FoldOp::Max => a.max(b),
        FoldOp::Min => a.min(b),
    }
}
