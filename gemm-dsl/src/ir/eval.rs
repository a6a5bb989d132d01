//! Evaluation on the host: constants, extents, grid rules and the expressions of a program.
//!
//! This module alone decides which expressions the host can evaluate. [`check`] uses [`on_host`]
//! before arguments are known, and [`eval`] defines the value. A [`HostExpr`](super::HostExpr)
//! computes it at launches. Values are exact: a value that the type cannot represent is an error,
//! even if the type wraps on the device.

use super::{
    Arith, BinaryOp, Cmp, ConstDecl, Elem, Expr, Integer, Kernel, Logic, Scalar, Ty, UnaryOp,
};
use thiserror::Error;

pub type Scalars = [Option<u64>];

/// Reason why the host cannot evaluate an expression.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum HostError {
    #[error("the expression depends on the thread and has no value on the host")]
    NotUniform,
    #[error("parameter {0} has no value")]
    Unbound(usize),
    #[error("the value overflows its type or divides by zero")]
    Overflow,
    /// The value is negative, but its type is unsigned.
    #[error("the value is {0}, but its type is unsigned")]
    Negative(i64),
}

impl Kernel {
    /// Evaluates an integer or boolean expression over literals, constants and parameters. A
    /// [`HostExpr`](super::HostExpr) has the same value at less cost.
    pub fn eval(&self, expr: &Expr, scalars: &Scalars) -> Result<i128, HostError> {
        eval(expr, &self.consts, scalars)
    }

    /// Evaluates an integer expression over literals and constants.
    pub fn eval_const(&self, expr: &Expr) -> Result<i128, HostError> {
        eval(expr, &self.consts, &[])
    }
}

/// Returns true if the host can evaluate an expression once it can evaluate its operands and
/// parameters. This holds for integers and booleans that do not depend on a thread.
fn on_host(expr: &Expr) -> bool {
    match expr {
        Expr::I32(_)
        | Expr::U64(_)
        | Expr::U32(_)
        | Expr::I64(_)
        | Expr::Const(_)
        | Expr::Param(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Select(..)
        | Expr::Cast(..) => is_exact(expr.ty()),
        // Bits of a number that the caller passes.
        Expr::Bitcast(Elem::U32, of) => {
            matches!(**of, Expr::Param(p) if p.ty == Ty::F32)
        }
        Expr::F32(_)
        | Expr::F64(_)
        | Expr::Bitcast(..)
        | Expr::Var(_)
        | Expr::Special(_)
        | Expr::Load(_)
        | Expr::Call(..)
        | Expr::Apply(..)
        | Expr::Pack(_)
        | Expr::Lane(..) => false,
    }
}

/// Returns the type of an expression that the host can evaluate for all arguments without overflow.
/// The expression may contain constants, and parameters for which `known` is true. If it is
/// constant, it must have a value.
pub(crate) fn check(
    expr: &Expr,
    consts: &[ConstDecl],
    known: &impl Fn(Scalar) -> Result<(), String>,
) -> Result<Ty, String> {
    let mut constant = true;
    let mut known = |param| {
        constant = false;
        known(param)
    };
    typed(expr, consts, &mut known)?;
    if constant {
        eval(expr, consts, &[]).map_err(|e| e.to_string())?;
    }
    Ok(expr.ty())
}

/// Evaluates an expression with exact integers. A boolean is 0 or 1.
pub(crate) fn eval(
    expr: &Expr,
    consts: &[ConstDecl],
    scalars: &Scalars,
) -> Result<i128, HostError> {
    HostEvaluator { consts, scalars }.value(expr).map(|(value, _)| value)
}

#[derive(Clone, Copy)]
struct HostEvaluator<'a> {
    consts: &'a [ConstDecl],
    scalars: &'a Scalars,
}

impl HostEvaluator<'_> {
    /// Returns the value and its type. Both are computed together, because every launch evaluates
    /// such expressions and a separate [`Expr::ty`] would traverse each one again.
    fn value(self, expr: &Expr) -> Result<(i128, Ty), HostError> {
        let param = |p: &Scalar| -> Result<i128, HostError> {
            let bits = self.scalars.get(p.param).copied().flatten();
            bits.map(i128::from).ok_or(HostError::Unbound(p.param))
        };
        let (value, ty) = match expr {
            Expr::I32(v) => (Some((*v).into()), Ty::I32),
            Expr::U64(v) => (Some((*v).into()), Ty::U64),
            Expr::U32(v) => (Some((*v).into()), Ty::U32),
            Expr::I64(v) => (Some((*v).into()), Ty::I64),
            Expr::Const(c) => match self.consts.get(c.id) {
                Some(decl) if is_exact(c.ty) => (Some(self.value(&decl.value)?.0), c.ty),
                _ => return Err(HostError::NotUniform),
            },
            Expr::Param(p) if is_exact(p.ty) => (Some(param(p)?), p.ty),
            Expr::Bitcast(Elem::U32, of) => match &**of {
                Expr::Param(p) if p.ty == Ty::F32 => (Some(param(p)?), Ty::U32),
                _ => return Err(HostError::NotUniform),
            },
            Expr::Unary(UnaryOp::Not, e) => (Some(i128::from(self.value(e)?.0 == 0)), Ty::Bool),
            Expr::Unary(UnaryOp::Neg, e) => {
                let (value, ty) = self.value(e)?;
                (Some(-value), ty)
            }
            Expr::Cast(to, e) if is_exact(Ty::Scalar(*to)) => {
                (Some(self.value(e)?.0), Ty::Scalar(*to))
            }
            Expr::Select(c, a, b) => {
                let (value, ty) = self.value(if self.value(c)?.0 != 0 { a } else { b })?;
                (Some(value), ty)
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b)?,
            _ => return Err(HostError::NotUniform),
        };
        Ok((checked(value.ok_or(HostError::Overflow)?, ty)?, ty))
    }

    fn binary(self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<(Option<i128>, Ty), HostError> {
        let (x, ty) = self.value(a)?;
        let y = || self.value(b).map(|(y, _)| y);
        Ok(match op {
            BinaryOp::Logic(op) => {
                let value = match (op, x != 0) {
                    (Logic::And, false) => 0,
                    (Logic::Or, true) => 1,
                    _ => i128::from(y()? != 0),
                };
                (Some(value), Ty::Bool)
            }
            op => (binary(op, x, y()?), if op.is_predicate() { Ty::Bool } else { ty }),
        })
    }
}

