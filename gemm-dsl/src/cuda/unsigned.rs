//! Casts for C's unsigned arithmetic in expressions of type `int`.
//!
//! A coordinate declared `unsigned int` makes every expression that contains it unsigned. Sums,
//! differences and products have the same bits either way, so they need no casts. Quotients, order
//! comparisons and widening conversions differ if an operand may be negative. In these, the
//! unsigned operand is cast to `int`.

use super::extremum::extremum;
use crate::ir::{
    Arith, BinaryOp, Change, Cmp, Expr, Integer, Kernel, ParamKind, Source, Stmt, Ty, Var,
};

/// Returns true if the printed text of an `I32` expression has the type `unsigned int`.
pub(super) fn is_unsigned(k: &Kernel, e: &Expr) -> bool {
    match e {
        Expr::Var(var) => k[*var].is_unsigned,
        Expr::Unary(_, e) => is_unsigned(k, e),
        Expr::Binary(BinaryOp::Integer(Integer::Shl | Integer::Shr), a, _) => is_unsigned(k, a),
        Expr::Binary(op @ (BinaryOp::Arith(_) | BinaryOp::Integer(_)), a, b)
            if a.ty() == Ty::I32 =>
        {
            let [left, right] = [a, b].map(|e| is_unsigned(k, e) && !is_cast(k, *op, a, b));
            left || right
        }
        Expr::Select(cond, a, b) => {
            // A minimum or maximum is printed as a call, whose unsigned arguments are cast.
            extremum(cond, a, b).is_none() && (is_unsigned(k, a) || is_unsigned(k, b))
        }
        _ => false,
    }
}

/// Returns true if unsigned operands of this operation must be cast to `int`.
pub(super) fn is_cast(k: &Kernel, op: BinaryOp, a: &Expr, b: &Expr) -> bool {
    let keeps_bits = match op {
        BinaryOp::Arith(Arith::Add | Arith::Sub | Arith::Mul) => true,
        BinaryOp::Arith(Arith::Div) => false,
        BinaryOp::Integer(Integer::Rem) => false,
        // Shifts of negative integers are undefined, so operands are not negative.
        BinaryOp::Integer(_) => true,
        BinaryOp::Cmp(Cmp::Eq | Cmp::Ne) | BinaryOp::Logic(_) => true,
        BinaryOp::Cmp(_) => false,
    };
    a.ty() == Ty::I32 && !keeps_bits && !(is_natural(k, a) && is_natural(k, b))
}

/// Returns true if an `I32` expression is known not to be negative.
pub(super) fn is_natural(k: &Kernel, e: &Expr) -> bool {
    let both = |a, b| is_natural(k, a) && is_natural(k, b);
    match e {
        Expr::I32(value) => *value >= 0,
        Expr::Const(_) => k.eval_const(e).is_ok_and(|value| value >= 0),
        Expr::Special(_) => true,
        Expr::Param(param) => matches!(
            k[*param].kind,
            ParamKind::Scalar { source: Source::Extent(_) | Source::Stride { .. }, .. }
        ),
        Expr::Var(var) => k[*var].is_unsigned || is_natural_variable(k, *var),
        Expr::Binary(BinaryOp::Arith(Arith::Add | Arith::Mul | Arith::Div), a, b) => both(a, b),
        Expr::Binary(BinaryOp::Integer(Integer::Rem), a, _) => is_natural(k, a),
        Expr::Binary(BinaryOp::Integer(_), a, b) => both(a, b),
        Expr::Select(_, a, b) => both(a, b),
        _ => false,
    }
}

/// Returns true if a variable is known not to be negative, because it never changes or only grows.
fn is_natural_variable(k: &Kernel, var: Var) -> bool {
    let mut natural = false;
    k.visit(&mut |stmt| match stmt {
        Stmt::Let { var: declared, value } if declared.id == var.id => {
            natural = is_natural(k, value);
        }
        Stmt::For(l) if l.var.id == var.id => {
            natural = is_natural(k, &l.from)
                && match &l.change {
                    Change::Add(by) | Change::Mul(by) | Change::Div(by) => is_natural(k, by),
                    Change::Sub(_) => false,
                };
        }
        _ => {}
    });
    natural
}
