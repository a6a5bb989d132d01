//! Reachability of a table's rules: the set of problems that match no earlier rule.
//!
//! A problem is described by the comparisons in the conditions. An integer that is compared with a
//! constant has a range. Any other comparison is a question, whose unknown answer is the same at
//! each occurrence. The analysis is conservative: a set that it calls empty is empty, but a set
//! that it does not call empty may be empty, too.

use super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::{Closure, ExprScope, IntRange};
use std::collections::BTreeMap;

/// Maximum number of regions that are distinguished. Beyond it, the set is unknown.
const MOST: usize = 512;

/// Set of problems whose integers are in given ranges and whose questions have given answers.
#[derive(Clone, Debug, Default)]
struct ProblemRegion {
    integers: BTreeMap<&'static str, IntRange>,
    answers: BTreeMap<String, bool>,
}

impl ProblemRegion {
    /// Returns the intersection, or `None` if it is empty.
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

/// Returns the intersections of two lists of regions; `None` if there are too many.
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

/// Set of problems, such as those that reach or match a rule; `None` if the set is unknown.
#[derive(Clone, Debug)]
pub(crate) struct ProblemSet(Option<Vec<ProblemRegion>>);

impl ProblemSet {
    /// Returns the set of all problems.
    pub(crate) fn all() -> Self {
        Self(Some(vec![ProblemRegion::default()]))
    }

    /// Returns true if the set may contain a problem with these answers.
    pub(crate) fn any_of(&self, answers: &[(&str, bool)]) -> bool {
        let may = |region: &ProblemRegion| {
            answers.iter().all(|(question, is)| {
                region.answers.get(*question).is_none_or(|answer| answer == is)
            })
        };
        self.0.as_ref().is_none_or(|left| left.iter().any(may))
    }

    /// Splits the set by a condition. Returns the problems that match, and keeps the others in
    /// `self`.
    pub(crate) fn take(&mut self, when: &Closure) -> Self {
        let of = |holds| block(when.scope, &when.body, holds);
        // An unknown set stays unknown. All that is known of the returned set is that it matches
        // the condition.
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

/// Returns the regions in which an expression has the value `holds`; `None` if there are too many.
fn node(scope: &ExprScope, e: &Node, holds: bool) -> Option<Vec<ProblemRegion>> {
    match &e.kind {
        NodeKind::Unary(Unary::Not, e) => node(scope, e, !holds),
        NodeKind::Binary(op @ (Binary::And | Binary::Or), a, b, _) => {
            let (own, other) = (node(scope, a, holds)?, node(scope, b, holds)?);
            if (*op == Binary::And) == holds {
                return common(&own, &other);
            }
            // Only the part of the second operand that is not in the first is added, to keep the
            // number of regions small.
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

/// Returns the comparison operator for swapped operands.
pub(super) fn turned(op: Binary) -> Binary {
    match op {
        Binary::Lt => Binary::Gt,
        Binary::Le => Binary::Ge,
        Binary::Gt => Binary::Lt,
        Binary::Ge => Binary::Le,
        other => other,
    }
}

/// Returns an integer's name, the ranges in which a comparison with a constant is true, and the
/// ranges in which it is false.
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