/// Result of an operator on two values; `None` if there is none. The connectives have none, because
/// they need not evaluate their second operand.
pub(super) fn binary(op: BinaryOp, x: i128, y: i128) -> Option<i128> {
    if let (Ok(x), Ok(y)) = (u64::try_from(x), u64::try_from(y)) {
        // Most values are extents, and arithmetic on 128 bits takes several times as long.
        let value = match op {
            BinaryOp::Arith(Arith::Mul) => x.checked_mul(y),
            BinaryOp::Arith(Arith::Div) => x.checked_div(y),
            BinaryOp::Integer(Integer::Rem) => x.checked_rem(y),
            _ => None,
        };
        if let Some(value) = value {
            return Some(value.into());
        }
    }
    match op {
        BinaryOp::Arith(op) => match op {
            Arith::Add => x.checked_add(y),
            Arith::Sub => x.checked_sub(y),
            Arith::Mul => x.checked_mul(y),
            Arith::Div => x.checked_div(y),
        },
        BinaryOp::Integer(op) => match op {
            Integer::Rem => x.checked_rem(y),
            Integer::Xor => Some(x ^ y),
            Integer::And => Some(x & y),
            Integer::Or => Some(x | y),
            Integer::Shl => shift(x, y, i128::checked_mul),
            Integer::Shr => shift(x, y, i128::checked_div),
        },
        BinaryOp::Cmp(op) => Some(i128::from(match op {
            Cmp::Lt => x < y,
            Cmp::Le => x <= y,
            Cmp::Gt => x > y,
            Cmp::Ge => x >= y,
            Cmp::Eq => x == y,
            Cmp::Ne => x != y,
        })),
        BinaryOp::Logic(_) => None,
    }
}

/// Returns true for integers and booleans.
fn is_exact(ty: Ty) -> bool {
    matches!(ty, Ty::Bool) || ty.is_integer()
}

/// Checks the typing rules for host expressions.
fn typed(
    expr: &Expr,
    consts: &[ConstDecl],
    known: &mut impl FnMut(Scalar) -> Result<(), String>,
) -> Result<(), String> {
    if !on_host(expr) {
        return Err(HostError::NotUniform.to_string());
    }
    let mut go = |e: &Expr| typed(e, consts, known).map(|()| e.ty());
    let fits = match expr {
        Expr::Param(p) => return known(*p),
        Expr::Bitcast(_, of) => match **of {
            Expr::Param(p) => return known(p),
            _ => unreachable!("on_host: the operand is a parameter"),
        },
        Expr::Const(c) => consts.get(c.id).is_some_and(|decl| decl.ty == c.ty),
        Expr::Unary(op, e) => op.takes(go(e)?),
        Expr::Binary(op, a, b) => op.takes(go(a)?, go(b)?),
        Expr::Select(c, a, b) => (go(c)?, go(a)?) == (Ty::Bool, go(b)?),
        Expr::Cast(to, e) => matches!(go(e)?, Ty::Scalar(from) if from.converts_to(*to)),
        _ => true,
    };
    if fits { Ok(()) } else { Err(format!("the types of {expr:?}")) }
}

/// Returns the value if it fits the type.
pub(super) fn checked(value: i128, ty: Ty) -> Result<i128, HostError> {
    match ty {
        ty if fits(value, ty) => Ok(value),
        Ty::U32 | Ty::U64 if value < 0 => {
            Err(i64::try_from(value).map_or(HostError::Overflow, HostError::Negative))
        }
        _ => Err(HostError::Overflow),
    }
}

fn fits(value: i128, ty: Ty) -> bool {
    match ty {
        Ty::Bool => value == 0 || value == 1,
        Ty::I32 => i32::try_from(value).is_ok(),
        Ty::U32 => u32::try_from(value).is_ok(),
        Ty::I64 => i64::try_from(value).is_ok(),
        Ty::U64 => u64::try_from(value).is_ok(),
        _ => false,
    }
}

/// Returns `by(x, 2^y)`, which is a product or a quotient.
fn shift(x: i128, y: i128, by: impl FnOnce(i128, i128) -> Option<i128>) -> Option<i128> {
    u32::try_from(y).ok().filter(|y| *y < 64).and_then(|y| by(x, 1 << y))
}
