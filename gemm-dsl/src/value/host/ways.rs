//! The conditions of all rows as one chain of tests: `&&`, `||` and `!` are where an answer leads.

use super::super::cover::turned;
use super::super::tree::{Binary, Unary};
use super::Value;
use super::part::{Body, Part, Waves};

/// A test, and where each answer leads: to a step, or behind the steps to a row, and behind the rows to none.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) test: Test,
    pub(super) yes: usize,
    pub(super) no: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// Whether the integer at a place is one of a range.
    Within(usize, u64, u64),
    /// Whether what has this place is so.
    Truth(usize),
    /// How the waves of this number compare.
    Waves(Waves, Binary, f64),
    /// Any other condition.
    Other(Body),
}

/// Where an answer leads while the steps behind it are known alone.
#[derive(Clone, Copy)]
enum Way {
    Step(usize),
    Row(usize),
}

/// The steps of conditions, and where to begin.
pub(super) fn ways(conditions: Vec<Option<Body>>) -> (Vec<Step>, usize) {
    let mut steps = Vec::new();
    // From the last row to the first: behind a condition comes the next one.
    let mut next = Way::Row(conditions.len());
    for (row, condition) in conditions.into_iter().enumerate().rev() {
        let chosen = Way::Row(row);
        next = match condition {
            None => chosen,
            Some(Body { lets, value }) if lets.is_empty() => {
                way(&mut steps, *value, (chosen, next))
            }
            Some(body) => step(&mut steps, Test::Other(body), (chosen, next)),
        };
    }
    let count = steps.len();
    let place = |way| match way {
        Way::Step(step) => step,
        Way::Row(row) => count + row,
    };
    let steps =
        steps.into_iter().map(|(test, yes, no)| Step { test, yes: place(yes), no: place(no) });
    (steps.collect(), place(next))
}

/// A test, and where its answers lead.
type Branch = (Test, Way, Way);

fn step(steps: &mut Vec<Branch>, test: Test, (yes, no): (Way, Way)) -> Way {
    steps.push((test, yes, no));
    Way::Step(steps.len() - 1)
}

/// The steps of a truth value; where they begin.
fn way(steps: &mut Vec<Branch>, e: Part, (yes, no): (Way, Way)) -> Way {
    match e {
        Part::Constant(Value::Bool(holds)) => {
            if holds {
                yes
            } else {
                no
            }
        }
        Part::Truth(place) => step(steps, Test::Truth(place), (yes, no)),
        Part::Unary(Unary::Not, e) => way(steps, *e, (no, yes)),
        Part::Binary(Binary::And, a, b) => {
            let b = way(steps, *b, (yes, no));
            way(steps, *a, (b, no))
        }
        Part::Binary(Binary::Or, a, b) => {
            let b = way(steps, *b, (yes, no));
            way(steps, *a, (yes, b))
        }
        Part::Binary(op, a, b) => match (*a, *b) {
            (Part::Integer(place), Part::Constant(Value::Int(than))) => {
                compared(steps, (place, op, than), (yes, no))
            }
            (Part::Constant(Value::Int(than)), Part::Integer(place)) => {
                compared(steps, (place, turned(op), than), (yes, no))
            }
            (Part::Waves(waves), Part::Constant(Value::Float(than))) => {
                step(steps, Test::Waves(waves, op, than), (yes, no))
            }
            (Part::Constant(Value::Float(than)), Part::Waves(waves)) => {
                step(steps, Test::Waves(waves, turned(op), than), (yes, no))
            }
            (a, b) => other(steps, Part::Binary(op, Box::new(a), Box::new(b)), (yes, no)),
        },
        e => other(steps, e, (yes, no)),
    }
}

fn other(steps: &mut Vec<Branch>, e: Part, ways: (Way, Way)) -> Way {
    step(steps, Test::Other(Body { lets: Vec::new(), value: Box::new(e) }), ways)
}

/// A comparison of the integer at a place with a number.
fn compared(
    steps: &mut Vec<Branch>,
    (place, op, than): (usize, Binary, i128),
    (yes, no): (Way, Way),
) -> Way {
    const LARGEST: i128 = u64::MAX as i128;
    let (least, most) = match op {
        Binary::Ne => return compared(steps, (place, Binary::Eq, than), (no, yes)),
        Binary::Lt => (0, than - 1),
        Binary::Le => (0, than),
        Binary::Gt => (than + 1, LARGEST),
        Binary::Ge => (than, LARGEST),
        Binary::Eq => (than, than),
        _ => unreachable!("checked: {op:?} of integers is no truth value"),
    };
    let range = (u64::try_from(least.max(0)).ok(), u64::try_from(most.min(LARGEST)).ok());
    match range {
        (Some(least), Some(most)) if least <= most => {
            step(steps, Test::Within(place, least, most), (yes, no))
        }
        _ => no,
    }
}
