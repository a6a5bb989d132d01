//! Operators on a single value.

use crate::expr::FoldOp;
use crate::ir::{Elem, Expr};
use crate::lower::folds;
use crate::lower::literal::number;
use crate::lower::reduce::expressions::{Expressions, UserFold};
use crate::plan::Types;

/// Operator that combines two values.
pub(super) enum Operator {
    Fold(FoldOp),
    Any,
    All,
    User(UserFold),
}

impl Operator {
    /// Identity of the operator in the type `elem`.
    pub(super) fn identity(&self, elem: Elem, expressions: &Expressions) -> Expr {
        match self {
            Operator::Fold(op) => folds::identity(*op, elem),
            Operator::Any => number(elem, 0),
            Operator::All => number(elem, 1),
            Operator::User(_) => expressions.identity(),
        }
    }

    pub(super) fn apply(&self, a: Expr, b: Expr) -> Expr {
        match self {
            Operator::Fold(op) => folds::combined(*op, a, b),
            Operator::Any => a | b,
            Operator::All => a & b,
            Operator::User(fold) => fold.apply(a, b),
        }
    }

    /// Returns true if combining two values reads each of the two only once. Integer `max` and
    /// `min` compare and then select, which reads a value twice.
    pub(super) fn reads_once(&self, elem: Elem) -> bool {
        elem.is_float() || !matches!(self, Operator::Fold(FoldOp::Max | FoldOp::Min))
    }

    /// Converts the folded value to the accumulator type.
    pub(super) fn value(&self, folded: Expr, types: Types) -> Expr {
        match self {
            Operator::Any | Operator::All => folded,
            _ => folded.bitcast(types.acc),
        }
    }
}
