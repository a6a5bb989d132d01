//! Values of expressions in the lowered code.

use super::Compiler;
use super::cost::{self, SassClass, SassCost};
use super::operation::{Operation, Special, Width};
use crate::lower::code::expr::{
    Apply, Choice, Convert, Datum, Index, Lane, Number, Pred, Uniform, Vector, Wide,
};
use crate::lower::code::{Slot, SlotKind};
use crate::region::{THREAD_X, THREAD_Y};
use crate::sass::polynomial::{Polynomial, ValueId};
use gemm_dsl::ir::{Arith, BinaryOp};
use std::collections::HashMap;

/// Cost of a floating-point operation.
const FLOAT: SassCost = SassCost::others(1);

impl Compiler<'_, '_> {
    pub(super) fn constant(&mut self, value: i64) -> ValueId {
        let id = self.values.op(Operation::Constant(value), &[], SassCost::FREE);
        self.values.all[id as usize].form = Some(Polynomial::constant(value));
        id
    }

    /// Value of an uninitialised variable. It is not a constant, so the analysis folds nothing with
    /// it.
    pub(super) fn undefined(&mut self, slot: Slot) -> ValueId {
        self.values.op(Operation::Undefined(slot), &[], SassCost::FREE)
    }

    /// Value that is in a special register or in the constant bank.
    fn special(&mut self, operation: Operation) -> ValueId {
        let id = self.values.op(operation, &[], SassCost::others(1));
        self.values.all[id as usize].positive = true;
        id
    }

    pub(super) fn uniform(&mut self, value: &Uniform) -> ValueId {
        match value {
            Uniform::Static(value) => self.constant(*value),
            Uniform::Known(value) => self.special(Operation::Parameter(*value)),
            Uniform::Slot(slot) => self.read(Slot { kind: SlotKind::Uniform, at: *slot }),
            Uniform::BlockX => self.special(Operation::Special(Special::Block(0))),
            Uniform::BlockY => self.special(Operation::Special(Special::Block(1))),
            Uniform::BlockZ => self.special(Operation::Special(Special::Block(2))),
            Uniform::ClusterRank => self.special(Operation::Special(Special::ClusterRank)),
            Uniform::Neg(value) => {
                let value = self.uniform(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, false)
            }
            Uniform::Not(value) => {
                let value = self.uniform(value);
                self.values.op(Operation::Not, &[value], SassCost::FREE)
            }
            Uniform::I32(op, operands) | Uniform::U64(op, operands) => {
                let wide = matches!(value, Uniform::U64(..));
                let [a, b] = [self.uniform(&operands[0]), self.uniform(&operands[1])];
                self.integer(*op, a, b, wide)
            }
            Uniform::And(pair) | Uniform::Or(pair) => {
                let (a, b) = (self.uniform(&pair.0), self.uniform(&pair.1.value));
                let or = matches!(value, Uniform::Or(_));
                self.logic(or, a, b)
            }
            Uniform::Select(choice) => {
                let cond = self.uniform(&choice.0);
                let (yes, no) = (self.uniform(&choice.1.value), self.uniform(&choice.2.value));
                self.select(cond, yes, no, 1)
            }
            // The address computation that uses the value includes its extension.
            Uniform::Narrow(value) | Uniform::Widen(value) => self.uniform(value),
        }
    }

    pub(super) fn lane(&mut self, value: &Lane) -> ValueId {
        match value {
            Lane::Uniform(value) => self.uniform(value),
            Lane::Bits(bits) => self.constant((*bits).into()),
            Lane::Slot(THREAD_X) => self.special(Operation::Special(Special::Thread(0))),
            Lane::Slot(THREAD_Y) => self.special(Operation::Special(Special::Thread(1))),
            Lane::Slot(slot) | Lane::Element(slot) => {
                self.read(Slot { kind: SlotKind::Lane, at: *slot })
            }
            Lane::Register(memory) => self.local(memory),
            Lane::Load(memory) => self.load(memory),
            Lane::Neg(value) => {
                let value = self.lane(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, false)
            }
            // Negation is a flag of an operand.
            Lane::NegFloat(value) => {
                let value = self.lane(value);
                self.values.op(Operation::Negative, &[value], SassCost::FREE)
            }
            Lane::I32(op, operands) | Lane::U32(op, operands) => {
                let [a, b] = [self.lane(&operands[0]), self.lane(&operands[1])];
                self.integer(*op, a, b, false)
            }
            Lane::F32(op, operands) => {
                let operands = [self.lane(&operands[0]), self.lane(&operands[1])];
                let is_one = self.values.form(operands[0]).known() == Some(1f32.to_bits().into());
                let cost = match op {
                    Arith::Div if is_one => cost::RECIPROCAL,
                    Arith::Div => cost::FLOAT_DIVISION,
                    _ => FLOAT,
                };
                self.values.op(Operation::Float(*op, Width::Word), &operands, cost)
            }
            Lane::Select(choice) => self.choice(choice, Self::lane, 1),
            Lane::Narrow(value) => self.wide(value),
            Lane::Convert(convert) => self.convert(convert),
            Lane::Fma(operands) => {
                let operands = operands.each_ref().map(|operand| self.lane(operand));
                self.values.op(Operation::Fma, &operands, SassCost::one(SassClass::Ffma))
            }
            Lane::Function(function, operands) => {
                let operands: Vec<ValueId> =
                    operands.iter().map(|operand| self.lane(operand)).collect();
                self.values.op(Operation::Function(*function as usize), &operands, FLOAT)
            }
            Lane::Apply(apply) => self.apply(apply),
            Lane::Local(slot) => self.own(SlotKind::Lane, *slot),
            Lane::Shuffle(_, _, operands) => {
                let operands = vec![self.lane(&operands[0]), self.lane(&operands[1])];
                self.values.fresh(operands, SassCost::one(SassClass::Shuffle))
            }
            // `REDUX`, and a move from the uniform register with its result.
            Lane::OrOfLanes(_, operand) => {
                let operand = self.lane(operand);
                self.values.fresh(vec![operand], SassCost::others(2))
            }
            // `VOTE`.
            Lane::Ballot(_, operand) => {
                let operand = self.pred(operand);
                self.values.fresh(vec![operand], SassCost::others(1))
            }
            // `POPC`.
            Lane::CountOnes(operand) => {
                let operand = self.lane(operand);
                self.values.op(Operation::CountOnes, &[operand], SassCost::others(1))
            }
            Lane::Pack(elem, operands) => {
                let operands = [self.lane(&operands[0]), self.lane(&operands[1])];
                self.values.op(Operation::Pack(*elem), &operands, FLOAT)
            }
            Lane::Part(vector, elem, at) => {
                let vector = self.vector(vector);
                let cost = SassCost::others(u32::from(elem.size() < 4));
                self.part(vector, u32::from(*at), cost)
            }
        }
    }

