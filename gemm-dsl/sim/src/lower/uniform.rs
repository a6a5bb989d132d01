//! Lowering of integers and booleans that are the same in all threads.

use super::super::counters::IrClass;
use super::Lowering;
use crate::lower::code::expr::Uniform;
use crate::scalar::{compare_one, int_one, wide_one};
use gemm_dsl::ir::{BinaryOp, Elem, Expr, Logic, Special, Ty, UnaryOp};

impl Lowering<'_, '_> {
    pub(super) fn uniform(&mut self, expr: &Expr) -> Uniform {
        match expr {
            Expr::I32(v) => Uniform::Static((*v).into()),
            Expr::U64(v) => Uniform::Static(*v as i64),
            Expr::Const(c) => {
                let kernel = self.launch.kernel;
                match kernel.eval_const(expr) {
                    Ok(value) => Uniform::Static(value as i64),
                    // The value wraps or overflows in its type, which exact evaluation does not
                    // model.
                    Err(_) => self.uniform(&kernel[*c].value),
                }
            }
            Expr::Param(p) => {
                let bits = self.launch.scalars[p.param];
                // An `I32` argument may be negative, so its 32 bits are sign-extended.
                Uniform::Known(if p.ty == Ty::I32 { (bits as i32).into() } else { bits as i64 })
            }
            Expr::Var(v) => match self.statics[v.id] {
                Some(value) => Uniform::Static(value),
                None => Uniform::Slot(self.places[v.id]),
            },
            Expr::Special(Special::BlockX) => Uniform::BlockX,
            Expr::Special(Special::BlockY) => Uniform::BlockY,
            Expr::Special(Special::BlockZ) => Uniform::BlockZ,
            Expr::Special(Special::ClusterRank) => Uniform::ClusterRank,
            Expr::Unary(op, e) => self.uniform_unary(*op, e),
            Expr::Cast(to, e) => {
                let from = e.ty();
                let e = self.uniform(e);
                let fits = |v: i64| match to {
                    Elem::I32 => i32::try_from(v as u64).is_ok(),
                    _ => v >= 0,
                };
                match &e {
                    _ if Ty::Scalar(*to) == from => e,
                    Uniform::Static(v) | Uniform::Known(v) if fits(*v) => e,
                    _ if *to == Elem::I32 => Uniform::Narrow(Box::new(e)),
                    _ => Uniform::Widen(Box::new(e)),
                }
            }
            Expr::Select(cond, yes, no) => match self.uniform(cond) {
                Uniform::Static(holds) => self.uniform(if holds != 0 { yes } else { no }),
                cond => {
                    self.cost.add(IrClass::Select);
                    let yes = self.lazily(|s| s.uniform(yes));
                    let no = self.lazily(|s| s.uniform(no));
                    Uniform::Select(Box::new((cond, yes, no)))
                }
            },
            Expr::Binary(BinaryOp::Logic(op), a, b) => {
                let and = *op == Logic::And;
                match self.uniform(a) {
                    Uniform::Static(v) if (v != 0) == and => self.uniform(b),
                    Uniform::Static(v) => Uniform::Static(v),
                    a => {
                        self.cost.add(IrClass::Integer);
                        let b = self.lazily(|s| s.uniform(b));
                        let pair = Box::new((a, b));
                        if and { Uniform::And(pair) } else { Uniform::Or(pair) }
                    }
                }
            }
            Expr::Binary(op, a, b) => self.uniform_binary(*op, a, b),
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
            | Expr::Lane(..) => unreachable!("it differs between threads or is not an index"),
        }
    }

    fn uniform_unary(&mut self, op: UnaryOp, e: &Expr) -> Uniform {
        let e = self.uniform(e);
        let neg = op == UnaryOp::Neg;
        let node = |e| {
            if neg { Uniform::Neg(Box::new(e)) } else { Uniform::Not(Box::new(e)) }
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

    fn uniform_binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Uniform {
        let wide = a.ty() == Ty::U64;
        let operands = [self.uniform(a), self.uniform(b)];
        let compute = |[a, b]: [i64; 2]| match (op, wide) {
            (BinaryOp::Cmp(op), false) => Some(compare_one(op, a, b).into()),
            (BinaryOp::Cmp(op), true) => Some(compare_one(op, a as u64, b as u64).into()),
            (_, false) => int_one(op, a as i32, b as i32).ok().map(i64::from),
            (_, true) => wide_one(op, a as u64, b as u64).ok().map(|v| v as i64),
        };
        self.fold(operands, compute, |operands| {
            let operands = Box::new(operands);
            match wide {
                true => Uniform::U64(op, operands),
                false => Uniform::I32(op, operands),
            }
        })
    }

    /// Builds an operation on uniform values. If the operands are known, it is folded. It costs one
    /// integer instruction unless all operands are static.
    fn fold<const N: usize>(
        &mut self,
        operands: [Uniform; N],
        compute: impl FnOnce([i64; N]) -> Option<i64>,
        node: impl FnOnce([Uniform; N]) -> Uniform,
    ) -> Uniform {
        let mut values = [0; N];
        let (mut all_static, mut known) = (true, true);
        for (value, operand) in values.iter_mut().zip(&operands) {
            match operand {
                Uniform::Static(v) => *value = *v,
                Uniform::Known(v) => {
                    *value = *v;
                    all_static = false;
                }
                _ => known = false,
            }
        }
        let value = known.then(|| compute(values)).flatten();
        match value {
            Some(value) if all_static => return Uniform::Static(value),
            _ => self.cost.add(IrClass::Integer),
        }
        match value {
            Some(value) if !self.launch.compiled => Uniform::Known(value),
            _ => node(operands),
        }
    }
}
