//! Evaluation on the host: constants, extents and grid rules, checked for overflow.

use super::{BinaryOp, ConstDecl, Expr, Kernel, UnaryOp};
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
        Expr::Binary(op, a, b) => {
            let (x, y) = (go(a)?, go(b)?);
            let checked = match op {
                BinaryOp::Add => x.checked_add(y),
                BinaryOp::Sub => x.checked_sub(y),
                BinaryOp::Mul => x.checked_mul(y),
                BinaryOp::Div => x.checked_div(y),
                BinaryOp::Rem => x.checked_rem(y),
                BinaryOp::Xor => Some(x ^ y),
                BinaryOp::BitAnd => Some(x & y),
                BinaryOp::Shl => u32::try_from(y).ok().and_then(|y| x.checked_shl(y)),
                BinaryOp::Shr => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)),
                BinaryOp::Lt => Some((x < y).into()),
                BinaryOp::Le => Some((x <= y).into()),
                BinaryOp::Gt => Some((x > y).into()),
                BinaryOp::Ge => Some((x >= y).into()),
                BinaryOp::Eq => Some((x == y).into()),
                BinaryOp::Ne => Some((x != y).into()),
                BinaryOp::And => Some((x != 0 && y != 0).into()),
                BinaryOp::Or => Some((x != 0 || y != 0).into()),
            };
            let value = checked.ok_or(HostError::Overflow)?;
            if value > u64::MAX.into() || value < i64::MIN.into() {
                return Err(HostError::Overflow);
            }
            value
        }
        Expr::F32(_)
        | Expr::Var(_)
        | Expr::Special(_)
        | Expr::Load(_)
        | Expr::Call(..)
        | Expr::Pack(_)
        | Expr::Lane(..) => return Err(HostError::NotUniform),
    })
}