    pub(super) fn part(&mut self, vector: ValueId, at: u32, cost: SassCost) -> ValueId {
        self.values.op(Operation::Part(at), &[vector], cost)
    }

    pub(super) fn wide(&mut self, value: &Wide) -> ValueId {
        match value {
            Wide::Uniform(value) => self.uniform(value),
            Wide::Bits(bits) => self.constant(*bits as i64),
            Wide::Slot(slot) => self.read(Slot { kind: SlotKind::Wide, at: *slot }),
            Wide::Element(slot) => self.read(Slot { kind: SlotKind::Lane, at: *slot }),
            Wide::Register(memory) => self.local(memory),
            Wide::Load(memory) => self.load(memory),
            Wide::Neg(value) => {
                let value = self.wide(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, true)
            }
            Wide::NegFloat(value) => {
                let value = self.wide(value);
                self.values.op(Operation::Negative, &[value], SassCost::FREE)
            }
            Wide::U64(op, operands) | Wide::I64(op, operands) => {
                let [a, b] = [self.wide(&operands[0]), self.wide(&operands[1])];
                self.integer(*op, a, b, true)
            }
            Wide::F64(op, operands) => {
                let operands = [self.wide(&operands[0]), self.wide(&operands[1])];
                let cost = if *op == Arith::Div { SassCost::others(10) } else { FLOAT };
                self.values.op(Operation::Float(*op, Width::Double), &operands, cost)
            }
            Wide::Select(choice) => self.choice(choice, Self::wide, 2),
            Wide::Widen(value) => self.lane(value),
            Wide::Convert(convert) => self.convert(convert),
            Wide::Function(function, operands) => {
                let operands: Vec<ValueId> =
                    operands.iter().map(|operand| self.wide(operand)).collect();
                self.values.op(Operation::Function(*function as usize), &operands, FLOAT)
            }
            Wide::Apply(apply) => self.apply(apply),
            Wide::Local(slot) => self.own(SlotKind::Wide, *slot),
            Wide::Shuffle(_, _, operands) => {
                let operands = vec![self.wide(&operands.0), self.lane(&operands.1)];
                let cost = SassCost { class: SassClass::Shuffle, count: 2, others: 0 };
                self.values.fresh(operands, cost)
            }
            Wide::Part(vector, at) => {
                let vector = self.vector(vector);
                self.part(vector, u32::from(*at), SassCost::FREE)
            }
        }
    }

    pub(super) fn pred(&mut self, value: &Pred) -> ValueId {
        match value {
            Pred::Uniform(value) => self.uniform(value),
            Pred::Slot(slot) => self.read(Slot { kind: SlotKind::Pred, at: *slot }),
            Pred::I32(cmp, operands) | Pred::U32(cmp, operands) => {
                let [a, b] = [self.lane(&operands[0]), self.lane(&operands[1])];
                self.integer(BinaryOp::Cmp(*cmp), a, b, false)
            }
            Pred::U64(cmp, operands) | Pred::I64(cmp, operands) => {
                let [a, b] = [self.wide(&operands[0]), self.wide(&operands[1])];
                self.integer(BinaryOp::Cmp(*cmp), a, b, true)
            }
            Pred::F32(cmp, operands) => {
                let operands = [self.lane(&operands[0]), self.lane(&operands[1])];
                self.values.op(Operation::CompareFloats(*cmp), &operands, FLOAT)
            }
            Pred::F64(cmp, operands) => {
                let operands = [self.wide(&operands[0]), self.wide(&operands[1])];
                self.values.op(Operation::CompareFloats(*cmp), &operands, FLOAT)
            }
            Pred::Not(value) => {
                let value = self.pred(value);
                self.values.op(Operation::Not, &[value], SassCost::FREE)
            }
            Pred::Apply(apply) => self.apply(apply),
            Pred::Local(slot) => self.own(SlotKind::Pred, *slot),
            Pred::And(pair) | Pred::Or(pair) => {
                let (a, b) = (self.pred(&pair.0), self.pred(&pair.1.value));
                let or = matches!(value, Pred::Or(_));
                self.logic(or, a, b)
            }
            Pred::Select(choice) => self.choice(choice, Self::pred, 1),
        }
    }

