//! The operators of reductions.

use crate::ir::{Expr, Intrinsic};
use crate::spec::Op;

/// `a op b`.
pub(super) fn combine(op: Op, a: Expr, b: Expr) -> Expr {
    match op {
        Op::Sum => a + b,
        Op::Prod => a * b,
        Op::Max => Expr::Call(Intrinsic::Maximum, vec![a, b]),
        Op::Min => Expr::Call(Intrinsic::Minimum, vec![a, b]),
    }
}

pub(super) fn noun(op: Op) -> &'static str {
    match op {
        Op::Sum => "Sum",
        Op::Prod => "Product",
        Op::Max => "Maximum",
        Op::Min => "Minimum",
    }
}

/// The name of the variable in which a thread folds its elements.
pub(super) fn accumulator(op: Op) -> &'static str {
    match op {
        Op::Sum => "sum",
        Op::Prod => "product",
        Op::Max => "largest",
        Op::Min => "smallest",
    }
}
