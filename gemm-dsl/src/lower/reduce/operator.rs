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

/// The value that changes no other. Of the sum it is −0: −0 + x is x for every x, −0 included.
pub(super) fn identity(op: Op) -> f32 {
    match op {
        Op::Sum => -0.0,
        Op::Prod => 1.0,
        Op::Max => f32::NEG_INFINITY,
        Op::Min => f32::INFINITY,
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
