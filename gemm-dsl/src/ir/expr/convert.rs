//! What an expression can be made from, and its operators.

use super::{BinaryOp, Expr, Special};
use crate::ir::{Const, Scalar, Var};
use std::ops::{Add, Div, Mul, Rem, Sub};

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

/// The arithmetic operators fold what a reader would not write: `x + 0`, `x * 1`, `x / 1`. Only on
/// integers: `x + 0.0f` is not the identity of IEEE addition.
macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident, $a:ident, $b:ident, $fold:expr) => {
        impl<R: Into<Expr>> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                let ($a, $b) = (self, other.into());
                if $a.ty().is_integer() && $b.ty().is_integer() {
                    let fold: Option<Expr> = $fold;
                    if let Some(folded) = fold {
                        return folded;
                    }
                }
                Expr::binary(BinaryOp::$op, $a, $b)
            }
        }
        operator!(@on $trait, $method, Var);
        operator!(@on $trait, $method, Const);
        operator!(@on $trait, $method, Scalar);
    };
    (@on $trait:ident, $method:ident, $handle:ty) => {
        impl<R: Into<Expr>> $trait<R> for $handle {
            type Output = Expr;
            fn $method(self, other: R) -> Expr {
                $trait::$method(Expr::from(self), other)
            }
        }
    };
}

operator!(Add, add, Add, a, b, {
    if b.is_int(0) {
        Some(a.clone())
    } else if a.is_int(0) {
        Some(b.clone())
    } else {
        None
    }
});
operator!(Sub, sub, Sub, a, b, if b.is_int(0) { Some(a.clone()) } else { None });
operator!(Mul, mul, Mul, a, b, {
    if b.is_int(1) {
        Some(a.clone())
    } else if a.is_int(1) {
        Some(b.clone())
    } else if a.is_int(0) || b.is_int(0) {
        Some(Expr::I32(0))
    } else {
        None
    }
});
operator!(Div, div, Div, a, b, if b.is_int(1) { Some(a.clone()) } else { None });
operator!(Rem, rem, Rem, a, b, if b.is_int(1) { Some(Expr::I32(0)) } else { None });
