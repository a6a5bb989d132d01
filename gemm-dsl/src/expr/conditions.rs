//! Conditions of a table's rules, which the host evaluates. The check of an expression ensures that
//! no integer exceeds 128 bits and no divisor is zero, as long as the facts are in the ranges of
//! their scope. Facts out of range are rejected before the evaluation. Floats are IEEE binary64.

mod decision_tree;
mod eval;
mod node;

use super::{Closure, IntRange};
use decision_tree::DecisionTree;
use eval::Evaluator;
use node::NodeBuilder;
use std::collections::HashMap;
use std::fmt;

/// Facts about a problem: the values of the names in a condition, in the order of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    integers: [u64; Facts::MOST],
    truths: [bool; Facts::MOST],
}

impl Facts {
    /// Maximum number of integers, and of booleans, in a scope.
    const MOST: usize = 6;

    /// Builds the facts from the scope's integers and booleans.
    pub fn new<const I: usize, const T: usize>(integers: [u64; I], truths: [bool; T]) -> Self {
        const { assert!(I <= Self::MOST && T <= Self::MOST) };
        let mut facts = Self { integers: [0; Self::MOST], truths: [false; Self::MOST] };
        facts.integers[..I].copy_from_slice(&integers);
        facts.truths[..T].copy_from_slice(&truths);
        facts
    }
}

/// Fact that a condition reads. Integers and booleans are identified by indices into [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    /// Index, name and range of an integer.
    Integer(usize, &'static str, IntRange),
    /// Index and name of a boolean.
    Truth(usize, &'static str),
    /// `waves` of a tile.
    Waves(u32, u32),
}

/// Value of a condition's subexpression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConditionValue {
    Int(i128),
    Float(f64),
    Bool(bool),
}

/// Problem in the form in which conditions read it. The type is not generic over the family, so its
/// code is optimised in this crate even if other crates are debug builds.
#[derive(Clone, Copy)]
pub(crate) struct ConditionInput<'p> {
    pub(crate) facts: &'p Facts,
    pub(crate) waves: &'p dyn Fn((u32, u32)) -> f64,
}

impl ConditionInput<'_> {
    /// Returns the value of a fact.
    pub(crate) fn answer(self, asked: Query) -> ConditionValue {
        match asked {
            Query::Integer(place, ..) => ConditionValue::Int(self.facts.integers[place].into()),
            Query::Truth(place, _) => ConditionValue::Bool(self.facts.truths[place]),
            Query::Waves(m, n) => ConditionValue::Float((self.waves)((m, n))),
        }
    }
}

/// Prints the fact as it is written in a condition.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Integer(_, name, _) | Query::Truth(_, name) => f.write_str(name),
            Query::Waves(m, n) => write!(f, "waves({m}x{n})"),
        }
    }
}

impl fmt::Display for ConditionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionValue::Int(value) => value.fmt(f),
            ConditionValue::Float(value) => write!(f, "{value:?}"),
            ConditionValue::Bool(value) => value.fmt(f),
        }
    }
}

/// Conditions of a table, prepared for evaluation. Names are resolved, and `&&`, `||` and `!` are
/// branches between tests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    /// Facts that the conditions read, in the order of the text.
    asked: Vec<Query>,
    /// For each rule, the number of facts that it and all earlier rules read.
    asked_by: Vec<usize>,
    decision_tree: DecisionTree,
}

impl Conditions {
    /// Prepares the conditions of a table's rules. A rule without a condition matches every
    /// problem.
    pub(crate) fn new<'c>(rows: impl IntoIterator<Item = Option<&'c Closure>>) -> Self {
        let (mut numbers, mut asked_by, mut conditions) = (HashMap::new(), Vec::new(), Vec::new());
        for row in rows {
            conditions.push(row.map(|closure| {
                let mut known = Vec::new();
                NodeBuilder { scope: closure.scope, numbers: &mut numbers, known: &mut known }
                    .block(&closure.body)
            }));
            asked_by.push(numbers.len());
        }
        let mut asked: Vec<(Query, usize)> = numbers.into_iter().collect();
        asked.sort_by_key(|(_, number)| *number);
        let asked = asked.into_iter().map(|(asked, _)| asked).collect();
        Self { asked, asked_by, decision_tree: DecisionTree::new(conditions) }
    }

    /// Returns the facts that the conditions up to this rule read, in the order in which they first
    /// occur.
    pub(crate) fn asked_by(&self, row: usize) -> &[Query] {
        &self.asked[..self.asked_by.get(row).copied().unwrap_or(self.asked.len())]
    }

    /// Returns the first integer that a condition reads and that is out of range: its name, its
    /// value and its range.
    pub(crate) fn out_of_range(&self, facts: &Facts) -> Option<(&'static str, u64, IntRange)> {
        self.asked.iter().find_map(|asked| match *asked {
            Query::Integer(place, name, range) => {
                let value = facts.integers[place];
                (!range.contains(value.into())).then_some((name, value, range))
            }
            Query::Truth(..) | Query::Waves(..) => None,
        })
    }

    /// Returns the first rule from `from` on whose condition holds for a problem, if any.
    pub(crate) fn first(&self, problem: ConditionInput<'_>, from: usize) -> Option<usize> {
        let DecisionTree { nodes, starts, terms } = &self.decision_tree;
        let mut host = Evaluator::new(problem, terms);
        let mut at = *starts.get(from)?;
        while let Some(node) = nodes.get(at) {
            at = if host.holds(&node.test) { node.yes } else { node.no };
        }
        let row = at - nodes.len();
        (row < self.asked_by.len()).then_some(row)
    }
}

impl Closure {
    /// Returns the constant value of a condition that reads no facts; `None` if it reads any.
    pub(crate) fn constant(&self) -> Option<bool> {
        let conditions = Conditions::new([Some(self)]);
        let facts = Facts::new([], []);
        let waves = |tile| unreachable!("a constant condition reads no waves of {tile:?}");
        let problem = ConditionInput { facts: &facts, waves: &waves };
        conditions.asked.is_empty().then(|| conditions.first(problem, 0).is_some())
    }
}
