//! Lowering of integers and truth values that all threads share.

use super::super::code::Scalar;
use super::super::counters::Class;
use super::super::lanes::{compare_scalar, int_scalar, wide_scalar};
use super::Lowering;
use crate::ir::{BinaryOp, Elem, Expr, Logic, Special, Ty, UnaryOp};

impl Lowering<'_, '_> {
    /// An integer or truth value that all threads share.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Scalar {
        match expr {
            Expr::I32(v) => Scalar::Static((*v).into()),
            Expr::U64(v) => Scalar::Static(*v as i64),
            Expr::Const(c) => {
                let kernel = self.launch.kernel;
                let value = kernel.eval_const(expr).ok().and_then(|v| match c.ty {
                    Ty::I32 => i32::try_from(v).ok().map(i64::from),
                    Ty::U64 => u64::try_from(v).ok().map(|v| v as i64),
                    _ => i64::try_from(v).ok(),
                });
                match value {
                    Some(value) => Scalar::Static(value),
                    // Its value wraps or overflows in its own type, which the exact one does not.
                    None => self.scalar(&kernel[*c].value),
                }
            }
            Expr::Param(p) => Scalar::Known(self.launch.scalars[p.param] as i64),
            Expr::Var(v) => match self.statics[v.id] {
                Some(value) => Scalar::Static(value),
                None => Scalar::Slot(self.places[v.id]),
            },
            Expr::Special(Special::BlockX) => Scalar::BlockX,
            Expr::Special(Special::BlockY) => Scalar::BlockY,
            Expr::Special(Special::BlockZ) => Scalar::BlockZ,
            Expr::Unary(op, e) => {
                let e = self.scalar(e);
                let neg = *op == UnaryOp::Neg;
                let node = |e| {
                    if neg { Scalar::Neg(Box::new(e)) } else { Scalar::Not(Box::new(e)) }
                };
                self.fold(
                    [e],
                    |[v]| match neg {
                        true => (v as i32).checked_neg().map(i64::from),
                        false => Some((v == 0).into()),
                    },
                    |[e]| node(e),
                )
            }
            Expr::Cast(to, e) => {
                let from = e.ty();
                let e = self.scalar(e);
                let fits = |v: i64| match to {
                    Elem::I32 => i32::try_from(v as u64).is_ok(),
                    _ => v >= 0,
                };
                match &e {
                    _ if Ty::Scalar(*to) == from => e,
                    Scalar::Static(v) | Scalar::Known(v) if fits(*v) => e,
                    _ if *to == Elem::I32 => Scalar::Narrow(Box::new(e)),
                    _ => Scalar::Widen(Box::new(e)),
                }
            }
            Expr::Select(cond, yes, no) => match self.scalar(cond) {
                Scalar::Static(holds) => self.scalar(if holds != 0 { yes } else { no }),
                cond => {
                    self.cost.add(Class::Select);
                    let yes = self.lazily(|s| s.scalar(yes));
                    let no = self.lazily(|s| s.scalar(no));
                    Scalar::Select(Box::new((cond, yes, no)))
                }
            },
            Expr::Binary(BinaryOp::Logic(op), a, b) => {
                let and = *op == Logic::And;
                match self.scalar(a) {
                    Scalar::Static(v) if (v != 0) == and => self.scalar(b),
                    Scalar::Static(v) => Scalar::Static(v),
                    a => {
                        self.cost.add(Class::Integer);
                        let b = self.lazily(|s| s.scalar(b));
                        let pair = Box::new((a, b));
                        if and { Scalar::And(pair) } else { Scalar::Or(pair) }
                    }
                }
            }
            Expr::Binary(op, a, b) => {
                let (op, wide) = (*op, a.ty() == Ty::U64);
                let operands = [self.scalar(a), self.scalar(b)];
                let compute = |[a, b]: [i64; 2]| match (op, wide) {
                    (BinaryOp::Cmp(op), false) => Some(compare_scalar(op, a, b).into()),
                    (BinaryOp::Cmp(op), true) => {
                        Some(compare_scalar(op, a as u64, b as u64).into())
                    }
                    (_, false) => int_scalar(op, a as i32, b as i32).ok().map(i64::from),
                    (_, true) => wide_scalar(op, a as u64, b as u64).ok().map(|v| v as i64),
                };
                self.fold(operands, compute, |operands| {
                    let operands = Box::new(operands);
                    match wide {
                        true => Scalar::U64(op, operands),
                        false => Scalar::I32(op, operands),
                    }
                })
            }
            Expr::Special(Special::ThreadX | Special::ThreadY)
            | Expr::F32(_)
            | Expr::F64(_)
            | Expr::U32(_)
            | Expr::I64(_)
            | Expr::Bitcast(..)
            | Expr::Load(_)
            | Expr::Call(..)
            | Expr::Apply(..)
            | Expr::Pack(_)
            | Expr::Lane(..) => unreachable!("it differs between threads or is no index"),
        }
    }

    /// An operation on scalars, computed now where its operands are known. It costs one integer
    /// instruction unless they are static.
    fn fold<const N: usize>(
        &mut self,
        operands: [Scalar; N],
        compute: impl FnOnce([i64; N]) -> Option<i64>,
        node: impl FnOnce([Scalar; N]) -> Scalar,
    ) -> Scalar {
        let mut values = [0; N];
        let (mut all_static, mut known) = (true, true);
        for (value, operand) in values.iter_mut().zip(&operands) {
            match operand {
                Scalar::Static(v) => *value = *v,
                Scalar::Known(v) => {
                    *value = *v;
                    all_static = false;
                }
                _ => known = false,
            }
        }
        let value = known.then(|| compute(values)).flatten();
        match value {
            Some(value) if all_static => return Scalar::Static(value),
            _ => self.cost.add(Class::Integer),
        }
        value.map_or_else(|| node(operands), Scalar::Known)
    }
}
