//! Operators on a single value.

use crate::ir::{Elem, Expr};
use crate::lower::reduce::expressions::{Expressions, UserFold};
use crate::lower::reduce::literal::number;
use crate::plan::Types;
use crate::target::intrinsic::Intrinsic;

/// Operator that combines two values.
pub(super) enum Operator {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
    User(UserFold),
}

impl Operator {
    /// Identity of the operator in the type `elem`.
    pub(super) fn identity(&self, elem: Elem, expressions: &Expressions) -> Expr {
        match self {
            Operator::Sum => none_added(elem),
            Operator::Prod | Operator::All => number(elem, 1),
            Operator::Max => extreme(elem, false),
            Operator::Min => extreme(elem, true),
            Operator::Any => number(elem, 0),
            Operator::User(_) => expressions.identity(),
        }
    }

    pub(super) fn apply(&self, a: Expr, b: Expr) -> Expr {
        match self {
            Operator::Sum => a + b,
            Operator::Prod => a * b,
            Operator::Max if a.ty().is_float() => Expr::Call(Intrinsic::Maximum, vec![a, b]),
            Operator::Min if a.ty().is_float() => Expr::Call(Intrinsic::Minimum, vec![a, b]),
            Operator::Max => a.clone().lt(b.clone()).select(b, a),
            Operator::Min => b.clone().lt(a.clone()).select(b, a),
            Operator::Any => a | b,
            Operator::All => a & b,
            Operator::User(fold) => fold.apply(a, b),
        }
    }

    /// Returns true if combining two values reads each of the two only once. Integer `max` and
    /// `min` compare and then select, which reads a value twice.
    pub(super) fn reads_once(&self, elem: Elem) -> bool {
        elem.is_float() || !matches!(self, Operator::Max | Operator::Min)
    }

    /// Converts the folded value to the accumulator type.
    pub(super) fn value(&self, folded: Expr, types: Types) -> Expr {
        match self {
            Operator::Any | Operator::All => folded,
            _ => folded.bitcast(types.acc),
        }
    }
}

/// Sum of no elements: −0, the identity of IEEE addition.
pub(in crate::lower) fn none_added(elem: Elem) -> Expr {
    match elem {
        Elem::F32 => Expr::F32(-0.0),
        Elem::F64 => Expr::F64(-0.0),
        elem => number(elem, 0),
    }
}

/// Greatest or smallest value of a type.
pub(in crate::lower) fn extreme(elem: Elem, greatest: bool) -> Expr {
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
