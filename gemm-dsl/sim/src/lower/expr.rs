//! Lowering of expressions, with constant folding and cost counting.

use super::super::counters::IrClass;
use super::Lowering;
use crate::lower::code::expr::{Choice, Convert, Lane, Number, Pred, Uniform, Vector, Wide};
use crate::lower::uniformity;
use crate::region::{THREAD_X, THREAD_Y};
use gemm_dsl::ir::{
    Arith, BinaryOp, Cmp, Elem, Expr, Intrinsic, Logic, Space, Special, Ty, UnaryOp,
};
use gemm_dsl::target::intrinsic::{Semantics, canonical};

impl Lowering<'_, '_> {
    /// Returns true if the expression is an integer or boolean that is the same in all threads.
    pub(super) fn is_uniform(&self, expr: &Expr) -> bool {
        !uniformity::differs(expr, &self.varying)
    }

    /// Lowers a value of at most 4 bytes.
    pub(super) fn lane(&mut self, expr: &Expr) -> Lane {
        let ty = expr.ty();
        if ty == Ty::I32 && self.is_uniform(expr) {
            return Lane::Uniform(self.uniform(expr));
        }
        match expr {
            Expr::F32(v) => Lane::Bits(v.to_bits()),
            Expr::U32(v) => Lane::Bits(*v),
            Expr::Const(c) => {
                let kernel = self.launch.kernel;
                self.lane(&kernel[*c].value)
            }
            Expr::Param(p) => Lane::Bits(self.launch.scalars[p.param] as u32),
            Expr::Var(v) if self.inside => Lane::Local(self.places[v.id]),
            Expr::Var(v) => Lane::Slot(self.places[v.id]),
            Expr::Special(Special::ThreadX) => Lane::Slot(THREAD_X),
            Expr::Special(Special::ThreadY) => Lane::Slot(THREAD_Y),
            Expr::Unary(UnaryOp::Neg, e) => self.negation(ty, e),
            Expr::Binary(op, a, b) => self.binary(ty, *op, a, b),
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::lane) {
                Ok(choice) => Lane::Select(Box::new(choice)),
                Err(value) => value,
            },
            Expr::Cast(Elem::I32, e) if e.ty() == Ty::U64 => Lane::Narrow(Box::new(self.wide(e))),
            Expr::Cast(to, e) => match self.convert(*to, e) {
                Some(convert) => Lane::Convert(Box::new(convert)),
                None => self.lane(e),
            },
            // A lane has a narrow integer extended to 32 bits, so the integer's own bits must be
            // extracted first.
            Expr::Bitcast(to, e) => match to {
                elem if elem.size() < 4 => {
                    let vector = self.alone(*to, e);
                    Lane::Part(Box::new(vector), *to, 0)
                }
                _ => self.lane(e),
            },
            Expr::Load(access) => {
                let memory = self.load(access);
                match (memory.space, self.element(&memory)) {
                    (Space::Register, Some(slot)) => Lane::Element(slot),
                    (Space::Register, None) => Lane::Register(Box::new(memory)),
                    _ => Lane::Load(Box::new(memory)),
                }
            }
            Expr::Call(f, args) => self.call(*f, args),
            Expr::Apply(function, args) => Lane::Apply(self.apply(*function, args)),
            Expr::Lane(e, lane) => match (self.vector(e), ty) {
                // The slots of a vector variable are its words.
                (Vector::Slot(slot), Ty::Scalar(elem))
                    if matches!(**e, Expr::Var(_)) && elem.size() == 4 =>
                {
                    Lane::Slot(slot + u32::from(*lane))
                }
                (vector, Ty::Scalar(elem)) => Lane::Part(Box::new(vector), elem, *lane),
                _ => unreachable!("verified: a lane is a number"),
            },
            Expr::I32(_)
            | Expr::U64(_)
            | Expr::F64(_)
            | Expr::I64(_)
            | Expr::Special(_)
            | Expr::Unary(UnaryOp::Not, _)
            | Expr::Pack(_) => unreachable!("uniform, or verified to be of another type"),
        }
    }

    fn negation(&mut self, ty: Ty, e: &Expr) -> Lane {
        let float = ty == Ty::F32;
        match self.lane(e) {
            Lane::Bits(bits) if float => Lane::Bits(canonical(-f32::from_bits(bits)).to_bits()),
            e if float => {
                self.cost.add(IrClass::Float);
                Lane::NegFloat(Box::new(e))
            }
            e => {
                self.cost.add(IrClass::Integer);
                Lane::Neg(Box::new(e))
            }
        }
    }

    fn binary(&mut self, ty: Ty, op: BinaryOp, a: &Expr, b: &Expr) -> Lane {
        let operands = [self.lane(a), self.lane(b)];
        match (op, ty) {
            (BinaryOp::Arith(op), Ty::F32) => {
                if let [Lane::Bits(a), Lane::Bits(b)] = &operands {
                    return Lane::Bits(folded(op, f32::from_bits(*a), f32::from_bits(*b)));
                }
                self.cost.add(IrClass::Float);
                Lane::F32(op, Box::new(operands))
            }
            (_, Ty::U32) => {
                self.cost.add(IrClass::Integer);
                Lane::U32(op, Box::new(operands))
            }
            _ => {
                self.cost.add(IrClass::Integer);
                Lane::I32(op, Box::new(operands))
            }
        }
    }

    /// Lowers the call of an intrinsic with a result of at most 4 bytes.
    fn call(&mut self, f: Intrinsic, args: &[Expr]) -> Lane {
        match f.info().semantics {
            Semantics::Shuffle(shuffle) => {
                let operands = [self.lane(&args[0]), self.lane(&args[1])];
                self.cost.add(IrClass::Shuffle);
                Lane::Shuffle(f.info().single.name, shuffle, Box::new(operands))
            }
            Semantics::OrOfLanes => {
                let operand = self.lane(&args[0]);
                self.cost.add(IrClass::Shuffle);
                Lane::OrOfLanes(f.info().single.name, Box::new(operand))
            }
            Semantics::Ballot => {
                let operand = self.pred(&args[0]);
                self.cost.add(IrClass::Shuffle);
                Lane::Ballot(f.info().single.name, Box::new(operand))
            }
            Semantics::CountOnes => {
                let operand = self.lane(&args[0]);
                self.cost.add(IrClass::Integer);
                Lane::CountOnes(Box::new(operand))
            }
            Semantics::Pack(elem) => {
                let operands = [self.lane(&args[0]), self.lane(&args[1])];
                self.cost.add(IrClass::Float);
                Lane::Pack(elem, Box::new(operands))
            }
            Semantics::Float { f32, .. } => {
                let lanes: Vec<Lane> = args.iter().map(|a| self.lane(a)).collect();
                let fma = f == Intrinsic::Fma;
                self.cost.add(if fma { IrClass::Fma } else { IrClass::Float });
                match <[Lane; 3]>::try_from(lanes) {
                    Ok(operands) if fma => Lane::Fma(Box::new(operands)),
                    Ok(operands) => Lane::Function(f32, operands.into()),
                    Err(lanes) => Lane::Function(f32, lanes),
                }
            }
        }
    }

    /// Packs a single number into a vector, in order to access its bits.
    fn alone(&mut self, elem: Elem, value: &Expr) -> Vector {
        let value = self.number(value);
        Vector::Pack(elem, vec![value])
    }

    fn number(&mut self, e: &Expr) -> Number {
        match e.ty() {
            Ty::Scalar(elem) if elem.size() == 8 => Number::Wide(self.wide(e)),
            _ => Number::Lane(self.lane(e)),
        }
    }

    /// Returns the conversion, or `None` if the type stays the same.
    fn convert(&mut self, to: Elem, e: &Expr) -> Option<Convert> {
        match e.ty() {
            Ty::Scalar(from) if from != to => Some(Convert { from, to, value: self.number(e) }),
            _ => None,
        }
    }

    pub(super) fn wide(&mut self, expr: &Expr) -> Wide {
        let ty = expr.ty();
        if ty == Ty::U64 && self.is_uniform(expr) {
            return Wide::Uniform(self.uniform(expr));
        }
        match expr {
            Expr::F64(v) => Wide::Bits(v.to_bits()),
            Expr::I64(v) => Wide::Bits(*v as u64),
            Expr::Const(c) => {
                let kernel = self.launch.kernel;
                self.wide(&kernel[*c].value)
            }
            Expr::Param(p) => Wide::Bits(self.launch.scalars[p.param]),
            Expr::Var(v) if self.inside => Wide::Local(self.places[v.id]),
            Expr::Var(v) => Wide::Slot(self.places[v.id]),
            Expr::Unary(UnaryOp::Neg, e) => {
                let e = Box::new(self.wide(e));
                if ty == Ty::F64 {
                    self.cost.add(IrClass::Float);
                    Wide::NegFloat(e)
                } else {
                    self.cost.add(IrClass::Integer);
                    Wide::Neg(e)
                }
            }
            Expr::Binary(op, a, b) => {
                let operands = Box::new([self.wide(a), self.wide(b)]);
                match (op, ty) {
                    (BinaryOp::Arith(op), Ty::F64) => {
                        self.cost.add(IrClass::Float);
                        Wide::F64(*op, operands)
                    }
                    (_, Ty::I64) => {
                        self.cost.add(IrClass::Integer);
                        Wide::I64(*op, operands)
                    }
                    _ => {
                        self.cost.add(IrClass::Integer);
                        Wide::U64(*op, operands)
                    }
                }
            }
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::wide) {
                Ok(choice) => Wide::Select(Box::new(choice)),
                Err(value) => value,
            },
            Expr::Cast(Elem::U64, e) if e.ty() == Ty::I32 => Wide::Widen(Box::new(self.lane(e))),
            Expr::Cast(to, e) => match self.convert(*to, e) {
                Some(convert) => Wide::Convert(Box::new(convert)),
                None => self.wide(e),
            },
            Expr::Bitcast(_, e) => self.wide(e),
            Expr::Load(access) => {
                let memory = self.load(access);
                match (memory.space, self.element(&memory)) {
                    (Space::Register, Some(slot)) => Wide::Element(slot),
                    (Space::Register, None) => Wide::Register(Box::new(memory)),
                    _ => Wide::Load(Box::new(memory)),
                }
            }
            Expr::Call(f, args) => self.wide_call(*f, args),
            Expr::Apply(function, args) => Wide::Apply(self.apply(*function, args)),
            Expr::Lane(e, lane) => Wide::Part(Box::new(self.vector(e)), *lane),
            Expr::I32(_)
            | Expr::U64(_)
            | Expr::F32(_)
            | Expr::U32(_)
            | Expr::Special(_)
            | Expr::Unary(UnaryOp::Not, _)
            | Expr::Pack(_) => unreachable!("uniform, or verified to be of another type"),
        }
    }

    /// Lowers the call of an intrinsic with an 8-byte result.
    fn wide_call(&mut self, f: Intrinsic, args: &[Expr]) -> Wide {
        match f.info().semantics {
            Semantics::Shuffle(shuffle) => {
                let operands = (self.wide(&args[0]), self.lane(&args[1]));
                self.cost.add(IrClass::Shuffle);
                Wide::Shuffle(f.info().double.name, shuffle, Box::new(operands))
            }
            Semantics::Float { f64, .. } => {
                let operands = args.iter().map(|a| self.wide(a)).collect();
                let fma = f == Intrinsic::Fma;
                self.cost.add(if fma { IrClass::Fma } else { IrClass::Float });
                Wide::Function(f64, operands)
            }
            Semantics::OrOfLanes
            | Semantics::Ballot
            | Semantics::CountOnes
            | Semantics::Pack(_) => {
                unreachable!("verified: it gives a word")
            }
        }
    }

    pub(super) fn pred(&mut self, expr: &Expr) -> Pred {
        if self.is_uniform(expr) {
            return Pred::Uniform(self.uniform(expr));
        }
        match expr {
            Expr::Var(v) if self.inside => Pred::Local(self.places[v.id]),
            Expr::Var(v) => Pred::Slot(self.places[v.id]),
            Expr::Apply(function, args) => Pred::Apply(self.apply(*function, args)),
            Expr::Unary(_, e) => {
                let e = self.pred(e);
                self.cost.add(IrClass::Integer);
                Pred::Not(Box::new(e))
            }
            Expr::Binary(BinaryOp::Logic(op), a, b) => {
                let and = *op == Logic::And;
                match self.pred(a) {
                    Pred::Uniform(Uniform::Static(v)) if (v != 0) == and => self.pred(b),
                    Pred::Uniform(Uniform::Static(v)) => Pred::Uniform(Uniform::Static(v)),
                    a => {
                        self.cost.add(IrClass::Integer);
                        let b = self.lazily(|s| s.pred(b));
                        let pair = Box::new((a, b));
                        if and { Pred::And(pair) } else { Pred::Or(pair) }
                    }
                }
            }
            Expr::Binary(BinaryOp::Cmp(op), a, b) => self.comparison(*op, a, b),
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::pred) {
                Ok(choice) => Pred::Select(Box::new(choice)),
                Err(value) => value,
            },
            _ => unreachable!("verified to be a boolean"),
        }
    }

    fn comparison(&mut self, op: Cmp, a: &Expr, b: &Expr) -> Pred {
        let ty = a.ty();
        let pred = match ty {
            Ty::Scalar(elem) if elem.size() == 8 => {
                let operands = Box::new([self.wide(a), self.wide(b)]);
                match ty {
                    Ty::F64 => Pred::F64(op, operands),
                    Ty::I64 => Pred::I64(op, operands),
                    _ => Pred::U64(op, operands),
                }
            }
            _ => {
                let operands = Box::new([self.lane(a), self.lane(b)]);
                match ty {
                    Ty::F32 => Pred::F32(op, operands),
                    Ty::U32 => Pred::U32(op, operands),
                    _ => Pred::I32(op, operands),
                }
            }
        };
        self.cost.add(if ty.is_float() { IrClass::Float } else { IrClass::Integer });
        pred
    }

    pub(super) fn vector(&mut self, expr: &Expr) -> Vector {
        match expr {
            Expr::Var(v) => Vector::Slot(self.places[v.id]),
            Expr::Load(access) => {
                let memory = self.load(access);
                match (memory.space, self.element(&memory)) {
                    (Space::Register, Some(slot)) => Vector::Slot(slot),
                    (Space::Register, None) => Vector::Register(Box::new(memory)),
                    _ => Vector::Load(Box::new(memory)),
                }
            }
            Expr::Pack(parts) => {
                let Ty::Vector(elem) = expr.ty() else {
                    unreachable!("verified: a vector is packed of numbers");
                };
                Vector::Pack(elem, parts.iter().map(|p| self.number(p)).collect())
            }
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::vector) {
                Ok(choice) => Vector::Select(Box::new(choice)),
                Err(value) => value,
            },
            _ => unreachable!("verified to be a vector"),
        }
    }

    /// Lowers a select. If the condition is static, lowers only the selected branch.
    fn choice<T>(
        &mut self,
        cond: &Expr,
        yes: &Expr,
        no: &Expr,
        arm: impl Fn(&mut Self, &Expr) -> T,
    ) -> Result<Choice<T>, T> {
        let cond = self.pred(cond);
        if let Pred::Uniform(Uniform::Static(holds)) = cond {
            return Err(arm(self, if holds != 0 { yes } else { no }));
        }
        self.cost.add(IrClass::Select);
        let yes = self.lazily(|s| arm(s, yes));
        let no = self.lazily(|s| arm(s, no));
        Ok(Choice { cond, yes, no })
    }
}

fn folded(op: Arith, a: f32, b: f32) -> u32 {
    let value = match op {
        Arith::Add => a + b,
        Arith::Sub => a - b,
        Arith::Mul => a * b,
        Arith::Div => a / b,
    };
    canonical(value).to_bits()
}
