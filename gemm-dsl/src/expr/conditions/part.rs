//! Conditions read: names become places, and what is asked gets a number.

use super::super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::super::{Environment, Function};
use super::{Asked, Value};
use std::collections::HashMap;

/// The tile of waves, and the number of their tile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waves {
    pub(super) tile: (u32, u32),
    pub(super) number: usize,
}

/// A block whose names are places.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Body {
    pub(super) lets: Vec<Part>,
    pub(super) value: Box<Part>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Constant(Value),
    /// The integer at this place.
    Integer(usize),
    /// The truth value at this place.
    Truth(usize),
    Waves(Waves),
    /// The definition of this number, counted from the outermost.
    Local(usize),
    Unary(Unary, Box<Part>),
    Binary(Binary, Box<Part>, Box<Part>),
    If(Box<Part>, Body, Body),
    Call(Function, Vec<Part>),
}

/// Gives names their numbers.
pub(super) struct Reader<'r, 'c> {
    pub(super) env: &'static Environment,
    pub(super) numbers: &'r mut HashMap<Asked, usize>,
    pub(super) known: &'r mut Vec<&'c str>,
}

impl<'c> Reader<'_, 'c> {
    fn asked(&mut self, asked: Asked) -> Part {
        let next = self.numbers.len();
        let number = *self.numbers.entry(asked).or_insert(next);
        match asked {
            Asked::Integer(place, ..) => Part::Integer(place),
            Asked::Truth(place, _) => Part::Truth(place),
            Asked::Waves(m, n) => Part::Waves(Waves { tile: (m, n), number }),
        }
    }

    pub(super) fn block(&mut self, block: &'c Block) -> Body {
        let outer = self.known.len();
        let mut lets = Vec::with_capacity(block.lets.len());
        for definition in &block.lets {
            lets.push(self.part(&definition.value));
            self.known.push(&definition.name);
        }
        let value = Box::new(self.part(&block.value));
        self.known.truncate(outer);
        Body { lets, value }
    }

    fn part(&mut self, e: &'c Node) -> Part {
        match &e.kind {
            NodeKind::Int(value) => Part::Constant(Value::Int((*value).into())),
            NodeKind::Float(bits) => Part::Constant(Value::Float(f64::from_bits(*bits))),
            NodeKind::Waves(m, n) => self.asked(Asked::Waves(*m, *n)),
            NodeKind::Name(name) => match self.known.iter().rposition(|known| known == name) {
                Some(number) => Part::Local(number),
                None => {
                    let mut integers = self.env.integers.iter().enumerate();
                    let integer = integers.find(|(_, (known, _))| known == name);
                    let integer =
                        integer.map(|(at, (name, range))| Asked::Integer(at, name, *range));
                    let mut truths = self.env.truths().iter().enumerate();
                    let truth = truths.find(|(_, known)| *known == name);
                    let asked = integer.or(truth.map(|(at, name)| Asked::Truth(at, name)));
                    let asked = asked.unwrap_or_else(|| unreachable!("checked: {name} is known"));
                    self.asked(asked)
                }
            },
            NodeKind::Unary(op, e) => Part::Unary(*op, Box::new(self.part(e))),
            NodeKind::Binary(op, a, b, _) => {
                let (a, b) = (self.part(a), self.part(b));
                Part::Binary(*op, Box::new(a), Box::new(b))
            }
            NodeKind::If(cond, yes, no) => {
                let cond = Box::new(self.part(cond));
                let yes = self.block(yes);
                Part::If(cond, yes, self.block(no))
            }
            NodeKind::Call(function, args) => {
                Part::Call(*function, args.iter().map(|e| self.part(e)).collect())
            }
        }
    }
}
