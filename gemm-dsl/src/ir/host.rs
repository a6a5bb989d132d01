//! Evaluation on the host: constants, extents and grid rules, checked for overflow.

use super::{Arith, BinaryOp, Cmp, ConstDecl, Expr, Integer, Kernel, Logic, UnaryOp};
use thiserror::Error;

/// Values of the integer scalar parameters of one launch, indexed by parameter.
pub type Scalars = [Option<u64>];

/// Why an expression has no value on the host.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    /// The expression reads memory, a variable or a thread coordinate.
    #[error("the expression depends on the thread and has no value on the host")]
    NotUniform,
    /// A scalar parameter has no value.
    #[error("parameter {0} has no value")]
    Unbound(usize),
    /// The value does not fit in 64 bits, or a divisor is zero.
    #[error("the value overflows 64 bits or divides by zero")]
    Overflow,
}

impl Kernel {
    /// The value of an integer or boolean expression over literals, constants and parameters.
    pub fn eval(&self, expr: &Expr, scalars: &Scalars) -> Result<i128, HostError> {
        eval(expr, &self.consts, scalars)
    }

    /// The value of an integer expression over literals and constants.
    pub fn eval_const(&self, expr: &Expr) -> Result<i128, HostError> {
        eval(expr, &self.consts, &[])
    }
}

/// Evaluates with exact integers: a truth value is 0 or 1.
pub(crate) fn eval(
    expr: &Expr,
    consts: &[ConstDecl],
    scalars: &Scalars,
) -> Result<i128, HostError> {
    let go = |e: &Expr| eval(e, consts, scalars);
    Ok(match expr {
        Expr::I32(v) => (*v).into(),
        Expr::U64(v) => (*v).into(),
        Expr::Const(c) => match consts.get(c.id) {
            Some(decl) => go(&decl.value)?,
            None => return Err(HostError::NotUniform),
        },
        Expr::Param(p) => {
            scalars.get(p.param).copied().flatten().ok_or(HostError::Unbound(p.param))?.into()
        }
        Expr::Unary(UnaryOp::Not, e) => i128::from(go(e)? == 0),
        Expr::Unary(UnaryOp::Neg, e) => -go(e)?,
        Expr::Cast(_, e) => go(e)?,
        Expr::Select(c, a, b) => {
            if go(c)? != 0 {
                go(a)?
            } else {
                go(b)?
            }
        }
        Expr::Binary(BinaryOp::Logic(op), a, b) => match (op, go(a)? != 0) {
            (Logic::And, false) => 0,
            (Logic::Or, true) => 1,
            _ => i128::from(go(b)? != 0),
        },
        Expr::Binary(BinaryOp::Cmp(op), a, b) => {
            let (x, y) = (go(a)?, go(b)?);
            i128::from(match op {
                Cmp::Lt => x < y,
                Cmp::Le => x <= y,
                Cmp::Gt => x > y,
                Cmp::Ge => x >= y,
                Cmp::Eq => x == y,
                Cmp::Ne => x != y,
            })
        }
        Expr::Binary(op @ (BinaryOp::Arith(_) | BinaryOp::Integer(_)), a, b) => {
            let (x, y) = (go(a)?, go(b)?);
            let checked = match op {
                BinaryOp::Arith(Arith::Add) => x.checked_add(y),
                BinaryOp::Arith(Arith::Sub) => x.checked_sub(y),
                BinaryOp::Arith(Arith::Mul) => x.checked_mul(y),
                BinaryOp::Arith(Arith::Div) => x.checked_div(y),
                BinaryOp::Integer(Integer::Rem) => x.checked_rem(y),
                BinaryOp::Integer(Integer::Xor) => Some(x ^ y),
                BinaryOp::Integer(Integer::And) => Some(x & y),
                BinaryOp::Integer(Integer::Or) => Some(x | y),
                BinaryOp::Integer(Integer::Shl) => shift(x, y, i128::checked_mul),
                BinaryOp::Integer(Integer::Shr) => shift(x, y, i128::checked_div),
                BinaryOp::Cmp(_) | BinaryOp::Logic(_) => unreachable!("matched above"),
            };
            let value = checked.ok_or(HostError::Overflow)?;
            if value > u64::MAX.into() || value < i64::MIN.into() {
                return Err(HostError::Overflow);
            }
            value
        }
        Expr::U32(v) => (*v).into(),
        Expr::I64(v) => (*v).into(),
        Expr::F32(_)
        | Expr::F64(_)
        | Expr::Bitcast(..)
        | Expr::Var(_)
        | Expr::Special(_)
        | Expr::Load(_)
        | Expr::Call(..)
        | Expr::Apply(..)
        | Expr::Pack(_)
        | Expr::Lane(..) => return Err(HostError::NotUniform),
    })
}

/// `x` times or divided by 2^`y`.
fn shift(x: i128, y: i128, by: impl FnOnce(i128, i128) -> Option<i128>) -> Option<i128> {
    u32::try_from(y).ok().filter(|y| *y < 64).and_then(|y| by(x, 1 << y))
}
