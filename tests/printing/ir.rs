//! The value of an expression of the IR by its own rules: no conversions but the explicit ones.

use crate::c::{Environment, Value};
use crate::trees::coordinate;
use Value::{Bool, I32, U32, U64};
use gemm_dsl::ir::{BinaryOp, Expr, Kernel, Ty, UnaryOp};

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
            (Ty::I32, U64(v)) => i32::try_from(v).ok().map(I32),
            (Ty::U64, I32(v)) => u64::try_from(v).ok().map(U64),
            (_, same) => Some(same),
        },
        Expr::Select(c, a, b) => match go(c)? {
            Bool(true) => go(a),
            Bool(false) => go(b),
            _ => None,
        },
        Expr::Binary(op, a, b) => match (op, go(a)?) {
            (BinaryOp::And, Bool(false)) | (BinaryOp::Or, Bool(true)) => go(a),
            (BinaryOp::And | BinaryOp::Or, _) => go(b),
            (op, a) => binary(*op, a, go(b)?),
        },
        _ => None,
    }
}

fn binary(op: BinaryOp, a: Value, b: Value) -> Option<Value> {
    use BinaryOp::{
        Add, And, BitAnd, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor,
    };
    let (x, y, unsigned) = match (a, b) {
        (I32(a), I32(b)) => (i128::from(a), i128::from(b), false),
        (U64(a), U64(b)) => (i128::from(a), i128::from(b), true),
        _ => return None,
    };
    let shift = |bits: i128| (0..bits).contains(&y).then_some(y as u32);
    let bits = if unsigned { 64 } else { 32 };
    let result = match op {
        Add => x + y,
        Sub => x - y,
        Mul => x.checked_mul(y)?,
        Div => x.checked_div(y)?,
        Rem => x.checked_rem(y)?,
        Xor => x ^ y,
        BitAnd => x & y,
        Shl if x >= 0 => x.checked_mul(1 << shift(bits)?)?,
        Shr if x >= 0 => x >> shift(bits)?,
        Shl | Shr => return None,
        Lt => return Some(Bool(x < y)),
        Le => return Some(Bool(x <= y)),
        Gt => return Some(Bool(x > y)),
        Ge => return Some(Bool(x >= y)),
        Eq => return Some(Bool(x == y)),
        Ne => return Some(Bool(x != y)),
        And | Or => return None,
    };
    if unsigned { Some(U64(result as u64)) } else { i32::try_from(result).ok().map(I32) }
}
