//! Conditions on the host. The check has found that where facts are in the ranges of the environment no integer
//! leaves the 128 bits that they are computed in and nothing is divided by zero; facts outside of them are
//! refused at the door. Floats are those of IEEE binary64.

mod decision_tree;
mod eval;
mod node;

use super::{Closure, IntRange};
use decision_tree::DecisionTree;
use eval::Evaluator;
use node::NodeBuilder;
use std::collections::HashMap;
use std::fmt;

/// What the names of conditions stand for, in the order of their environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    integers: [u64; Facts::MOST],
    truths: [bool; Facts::MOST],
}

impl Facts {
    /// The most integers, and the most truth values, of an environment.
    const MOST: usize = 6;

    /// Extents and other numbers, and whether something is so.
    pub fn new<const I: usize, const T: usize>(integers: [u64; I], truths: [bool; T]) -> Self {
        const { assert!(I <= Self::MOST && T <= Self::MOST) };
        let mut facts = Self { integers: [0; Self::MOST], truths: [false; Self::MOST] };
        facts.integers[..I].copy_from_slice(&integers);
        facts.truths[..T].copy_from_slice(&truths);
        facts
    }
}

/// What a condition asks of a problem. Integers and truth values have their place in the [`Facts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    /// An integer, and what it can be.
    Integer(usize, &'static str, IntRange),
    /// A truth value.
    Truth(usize, &'static str),
    /// `waves` of a tile.
    Waves(u32, u32),
}

/// A value on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ConditionValue {
    Int(i128),
    Float(f64),
    Bool(bool),
}

/// A problem, as conditions see it: of no family, so that debug builds of other crates have it optimised.
#[derive(Clone, Copy)]
pub(crate) struct ConditionInput<'p> {
    pub(crate) facts: &'p Facts,
    pub(crate) waves: &'p dyn Fn((u32, u32)) -> f64,
}

impl ConditionInput<'_> {
    /// The answer to a question.
    pub(crate) fn answer(self, asked: Query) -> ConditionValue {
        match asked {
            Query::Integer(place, ..) => ConditionValue::Int(self.facts.integers[place].into()),
            Query::Truth(place, _) => ConditionValue::Bool(self.facts.truths[place]),
            Query::Waves(m, n) => ConditionValue::Float((self.waves)((m, n))),
        }
    }
}

/// As a condition asks for it.
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

/// The conditions of a table, ready to be evaluated: what they ask has its place, so have their definitions, and
/// `&&`, `||` and `!` are branches from one test to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    /// What they ask, in the order of the text.
    asked: Vec<Query>,
    /// How much of that each row and those before it ask.
    asked_by: Vec<usize>,
    decision_tree: DecisionTree,
}

impl Conditions {
    /// Those of rows, of which one without a condition is for every problem.
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

    /// What the conditions of a row and of those before it ask, in the order of the text.
    pub(crate) fn asked_by(&self, row: usize) -> &[Query] {
        &self.asked[..self.asked_by.get(row).copied().unwrap_or(self.asked.len())]
    }

    /// An integer that is asked for and is none that it can be: its name, its value and what it can be.
    pub(crate) fn out_of_range(&self, facts: &Facts) -> Option<(&'static str, u64, IntRange)> {
        self.asked.iter().find_map(|asked| match *asked {
            Query::Integer(place, name, range) => {
                let value = facts.integers[place];
                (!range.contains(value.into())).then_some((name, value, range))
            }
            Query::Truth(..) | Query::Waves(..) => None,
        })
    }

    /// The first row whose condition holds of a problem, if any.
    pub(crate) fn first(&self, problem: ConditionInput<'_>) -> Option<usize> {
        let DecisionTree { nodes, start, terms } = &self.decision_tree;
        let mut host = Evaluator::new(problem, terms);
        let mut at = *start;
        while let Some(node) = nodes.get(at) {
            at = if host.holds(&node.test) { node.yes } else { node.no };
        }
        let row = at - nodes.len();
        (row < self.asked_by.len()).then_some(row)
    }
}

impl Closure {
    /// Whether a condition always holds, or never, where it names nothing.
    pub(crate) fn constant(&self) -> Option<bool> {
        let conditions = Conditions::new([Some(self)]);
        let facts = Facts::new([], []);
        let waves = |tile| unreachable!("it asks nothing, not waves of {tile:?}");
        let problem = ConditionInput { facts: &facts, waves: &waves };
        conditions.asked.is_empty().then(|| conditions.first(problem).is_some())
    }
}
