//! Expressions of the lowered code as values.

use super::super::code::{
    Apply, Choice, Convert, Datum, Index, Lane, Number, Pred, THREAD_X, THREAD_Y, Uniform, Vector,
    Wide,
};
use super::Compiler;
use super::cost::{self, Class, Cost};
use super::form::{Form, Id};
use super::slots::{Kind, Slot};
use super::values::Key;
use crate::ir::{Arith, BinaryOp, Cmp, Integer};

/// What computes an element from two.
const FLOAT: Cost = Cost::others(1);

impl Compiler<'_, '_> {
    pub(super) fn constant(&mut self, value: i64) -> Id {
        if let Some(known) = self.values.known(&Key::Op("constant", Vec::new(), value)) {
            return known;
        }
        let id = self.values.op("constant", &[], value, Cost::FREE);
        self.values.all[id as usize].form = Some(Form::constant(value));
        id
    }

    /// Values that a register of the machine holds, or the constant bank.
    fn special(&mut self, name: &'static str, number: i64) -> Id {
        let id = self.values.op(name, &[], number, Cost::others(1));
        self.values.all[id as usize].positive = true;
        id
    }

    pub(super) fn uniform(&mut self, value: &Uniform) -> Id {
        match value {
            Uniform::Static(value) => self.constant(*value),
            Uniform::Known(value) => self.special("parameter", *value),
            Uniform::Slot(slot) => self.read(Slot { kind: Kind::Uniform, at: *slot }),
            Uniform::BlockX => self.special("blockIdx", 0),
            Uniform::BlockY => self.special("blockIdx", 1),
            Uniform::BlockZ => self.special("blockIdx", 2),
            Uniform::ClusterRank => self.special("clusterRank", 0),
            Uniform::Neg(value) => {
                let value = self.uniform(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, false)
            }
            Uniform::Not(value) => {
                let value = self.uniform(value);
                self.values.op("not", &[value], 0, Cost::FREE)
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
            // What is extended is so where an address is made of it.
            Uniform::Narrow(value) | Uniform::Widen(value) => self.uniform(value),
        }
    }

    /// `ISETP` takes the truth of another one as it goes.
    fn logic(&mut self, or: bool, a: Id, b: Id) -> Id {
        for (one, other) in [(a, b), (b, a)] {
            if let Some(holds) = self.values.form(one).known() {
                return if (holds != 0) == or { one } else { other };
            }
        }
        self.values.op(if or { "or" } else { "and" }, &[a, b], 0, Cost::FREE)
    }

    fn select(&mut self, cond: Id, yes: Id, no: Id, words: u32) -> Id {
        if yes == no {
            return yes;
        }
        self.values.op("select", &[cond, yes, no], 0, Cost::others(words))
    }

    /// An operator on integers.
    fn integer(&mut self, op: BinaryOp, a: Id, b: Id, wide: bool) -> Id {
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
                return self.comparison(cmp as i64, &left, &right, wide);
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
        let name = operator(op);
        let mut operands = vec![a, b];
        if op == BinaryOp::Integer(Integer::Rem) && !is_power {
            // The dividend less the product of quotient and divisor.
            let quotient = self.integer(BinaryOp::Arith(Arith::Div), a, b, wide);
            operands.push(quotient);
        }
        let id = self.values.op(name, &operands, i64::from(wide), Cost::others(cost));
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

    /// A comparison of integers: a constant is its immediate operand, beside a number that is none it is added first.
    fn comparison(&mut self, cmp: i64, left: &Form, right: &Form, wide: bool) -> Id {
        let constant = left.constant.wrapping_sub(right.constant);
        let (left, right) = (left.varying(), right.varying());
        let is_added = constant != 0 && !left.terms.is_empty() && !right.terms.is_empty();
        let [a, b] = [left, right].map(|form| self.values.sum(form, wide));
        let words = if wide { 2 } else { 1 };
        let cost = Cost::others(words * (1 + u32::from(is_added)));
        let number = constant.wrapping_mul(8).wrapping_add(cmp);
        let id = self.values.op("compare", &[a, b], number, cost);
        if cmp == Cmp::Eq as i64 {
            self.equal.insert(id, (a, b));
        }
        id
    }

    pub(super) fn lane(&mut self, value: &Lane) -> Id {
        match value {
            Lane::Uniform(value) => self.uniform(value),
            Lane::Bits(bits) => self.constant((*bits).into()),
            Lane::Slot(THREAD_X) => self.special("threadIdx", 0),
            Lane::Slot(THREAD_Y) => self.special("threadIdx", 1),
            Lane::Slot(slot) | Lane::Element(slot) => {
                self.read(Slot { kind: Kind::Lane, at: *slot })
            }
            Lane::Register(memory) => self.local(memory),
            Lane::Load(memory) => self.load(memory),
            Lane::Neg(value) => {
                let value = self.lane(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, false)
            }
            // A sign is a flag of the operand.
            Lane::NegFloat(value) => {
                let value = self.lane(value);
                self.values.op("negative", &[value], 0, Cost::FREE)
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
                self.values.op(operator(BinaryOp::Arith(*op)), &operands, 32, cost)
            }
            Lane::Select(choice) => self.choice(choice, Self::lane, 1),
            Lane::Narrow(value) => self.wide(value),
            Lane::Convert(convert) => self.convert(convert),
            Lane::Fma(operands) => {
                let operands = operands.each_ref().map(|operand| self.lane(operand));
                self.values.op("fma", &operands, 32, Cost::one(Class::Ffma))
            }
            Lane::Function(function, operands) => {
                let operands: Vec<Id> = operands.iter().map(|operand| self.lane(operand)).collect();
                let number = *function as usize as i64;
                self.values.op("function", &operands, number, FLOAT)
            }
            Lane::Apply(apply) => self.apply(apply),
            Lane::Local(slot) => self.own(Kind::Lane, *slot),
            Lane::Shuffle(_, _, operands) => {
                let operands = vec![self.lane(&operands[0]), self.lane(&operands[1])];
                self.values.fresh(operands, Cost::one(Class::Shuffle))
            }
            // `REDUX`, and the move from the uniform register that it gives.
            Lane::OrOfLanes(_, operand) => {
                let operand = self.lane(operand);
                self.values.fresh(vec![operand], Cost::others(2))
            }
            Lane::Pack(elem, operands) => {
                let operands = [self.lane(&operands[0]), self.lane(&operands[1])];
                self.values.op("pack", &operands, *elem as i64, FLOAT)
            }
            Lane::Part(vector, elem, at) => {
                let vector = self.vector(vector);
                let cost = Cost::others(u32::from(elem.size() < 4));
                self.part(vector, i64::from(*at), cost)
            }
        }
    }

    fn part(&mut self, vector: Id, at: i64, cost: Cost) -> Id {
        self.values.op("part", &[vector], at, cost)
    }

    pub(super) fn wide(&mut self, value: &Wide) -> Id {
        match value {
            Wide::Uniform(value) => self.uniform(value),
            Wide::Bits(bits) => self.constant(*bits as i64),
            Wide::Slot(slot) => self.read(Slot { kind: Kind::Wide, at: *slot }),
            Wide::Element(slot) => self.read(Slot { kind: Kind::Lane, at: *slot }),
            Wide::Register(memory) => self.local(memory),
            Wide::Load(memory) => self.load(memory),
            Wide::Neg(value) => {
                let value = self.wide(value);
                let form = self.values.form(value).times(-1);
                self.values.sum(form, true)
            }
            Wide::NegFloat(value) => {
                let value = self.wide(value);
                self.values.op("negative", &[value], 0, Cost::FREE)
            }
            Wide::U64(op, operands) | Wide::I64(op, operands) => {
                let [a, b] = [self.wide(&operands[0]), self.wide(&operands[1])];
                self.integer(*op, a, b, true)
            }
            Wide::F64(op, operands) => {
                let operands = [self.wide(&operands[0]), self.wide(&operands[1])];
                let cost = if *op == Arith::Div { Cost::others(10) } else { FLOAT };
                self.values.op(operator(BinaryOp::Arith(*op)), &operands, 64, cost)
            }
            Wide::Select(choice) => self.choice(choice, Self::wide, 2),
            Wide::Widen(value) => self.lane(value),
            Wide::Convert(convert) => self.convert(convert),
            Wide::Function(function, operands) => {
                let operands: Vec<Id> = operands.iter().map(|operand| self.wide(operand)).collect();
                let number = *function as usize as i64;
                self.values.op("function", &operands, number, FLOAT)
            }
            Wide::Apply(apply) => self.apply(apply),
            Wide::Local(slot) => self.own(Kind::Wide, *slot),
            Wide::Shuffle(_, _, operands) => {
                let operands = vec![self.wide(&operands.0), self.lane(&operands.1)];
                let cost = Cost { class: Class::Shuffle, count: 2, others: 0 };
                self.values.fresh(operands, cost)
            }
            Wide::Part(vector, at) => {
                let vector = self.vector(vector);
                self.part(vector, i64::from(*at), Cost::FREE)
            }
        }
    }

    pub(super) fn pred(&mut self, value: &Pred) -> Id {
        match value {
            Pred::Uniform(value) => self.uniform(value),
            Pred::Slot(slot) => self.read(Slot { kind: Kind::Pred, at: *slot }),
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
                self.values.op("compare floats", &operands, *cmp as i64, FLOAT)
            }
            Pred::F64(cmp, operands) => {
                let operands = [self.wide(&operands[0]), self.wide(&operands[1])];
                self.values.op("compare floats", &operands, *cmp as i64, FLOAT)
            }
            Pred::Not(value) => {
                let value = self.pred(value);
                self.values.op("not", &[value], 0, Cost::FREE)
            }
            Pred::Apply(apply) => self.apply(apply),
            Pred::Local(slot) => self.own(Kind::Pred, *slot),
            Pred::And(pair) | Pred::Or(pair) => {
                let (a, b) = (self.pred(&pair.0), self.pred(&pair.1.value));
                let or = matches!(value, Pred::Or(_));
                self.logic(or, a, b)
            }
            Pred::Select(choice) => self.choice(choice, Self::pred, 1),
        }
    }

    pub(super) fn vector(&mut self, value: &Vector) -> Id {
        match value {
            Vector::Slot(slot) => {
                let parts: Vec<Id> =
                    (*slot..slot + 4).map(|at| self.read(Slot { kind: Kind::Lane, at })).collect();
                self.gathered(parts)
            }
            Vector::Register(memory) => self.local(memory),
            Vector::Load(memory) => self.load(memory),
            Vector::Pack(elem, parts) => {
                let operands: Vec<Id> = parts.iter().map(|part| self.number(part)).collect();
                // Parts of a word are put together.
                let words = if elem.size() < 4 { operands.len() as u32 / 2 } else { 0 };
                self.values.op("vector", &operands, 0, Cost::others(words))
            }
            Vector::Select(choice) => self.choice(choice, Self::vector, 4),
        }
    }

    /// Four words as a vector: the one that they are the parts of, if they are.
    fn gathered(&mut self, parts: Vec<Id>) -> Id {
        self.values.op("vector", &parts, 0, Cost::FREE)
    }

    /// The words of a vector.
    pub(super) fn words(&mut self, vector: Id) -> Vec<Id> {
        (0..4).map(|at| self.part(vector, at, Cost::FREE)).collect()
    }

    pub(super) fn number(&mut self, value: &Number) -> Id {
        match value {
            Number::Lane(value) => self.lane(value),
            Number::Wide(value) => self.wide(value),
        }
    }

    pub(super) fn index(&mut self, index: &Index) -> Id {
        match index {
            Index::Uniform { value, wide: _ } => self.uniform(value),
            Index::I32(value) => self.lane(value),
            Index::U64(value) => self.wide(value),
        }
    }

    fn choice<T>(
        &mut self,
        choice: &Choice<T>,
        arm: impl Fn(&mut Self, &T) -> Id,
        words: u32,
    ) -> Id {
        let cond = self.pred(&choice.cond);
        let outer = std::mem::replace(&mut self.guarded, true);
        let (yes, no) = (arm(self, &choice.yes.value), arm(self, &choice.no.value));
        self.guarded = outer;
        self.select(cond, yes, no, words)
    }

    fn convert(&mut self, convert: &Convert) -> Id {
        let value = self.number(&convert.value);
        let cost = cost::conversion(convert.from, convert.to);
        let number = convert.from as i64 * 64 + convert.to as i64;
        self.values.op("convert", &[value], number, Cost::others(cost))
    }

    /// A function is compiled where it is applied.
    fn apply(&mut self, apply: &Apply) -> Id {
        let code = self.code;
        let function = &code.functions[apply.function as usize];
        let mut counts = [0; 3];
        let mut given = Vec::new();
        for arg in &apply.args {
            let kind = match arg {
                Datum::Lane(_) => Kind::Lane,
                Datum::Wide(_) => Kind::Wide,
                Datum::Pred(_) => Kind::Pred,
            };
            let at = &mut counts[kind as usize % 3];
            given.push((Slot { kind, at: *at }, self.datum(arg)));
            *at += 1;
        }
        self.applied.push(given.into_iter().collect());
        for (slot, value) in &function.body {
            let kind = match value {
                Datum::Lane(_) => Kind::Lane,
                Datum::Wide(_) => Kind::Wide,
                Datum::Pred(_) => Kind::Pred,
            };
            let id = self.datum(value);
            if let Some(own) = self.applied.last_mut() {
                own.insert(Slot { kind, at: *slot }, id);
            }
        }
        let value = self.datum(&function.value);
        self.applied.pop();
        value
    }

    fn datum(&mut self, value: &Datum) -> Id {
        match value {
            Datum::Lane(value) => self.lane(value),
            Datum::Wide(value) => self.wide(value),
            Datum::Pred(value) => self.pred(value),
        }
    }

    /// A variable of the function being applied.
    fn own(&mut self, kind: Kind, at: u32) -> Id {
        let known = self.applied.last().and_then(|own| own.get(&Slot { kind, at }).copied());
        known.unwrap_or_else(|| self.constant(0))
    }
}

/// The value of an operator on constants.
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

fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Arith(Arith::Add) => "add",
        BinaryOp::Arith(Arith::Sub) => "subtract",
        BinaryOp::Arith(Arith::Mul) => "multiply",
        BinaryOp::Arith(Arith::Div) => "divide",
        BinaryOp::Integer(Integer::Rem) => "remainder",
        BinaryOp::Integer(Integer::And) => "bits and",
        BinaryOp::Integer(Integer::Or) => "bits or",
        BinaryOp::Integer(Integer::Xor) => "bits xor",
        BinaryOp::Integer(Integer::Shl) => "shift left",
        BinaryOp::Integer(Integer::Shr) => "shift right",
        BinaryOp::Cmp(_) => "compare",
        BinaryOp::Logic(_) => "logic",
    }
}
