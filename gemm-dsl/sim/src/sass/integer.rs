//! Operators on integers and booleans.

use super::Compiler;
use super::cost::{self, SassCost};
use super::operation::Operation;
use crate::sass::polynomial::{Polynomial, ValueId};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Integer};

impl Compiler<'_, '_> {
    /// Combines two booleans. This is free, because `ISETP` takes another predicate as an operand.
    pub(super) fn logic(&mut self, or: bool, a: ValueId, b: ValueId) -> ValueId {
        for (one, other) in [(a, b), (b, a)] {
            if let Some(holds) = self.values.form(one).known() {
                return if (holds != 0) == or { one } else { other };
            }
        }
        let operation = if or { Operation::Or } else { Operation::And };
        self.values.op(operation, &[a, b], SassCost::FREE)
    }

    pub(super) fn select(
        &mut self,
        cond: ValueId,
        yes: ValueId,
        no: ValueId,
        words: u32,
    ) -> ValueId {
        if yes == no {
            return yes;
        }
        self.values.op(Operation::Select, &[cond, yes, no], SassCost::others(words))
    }

    pub(super) fn integer(&mut self, op: BinaryOp, a: ValueId, b: ValueId, wide: bool) -> ValueId {
        let (left, right) = (self.values.form(a), self.values.form(b));
        match op {
            BinaryOp::Arith(Arith::Add) => return self.values.sum(left.add(&right, 1), wide),
            BinaryOp::Arith(Arith::Sub) => return self.values.sum(left.add(&right, -1), wide),
            BinaryOp::Arith(Arith::Mul) => {
                if let Some(product) = left.product(&right) {
                    return self.values.sum(product, wide);
                }
            }
            BinaryOp::Integer(Integer::Shl) => {
                if let Some(by @ 0..=62) = right.known() {
                    return self.values.sum(left.times(1 << by), wide);
                }
            }
            BinaryOp::Cmp(cmp) if left.known().is_none() || right.known().is_none() => {
                return self.comparison(cmp, &left, &right, wide);
            }
            _ => {}
        }
        if let (Some(a), Some(b)) = (left.known(), right.known())
            && let Some(value) = folded(op, a, b)
        {
            return self.constant(value);
        }
        let known = right.known();
        let positive = self.values.is_positive(&left);
        let is_power = known.is_some_and(|by| by > 0 && by & (by - 1) == 0);
        let cost = cost::integer(op, known, wide, positive);
        let mut operands = vec![a, b];
        if op == BinaryOp::Integer(Integer::Rem) && !is_power {
            // Remainder: the dividend minus quotient times divisor.
            let quotient = self.integer(BinaryOp::Arith(Arith::Div), a, b, wide);
            operands.push(quotient);
        }
        let id = self.values.op(Operation::Integer(op, wide), &operands, SassCost::others(cost));
        let masked = match (op, known) {
            (BinaryOp::Integer(Integer::And), Some(mask)) if mask != 0 => {
                1 << mask.trailing_zeros().min(4)
            }
            _ => 1,
        };
        let value = &mut self.values.all[id as usize];
        value.multiple = value.multiple.max(masked);
        value.positive = match op {
            BinaryOp::Integer(Integer::And) => positive || known.is_some_and(|mask| mask >= 0),
            _ => positive,
        };
        id
    }

    /// Compares integers. A constant is an immediate operand. If both sides have non-constant terms
    /// and there is a constant, it is added first.
    fn comparison(
        &mut self,
        cmp: Cmp,
        left: &Polynomial,
        right: &Polynomial,
        wide: bool,
    ) -> ValueId {
        let constant = left.constant.wrapping_sub(right.constant);
        let (left, right) = (left.varying(), right.varying());
        let is_added = constant != 0 && !left.terms.is_empty() && !right.terms.is_empty();
        let [a, b] = [left, right].map(|form| self.values.sum(form, wide));
        let words = if wide { 2 } else { 1 };
        let cost = SassCost::others(words * (1 + u32::from(is_added)));
        let id = self.values.op(Operation::Compare(cmp, constant), &[a, b], cost);
        if cmp == Cmp::Eq {
            self.branches.equal.insert(id, (a, b));
        }
        id
    }
}

/// Value of an operator on constants.
fn folded(op: BinaryOp, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        BinaryOp::Arith(Arith::Div) => a.checked_div(b)?,
        BinaryOp::Integer(Integer::Rem) => a.checked_rem(b)?,
        BinaryOp::Integer(Integer::And) => a & b,
        BinaryOp::Integer(Integer::Or) => a | b,
        BinaryOp::Integer(Integer::Xor) => a ^ b,
        BinaryOp::Integer(Integer::Shr) => a >> u32::try_from(b).ok().filter(|b| *b < 64)?,
        BinaryOp::Cmp(cmp) => i64::from(match cmp {
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
        }),
        _ => return None,
    })
}