    pub(super) fn vector(&mut self, value: &Vector) -> ValueId {
        match value {
            Vector::Slot(slot) => {
                let parts: Vec<ValueId> = (*slot..slot + 4)
                    .map(|at| self.read(Slot { kind: SlotKind::Lane, at }))
                    .collect();
                self.gathered(parts)
            }
            Vector::Register(memory) => self.local(memory),
            Vector::Load(memory) => self.load(memory),
            Vector::Pack(elem, parts) => {
                let operands: Vec<ValueId> = parts.iter().map(|part| self.number(part)).collect();
                // Elements smaller than a word are packed into words.
                let words = if elem.size() < 4 { operands.len() as u32 / 2 } else { 0 };
                self.values.op(Operation::Vector, &operands, SassCost::others(words))
            }
            Vector::Select(choice) => self.choice(choice, Self::vector, 4),
        }
    }

    /// Combines four words into a vector.
    fn gathered(&mut self, parts: Vec<ValueId>) -> ValueId {
        self.values.op(Operation::Vector, &parts, SassCost::FREE)
    }

    pub(super) fn words(&mut self, vector: ValueId) -> Vec<ValueId> {
        (0..4).map(|at| self.part(vector, at, SassCost::FREE)).collect()
    }

    pub(super) fn number(&mut self, value: &Number) -> ValueId {
        match value {
            Number::Lane(value) => self.lane(value),
            Number::Wide(value) => self.wide(value),
        }
    }

    pub(super) fn index(&mut self, index: &Index) -> ValueId {
        match index {
            Index::Uniform { value, wide: _ } => self.uniform(value),
            Index::I32(value) => self.lane(value),
            Index::U64(value) => self.wide(value),
        }
    }

    fn choice<T>(
        &mut self,
        choice: &Choice<T>,
        arm: impl Fn(&mut Self, &T) -> ValueId,
        words: u32,
    ) -> ValueId {
        let cond = self.pred(&choice.cond);
        let outer = std::mem::replace(&mut self.scope.guarded, true);
        let (yes, no) = (arm(self, &choice.yes.value), arm(self, &choice.no.value));
        self.scope.guarded = outer;
        self.select(cond, yes, no, words)
    }

    fn convert(&mut self, convert: &Convert) -> ValueId {
        let value = self.number(&convert.value);
        let cost = cost::conversion(convert.from, convert.to);
        self.values.op(
            Operation::Convert(convert.from, convert.to),
            &[value],
            SassCost::others(cost),
        )
    }

    /// Evaluates a function's body inline at the call.
    fn apply(&mut self, apply: &Apply) -> ValueId {
        let code = self.code;
        let function = &code.functions[apply.function as usize];
        // The parameters of each kind are the first variables of this kind.
        let mut given: HashMap<Slot, ValueId> = HashMap::new();
        for arg in &apply.args {
            let kind = kind(arg);
            let at = given.keys().filter(|slot| slot.kind == kind).count() as u32;
            let id = self.datum(arg);
            given.insert(Slot { kind, at }, id);
        }
        self.scope.applied.push(given);
        for (at, value) in &function.body {
            let id = self.datum(value);
            if let Some(own) = self.scope.applied.last_mut() {
                own.insert(Slot { kind: kind(value), at: *at }, id);
            }
        }
        let value = self.datum(&function.value);
        self.scope.applied.pop();
        value
    }

    fn datum(&mut self, value: &Datum) -> ValueId {
        match value {
            Datum::Lane(value) => self.lane(value),
            Datum::Wide(value) => self.wide(value),
            Datum::Pred(value) => self.pred(value),
        }
    }

    /// Variable of the innermost function call.
    fn own(&mut self, kind: SlotKind, at: u32) -> ValueId {
        let known = self.scope.applied.last().and_then(|own| own.get(&Slot { kind, at }).copied());
        known.unwrap_or_else(|| self.undefined(Slot { kind, at }))
    }
}

/// Kind of the variables that can contain such a value.
fn kind(value: &Datum) -> SlotKind {
    match value {
        Datum::Lane(_) => SlotKind::Lane,
        Datum::Wide(_) => SlotKind::Wide,
        Datum::Pred(_) => SlotKind::Pred,
    }
}
