//! Lowering of expressions, with folding and with the count of what they cost.

use super::super::code::{Choice, Lane, Pred, Scalar, THREAD_X, THREAD_Y, Vector, Wide};
use super::super::counters::Class;
use super::super::uniform;
use super::Lowering;
use crate::intrinsic::{Semantics, canonical};
use crate::ir::{BinaryOp, Expr, Intrinsic, Space, Special, Ty};

impl Lowering<'_, '_> {
    /// Whether the expression is an integer or truth value that all threads share.
    pub(super) fn is_uniform(&self, expr: &Expr) -> bool {
        !uniform::differs(expr, &self.varying)
    }

    /// An `I32` or `F32`.
    pub(super) fn lane(&mut self, expr: &Expr) -> Lane {
        if expr.ty() == Ty::I32 && self.is_uniform(expr) {
            return Lane::Scalar(self.scalar(expr));
        }
        match expr {
            Expr::F32(v) => Lane::Float(v.to_bits()),
            Expr::Const(c) => match self.launch.kernel.consts.get(c.id) {
                Some(decl) => self.lane(&decl.value),
                None => Lane::Float(0),
            },
            Expr::Param(p) => Lane::Scalar(Scalar::Known(self.launch.scalars[p.param] as i64)),
            Expr::Var(v) => Lane::Slot(self.places[v.id]),
            Expr::Special(Special::ThreadX) => Lane::Slot(THREAD_X),
            Expr::Special(_) => Lane::Slot(THREAD_Y),
            Expr::Unary(_, e) => {
                let float = e.ty() == Ty::F32;
                match self.lane(e) {
                    Lane::Float(bits) => Lane::Float(canonical(-f32::from_bits(bits)).to_bits()),
                    e if float => {
                        self.cost.add(Class::Float);
                        Lane::NegFloat(Box::new(e))
                    }
                    e => {
                        self.cost.add(Class::Integer);
                        Lane::Neg(Box::new(e))
                    }
                }
            }
            Expr::Binary(op, a, b) => {
                let float = a.ty() == Ty::F32;
                let operands = [self.lane(a), self.lane(b)];
                if let (true, [Lane::Float(a), Lane::Float(b)]) = (float, &operands) {
                    return Lane::Float(folded(*op, f32::from_bits(*a), f32::from_bits(*b)));
                }
                self.cost.add(if float { Class::Float } else { Class::Integer });
                let operands = Box::new(operands);
                if float { Lane::F32(*op, operands) } else { Lane::I32(*op, operands) }
            }
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::lane) {
                Ok(choice) => Lane::Select(Box::new(choice)),
                Err(value) => value,
            },
            Expr::Cast(_, e) if e.ty() == Ty::U64 => Lane::Narrow(Box::new(self.wide(e))),
            Expr::Cast(_, e) => self.lane(e),
            Expr::Load(access) => {
                let memory = self.load(access);
                match (memory.space, self.element(&memory)) {
                    (Space::Register, Some(slot)) => Lane::Element(slot),
                    (Space::Register, None) => Lane::Register(Box::new(memory)),
                    _ => Lane::Load(Box::new(memory)),
                }
            }
            Expr::Call(f, args) => self.call(*f, args),
            Expr::Lane(e, lane) => match self.vector(e) {
                Vector::Slot(slot) if matches!(**e, Expr::Var(_)) => {
                    Lane::Slot(slot + u32::from(*lane))
                }
                vector => Lane::Part(Box::new(vector), *lane),
            },
            // Of another type.
            Expr::I32(_) | Expr::U64(_) | Expr::Pack(_) => Lane::Float(0),
        }
    }

    fn call(&mut self, f: Intrinsic, args: &[Expr]) -> Lane {
        let mut lanes: Vec<Lane> = args.iter().map(|a| self.lane(a)).collect();
        let row = f.row();
        match row.semantics {
            Semantics::ShuffleDown => {
                self.cost.add(Class::Shuffle);
                let mut next = || {
                    if lanes.is_empty() { Lane::Float(0) } else { lanes.remove(0) }
                };
                let operands = [next(), next()];
                Lane::ShuffleDown(row.cuda, Box::new(operands))
            }
            Semantics::Lanewise(function) => {
                let fma = f == Intrinsic::Fma;
                self.cost.add(if fma { Class::Fma } else { Class::Float });
                match <[Lane; 3]>::try_from(lanes) {
                    Ok(operands) if fma => Lane::Fma(Box::new(operands)),
                    Ok(operands) => Lane::Function(function, operands.into()),
                    Err(lanes) => Lane::Function(function, lanes),
                }
            }
            // A statement, not a function: a verified kernel does not call it.
            Semantics::Copy => Lane::Float(0),
        }
    }

    /// A `U64`.
    pub(super) fn wide(&mut self, expr: &Expr) -> Wide {
        if self.is_uniform(expr) {
            return Wide::Scalar(self.scalar(expr));
        }
        match expr {
            Expr::Var(v) => Wide::Slot(self.places[v.id]),
            Expr::Binary(op, a, b) => {
                let operands = Box::new([self.wide(a), self.wide(b)]);
                self.cost.add(Class::Integer);
                Wide::U64(*op, operands)
            }
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::wide) {
                Ok(choice) => Wide::Select(Box::new(choice)),
                Err(value) => value,
            },
            Expr::Cast(_, e) if e.ty() == Ty::I32 => Wide::Widen(Box::new(self.lane(e))),
            Expr::Cast(_, e) => self.wide(e),
            // Of another type.
            _ => Wide::Scalar(Scalar::Static(0)),
        }
    }

    /// A truth value.
    pub(super) fn pred(&mut self, expr: &Expr) -> Pred {
        if self.is_uniform(expr) {
            return Pred::Scalar(self.scalar(expr));
        }
        match expr {
            Expr::Var(v) => Pred::Slot(self.places[v.id]),
            Expr::Unary(_, e) => {
                let e = self.pred(e);
                self.cost.add(Class::Integer);
                Pred::Not(Box::new(e))
            }
            Expr::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let and = *op == BinaryOp::And;
                match self.pred(a) {
                    Pred::Scalar(Scalar::Static(v)) if (v != 0) == and => self.pred(b),
                    Pred::Scalar(Scalar::Static(v)) => Pred::Scalar(Scalar::Static(v)),
                    a => {
                        self.cost.add(Class::Integer);
                        let b = self.lazily(|s| s.pred(b));
                        let pair = Box::new((a, b));
                        if and { Pred::And(pair) } else { Pred::Or(pair) }
                    }
                }
            }
            Expr::Binary(op, a, b) => match a.ty() {
                Ty::U64 => {
                    let operands = Box::new([self.wide(a), self.wide(b)]);
                    self.cost.add(Class::Integer);
                    Pred::U64(*op, operands)
                }
                ty => {
                    let float = ty == Ty::F32;
                    let operands = Box::new([self.lane(a), self.lane(b)]);
                    self.cost.add(if float { Class::Float } else { Class::Integer });
                    if float { Pred::F32(*op, operands) } else { Pred::I32(*op, operands) }
                }
            },
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::pred) {
                Ok(choice) => Pred::Select(Box::new(choice)),
                Err(value) => value,
            },
            // Of another type.
            _ => Pred::Scalar(Scalar::Static(0)),
        }
    }

    /// Four `F32`.
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
            Expr::Pack(parts) => Vector::Pack(Box::new(parts.each_ref().map(|p| self.lane(p)))),
            Expr::Select(cond, yes, no) => match self.choice(cond, yes, no, Self::vector) {
                Ok(choice) => Vector::Select(Box::new(choice)),
                Err(value) => value,
            },
            // Of another type.
            _ => Vector::Pack(Box::new([const { Lane::Float(0) }; 4])),
        }
    }

    /// A select, or the arm of one whose condition is static.
    fn choice<T>(
        &mut self,
        cond: &Expr,
        yes: &Expr,
        no: &Expr,
        arm: impl Fn(&mut Self, &Expr) -> T,
    ) -> Result<Choice<T>, T> {
        let cond = self.pred(cond);
        if let Pred::Scalar(Scalar::Static(holds)) = cond {
            return Err(arm(self, if holds != 0 { yes } else { no }));
        }
        self.cost.add(Class::Select);
        let yes = self.lazily(|s| arm(s, yes));
        let no = self.lazily(|s| arm(s, no));
        Ok(Choice { cond, yes, no })
    }
}

fn folded(op: BinaryOp, a: f32, b: f32) -> u32 {
    let value = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        _ => a / b,
    };
    canonical(value).to_bits()
}
