//! The value of an expression of the IR by its own rules: no conversions but the explicit ones.

use crate::c::{Environment, Value};
use crate::trees::coordinate;
use Value::{Bool, I32, U32, U64};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem, Expr, Integer, Kernel, Logic, UnaryOp};

/// The value; none where the rules give none: overflow of an `I32`, division by zero, a shift that
/// is too far, a conversion that would not preserve the value.
pub fn value(kernel: &Kernel, names: &Environment, expr: &Expr) -> Option<Value> {
    let go = |e: &Expr| value(kernel, names, e);
    match expr {
        Expr::I32(v) => Some(I32(*v)),
        Expr::U64(v) => Some(U64(*v)),
        Expr::Const(c) => names.get(&kernel.consts.get(c.id)?.name).copied(),
        Expr::Param(p) => names.get(&kernel.params.get(p.param)?.name).copied(),
        Expr::Var(v) => names.get(&kernel.vars.get(v.id)?.name).copied(),
        Expr::Special(s) => match names.get(coordinate(*s))? {
            U32(v) => i32::try_from(*v).ok().map(I32),
            _ => None,
        },
        Expr::Unary(UnaryOp::Not, e) => match go(e)? {
            Bool(v) => Some(Bool(!v)),
            _ => None,
        },
        Expr::Unary(UnaryOp::Neg, e) => match go(e)? {
            I32(v) => v.checked_neg().map(I32),
            _ => None,
        },
        Expr::Cast(ty, e) => match (ty, go(e)?) {
            (Elem::I32, U64(v)) => i32::try_from(v).ok().map(I32),
            (Elem::U64, I32(v)) => u64::try_from(v).ok().map(U64),
            (_, same) => Some(same),
        },
        Expr::Select(c, a, b) => match go(c)? {
            Bool(true) => go(a),
            Bool(false) => go(b),
            _ => None,
        },
        Expr::Binary(BinaryOp::Logic(op), a, b) => match (op, go(a)?) {
            (Logic::And, Bool(false)) | (Logic::Or, Bool(true)) => go(a),
            _ => go(b),
        },
        Expr::Binary(op, a, b) => binary(*op, go(a)?, go(b)?),
        _ => None,
    }
}

fn binary(op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    use BinaryOp::{Arith as A, Cmp as C, Integer as I};
    let (x, y, unsigned) = match (a, b) {
        (I32(a), I32(b)) => (i128::from(a), i128::from(b), false),
        (U64(a), U64(b)) => (i128::from(a), i128::from(b), true),
        _ => return None,
    };
    let shift = |bits: i128| (0..bits).contains(&y).then_some(y as u32);
    let bits = if unsigned { 64 } else { 32 };
    let result = match op {
        A(Arith::Add) => x + y,
        A(Arith::Sub) => x - y,
        A(Arith::Mul) => x.checked_mul(y)?,
        A(Arith::Div) => x.checked_div(y)?,
        I(Integer::Rem) => x.checked_rem(y)?,
        I(Integer::Xor) => x ^ y,
        I(Integer::And) => x & y,
        I(Integer::Or) => x | y,
        I(Integer::Shl) if x >= 0 => x.checked_mul(1 << shift(bits)?)?,
        I(Integer::Shr) if x >= 0 => x >> shift(bits)?,
        I(Integer::Shl | Integer::Shr) => return None,
        C(op) => {
            return Some(Bool(match op {
                Cmp::Lt => x < y,
                Cmp::Le => x <= y,
                Cmp::Gt => x > y,
                Cmp::Ge => x >= y,
                Cmp::Eq => x == y,
                Cmp::Ne => x != y,
            }));
        }
        BinaryOp::Logic(_) => return None,
    };
    if unsigned { Some(U64(result as u64)) } else { i32::try_from(result).ok().map(I32) }
}
