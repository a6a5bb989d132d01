//! Which problems come to a row of a table: those that the conditions before it leave.
//!
//! A problem is told by what conditions compare: integers that stand alone against a number have ranges, and
//! everything else is a question whose answer may be anything, but the same wherever the question is. So what is
//! found to be left of no problem is left of none; that something is left may be wrong.

use super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::{Closure, ExprScope, IntRange};
use std::collections::BTreeMap;

/// The most regions that are told apart; of more, nothing is found.
const MOST: usize = 512;

/// Problems whose integers are in ranges, and that answer questions so.
#[derive(Clone, Debug, Default)]
struct ProblemRegion {
    integers: BTreeMap<&'static str, IntRange>,
    answers: BTreeMap<String, bool>,
}

impl ProblemRegion {
    /// What two have in common, if there is anything.
    fn and(&self, other: &Self) -> Option<Self> {
        let mut both = self.clone();
        for (name, range) in &other.integers {
            let own = both.integers.entry(name).or_insert(*range);
            own.least = own.least.max(range.least);
            own.most = own.most.min(range.most);
            if own.least > own.most {
                return None;
            }
        }
        for (question, answer) in &other.answers {
            if *both.answers.entry(question.clone()).or_insert(*answer) != *answer {
                return None;
            }
        }
        Some(both)
    }
}

/// What several have in common with several others; none of too many.
fn common(some: &[ProblemRegion], others: &[ProblemRegion]) -> Option<Vec<ProblemRegion>> {
    let mut all = Vec::new();
    for one in some {
        all.extend(others.iter().filter_map(|other| one.and(other)));
        if all.len() > MOST {
            return None;
        }
    }
    Some(all)
}

/// Problems: those that no condition so far holds of, or those of them that one does.
#[derive(Clone, Debug)]
pub(crate) struct ProblemSet(Option<Vec<ProblemRegion>>);

impl ProblemSet {
    /// All problems.
    pub(crate) fn all() -> Self {
        Self(Some(vec![ProblemRegion::default()]))
    }

    /// Whether some may be left that answer questions so.
    pub(crate) fn any_of(&self, answers: &[(&str, bool)]) -> bool {
        let may = |region: &ProblemRegion| {
            answers.iter().all(|(question, is)| {
                region.answers.get(*question).is_none_or(|answer| answer == is)
            })
        };
        self.0.as_ref().is_none_or(|left| left.iter().any(may))
    }

    /// Takes those that a condition holds of, and gives them.
    pub(crate) fn take(&mut self, when: &Closure) -> Self {
        let of = |holds| block(when.scope, &when.body, holds);
        // Of what is left nothing is known but that the condition holds of what comes.
        let Some(left) = &self.0 else { return Self(of(true)) };
        let comes = of(true).and_then(|regions| common(left, &regions));
        let left = of(false).and_then(|regions| common(left, &regions));
        self.0 = left;
        Self(comes)
    }
}

fn block(scope: &ExprScope, block: &Block, holds: bool) -> Option<Vec<ProblemRegion>> {
    match block.lets.is_empty() {
        true => node(scope, &block.value, holds),
        false => Some(question(block.to_string(), holds)),
    }
}

/// The problems of which an expression holds, or does not; none of too many regions.
fn node(scope: &ExprScope, e: &Node, holds: bool) -> Option<Vec<ProblemRegion>> {
    match &e.kind {
        NodeKind::Unary(Unary::Not, e) => node(scope, e, !holds),
        NodeKind::Binary(op @ (Binary::And | Binary::Or), a, b, _) => {
            let (own, other) = (node(scope, a, holds)?, node(scope, b, holds)?);
            if (*op == Binary::And) == holds {
                return common(&own, &other);
            }
            // Of the second those alone that are not of the first, so that regions stay few.
            let other = common(&node(scope, a, !holds)?, &other)?;
            Some(own.into_iter().chain(other).collect())
        }
        NodeKind::Binary(op, a, b, _) => {
            let compared = match (&a.kind, &b.kind) {
                (NodeKind::Name(name), NodeKind::Int(value)) => ranges(scope, name, *op, *value),
                (NodeKind::Int(value), NodeKind::Name(name)) => {
                    ranges(scope, name, turned(*op), *value)
                }
                _ => None,
            };
            let Some((name, yes, no)) = compared else {
                return Some(question(e.to_string(), holds));
            };
            let ranges = if holds { yes } else { no };
            let region = |range| ProblemRegion {
                integers: [(name, range)].into(),
                ..ProblemRegion::default()
            };
            Some(ranges.into_iter().filter(|range| range.least <= range.most).map(region).collect())
        }
        _ => Some(question(e.to_string(), holds)),
    }
}

fn question(question: String, holds: bool) -> Vec<ProblemRegion> {
    vec![ProblemRegion { answers: [(question, holds)].into(), ..ProblemRegion::default() }]
}

/// The same comparison from the other side.
pub(super) fn turned(op: Binary) -> Binary {
    match op {
        Binary::Lt => Binary::Gt,
        Binary::Le => Binary::Ge,
        Binary::Gt => Binary::Lt,
        Binary::Ge => Binary::Le,
        other => other,
    }
}

/// An integer, its ranges where a comparison with a number holds, and where it does not.
fn ranges(
    scope: &ExprScope,
    name: &str,
    op: Binary,
    value: i64,
) -> Option<(&'static str, Vec<IntRange>, Vec<IntRange>)> {
    let (name, IntRange { least, most }) =
        scope.integers.iter().find(|(known, _)| *known == name)?;
    let value = i128::from(value);
    let (below, above) = (
        |end: i128| IntRange { least: *least, most: end.min(*most) },
        |start: i128| IntRange { least: start.max(*least), most: *most },
    );
    let at = IntRange { least: value.max(*least), most: value.min(*most) };
    let (yes, no) = match op {
        Binary::Lt => (vec![below(value - 1)], vec![above(value)]),
        Binary::Le => (vec![below(value)], vec![above(value + 1)]),
        Binary::Gt => (vec![above(value + 1)], vec![below(value)]),
        Binary::Ge => (vec![above(value)], vec![below(value - 1)]),
        Binary::Eq => (vec![at], vec![below(value - 1), above(value + 1)]),
        Binary::Ne => (vec![below(value - 1), above(value + 1)], vec![at]),
        _ => return None,
    };
    Some((name, yes, no))
}
