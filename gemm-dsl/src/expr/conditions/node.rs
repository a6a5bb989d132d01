//! Conditions with resolved names: facts have become indices, and calls of `waves` have numbers.

use super::super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::super::{ExprScope, Function};
use super::{ConditionValue, Query};
use std::collections::HashMap;

/// Tile that a call of `waves` names, and the number of the call's cached value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WavesQuery {
    pub(super) tile: (u32, u32),
    pub(super) number: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConditionBlock {
    pub(super) lets: Vec<ConditionNode>,
    pub(super) value: Box<ConditionNode>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ConditionNode {
    Constant(ConditionValue),
    /// Integer at this index of the facts.
    Integer(usize),
    /// Truth value at this index of the facts.
    Truth(usize),
    Waves(WavesQuery),
    /// Definition with this number, counted from the outermost block.
    Local(usize),
    Unary(Unary, Box<ConditionNode>),
    Binary(Binary, Box<ConditionNode>, Box<ConditionNode>),
    If(Box<ConditionNode>, ConditionBlock, ConditionBlock),
    Call(Function, Vec<ConditionNode>),
}

/// Resolves the names of conditions.
pub(super) struct NodeBuilder<'r, 'c> {
    pub(super) scope: &'static ExprScope,
    pub(super) numbers: &'r mut HashMap<Query, usize>,
    pub(super) known: &'r mut Vec<&'c str>,
}

impl<'c> NodeBuilder<'_, 'c> {
    fn asked(&mut self, asked: Query) -> ConditionNode {
        let next = self.numbers.len();
        let number = *self.numbers.entry(asked).or_insert(next);
        match asked {
            Query::Integer(place, ..) => ConditionNode::Integer(place),
            Query::Truth(place, _) => ConditionNode::Truth(place),
            Query::Waves(m, n) => ConditionNode::Waves(WavesQuery { tile: (m, n), number }),
        }
    }

    pub(super) fn block(&mut self, block: &'c Block) -> ConditionBlock {
        let outer = self.known.len();
        let mut lets = Vec::with_capacity(block.lets.len());
        for definition in &block.lets {
            lets.push(self.part(&definition.value));
            self.known.push(&definition.name);
        }
        let value = Box::new(self.part(&block.value));
        self.known.truncate(outer);
        ConditionBlock { lets, value }
    }

    fn part(&mut self, e: &'c Node) -> ConditionNode {
        match &e.kind {
            NodeKind::Int(value) => ConditionNode::Constant(ConditionValue::Int((*value).into())),
            NodeKind::Float(bits) => {
                ConditionNode::Constant(ConditionValue::Float(f64::from_bits(*bits)))
            }
            NodeKind::Waves(m, n) => self.asked(Query::Waves(*m, *n)),
            NodeKind::Name(name) => match self.known.iter().rposition(|known| known == name) {
                Some(number) => ConditionNode::Local(number),
                None => {
                    let mut integers = self.scope.integers.iter().enumerate();
                    let integer = integers.find(|(_, (known, _))| known == name);
                    let integer =
                        integer.map(|(at, (name, range))| Query::Integer(at, name, *range));
                    let mut truths = self.scope.truths().iter().enumerate();
                    let truth = truths.find(|(_, known)| *known == name);
                    let asked = integer.or(truth.map(|(at, name)| Query::Truth(at, name)));
                    let asked = asked.unwrap_or_else(|| unreachable!("checked: {name} is known"));
                    self.asked(asked)
                }
            },
            NodeKind::Unary(op, e) => ConditionNode::Unary(*op, Box::new(self.part(e))),
            NodeKind::Binary(op, a, b, _) => {
                let (a, b) = (self.part(a), self.part(b));
                ConditionNode::Binary(*op, Box::new(a), Box::new(b))
            }
            NodeKind::If(cond, yes, no) => {
                let cond = Box::new(self.part(cond));
                let yes = self.block(yes);
                ConditionNode::If(cond, yes, self.block(no))
            }
            NodeKind::Fold(..) => unreachable!("ExprScope: no condition has folds"),
            NodeKind::Next(_) | NodeKind::Pair(..) => {
                unreachable!("ExprScope: no condition has pairs of columns")
            }
            NodeKind::Call(function, args) => {
                ConditionNode::Call(*function, args.iter().map(|e| self.part(e)).collect())
            }
        }
    }
}
