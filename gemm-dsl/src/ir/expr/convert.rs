//! Conversions into expressions, and arithmetic operators on them.

use super::{BinaryOp, Expr, Integer, Special};
use crate::ir::{Const, Scalar, Ty, Var};
use std::ops::{Add, BitAnd, BitOr, Div, Mul, Rem, Shl, Shr, Sub};

impl From<i32> for Expr {
    fn from(v: i32) -> Self {
        Expr::I32(v)
    }
}

impl From<u64> for Expr {
    fn from(v: u64) -> Self {
        Expr::U64(v)
    }
}

impl From<f32> for Expr {
    fn from(v: f32) -> Self {
        Expr::F32(v)
    }
}

impl From<Const> for Expr {
    fn from(c: Const) -> Self {
        Expr::Const(c)
    }
}

impl From<Scalar> for Expr {
    fn from(p: Scalar) -> Self {
        Expr::Param(p)
    }
}

impl From<Var> for Expr {
    fn from(v: Var) -> Self {
        Expr::Var(v)
    }
}

impl From<Special> for Expr {
    fn from(s: Special) -> Self {
        Expr::Special(s)
    }
}

/// Arithmetic operators that fold the trivial cases `x + 0`, `x * 1` and `x / 1`. Only integers are
/// folded, because `x + 0.0f` is not always x.
macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident, $a:ident, $b:ident, $fold:expr) => {
        impl<R: Into<Expr>> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                let ($a, $b) = (self, other.into());
                if $a.ty().is_index() && $b.ty().is_index() {
                    let fold: Option<Expr> = $fold;
                    if let Some(folded) = fold {
                        return folded;
                    }
                }
                Expr::binary(BinaryOp::$op, $a, $b)
            }
        }
        operator!(@from $trait, $method, Expr, Var);
        operator!(@on $trait, $method, Var);
        operator!(@on $trait, $method, Const);
        operator!(@on $trait, $method, Scalar);
    };
    (@from $trait:ident, $method:ident, $($handle:ty),*) => {$(
        /// Operator with a literal on the left.
        impl $trait<$handle> for f32 {
            type Output = Expr;
            fn $method(self, other: $handle) -> Expr {
                $trait::$method(Expr::from(self), other)
            }
        }
    )*};
    (@on $trait:ident, $method:ident, $handle:ty) => {
        impl<R: Into<Expr>> $trait<R> for $handle {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                $trait::$method(Expr::from(self), other)
            }
        }
    };
}

/// Returns `kept` in the type of the whole operation, widened if the dropped operand is a `U64`.
fn as_result(kept: &Expr, dropped: &Expr) -> Expr {
    if dropped.ty() == Ty::U64 { kept.clone().wide() } else { kept.clone() }
}

/// Zero in the type of the operator's result.
fn zero(a: &Expr, b: &Expr) -> Expr {
    if a.ty() == Ty::U64 || b.ty() == Ty::U64 { Expr::U64(0) } else { Expr::I32(0) }
}

operator!(Add, add, ADD, a, b, {
    if b.is_int(0) {
        Some(as_result(&a, &b))
    } else if a.is_int(0) {
        Some(as_result(&b, &a))
    } else {
        None
    }
});
operator!(Sub, sub, SUB, a, b, if b.is_int(0) { Some(as_result(&a, &b)) } else { None });
operator!(Mul, mul, MUL, a, b, {
    if b.is_int(1) {
        Some(as_result(&a, &b))
    } else if a.is_int(1) {
        Some(as_result(&b, &a))
    } else if a.is_int(0) || b.is_int(0) {
        Some(zero(&a, &b))
    } else {
        None
    }
});
operator!(Div, div, DIV, a, b, if b.is_int(1) { Some(as_result(&a, &b)) } else { None });
operator!(Rem, rem, REM, a, b, if b.is_int(1) { Some(zero(&a, &b)) } else { None });

/// Bitwise operators on integers; `&&` and `||` are [`Expr::and`] and [`Expr::or`].
macro_rules! of_bits {
    ($($trait:ident, $method:ident, $op:ident;)*) => {$(
        impl<R: Into<Expr>> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                Expr::binary(BinaryOp::Integer(Integer::$op), self, other.into())
            }
        }
        operator!(@on $trait, $method, Var);
    )*};
}

of_bits! {
    BitAnd, bitand, And;
    BitOr, bitor, Or;
    Shl, shl, Shl;
    Shr, shr, Shr;
}
