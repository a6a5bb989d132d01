//! The conditions of all rows as one chain of tests: `&&`, `||` and `!` are where an answer leads.

use super::super::tree::{Binary, Unary};
use super::Value;
use super::part::{Body, Part, Waves};
use crate::expr::reachability::turned;

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
    /// Whether the term of this number is one of a range.
    Term(usize, i128, i128),
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

/// Conditions as steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ways {
    pub(super) steps: Vec<Step>,
    /// Where to begin, as [`Step::yes`].
    pub(super) start: usize,
    /// What stands on one side of comparisons with an integer, as `m * n`, each once.
    pub(super) terms: Vec<Part>,
}

/// Steps in the making.
#[derive(Default)]
struct Builder {
    steps: Vec<Branch>,
    terms: Vec<Part>,
}

/// The steps of conditions.
pub(super) fn ways(conditions: Vec<Option<Body>>) -> Ways {
    let mut builder = Builder::default();
    // From the last row to the first: behind a condition comes the next one.
    let mut next = Way::Row(conditions.len());
    for (row, condition) in conditions.into_iter().enumerate().rev() {
        let chosen = Way::Row(row);
        next = match condition {
            None => chosen,
            Some(Body { lets, value }) if lets.is_empty() => builder.way(*value, (chosen, next)),
            Some(body) => builder.step(Test::Other(body), (chosen, next)),
        };
    }
    let Builder { steps, terms } = builder;
    let count = steps.len();
    let place = |way| match way {
        Way::Step(step) => step,
        Way::Row(row) => count + row,
    };
    let steps =
        steps.into_iter().map(|(test, yes, no)| Step { test, yes: place(yes), no: place(no) });
    Ways { steps: steps.collect(), start: place(next), terms }
}

/// A test, and where its answers lead.
type Branch = (Test, Way, Way);

impl Builder {
    fn step(&mut self, test: Test, (yes, no): (Way, Way)) -> Way {
        self.steps.push((test, yes, no));
        Way::Step(self.steps.len() - 1)
    }

    /// The steps of a truth value; where they begin.
    fn way(&mut self, e: Part, (yes, no): (Way, Way)) -> Way {
        match e {
            Part::Constant(Value::Bool(holds)) => {
                if holds {
                    yes
                } else {
                    no
                }
            }
            Part::Truth(place) => self.step(Test::Truth(place), (yes, no)),
            Part::Unary(Unary::Not, e) => self.way(*e, (no, yes)),
            Part::Binary(Binary::And, a, b) => {
                let b = self.way(*b, (yes, no));
                self.way(*a, (b, no))
            }
            Part::Binary(Binary::Or, a, b) => {
                let b = self.way(*b, (yes, no));
                self.way(*a, (yes, b))
            }
            Part::Binary(op, a, b) => match (*a, *b) {
                (Part::Waves(waves), Part::Constant(Value::Float(than))) => {
                    self.step(Test::Waves(waves, op, than), (yes, no))
                }
                (Part::Constant(Value::Float(than)), Part::Waves(waves)) => {
                    self.step(Test::Waves(waves, turned(op), than), (yes, no))
                }
                (term, Part::Constant(Value::Int(than))) => {
                    self.compared(term, (op, than), (yes, no))
                }
                (Part::Constant(Value::Int(than)), term) => {
                    self.compared(term, (turned(op), than), (yes, no))
                }
                (a, b) => self.other(Part::Binary(op, Box::new(a), Box::new(b)), (yes, no)),
            },
            e => self.other(e, (yes, no)),
        }
    }

    fn other(&mut self, e: Part, ways: (Way, Way)) -> Way {
        self.step(Test::Other(Body { lets: Vec::new(), value: Box::new(e) }), ways)
    }

    /// A comparison of an integer with a number.
    fn compared(&mut self, term: Part, (op, than): (Binary, i128), (yes, no): (Way, Way)) -> Way {
        let (least, most) = match op {
            Binary::Ne => return self.compared(term, (Binary::Eq, than), (no, yes)),
            Binary::Lt => (i128::MIN, than - 1),
            Binary::Le => (i128::MIN, than),
            Binary::Gt => (than + 1, i128::MAX),
            Binary::Ge => (than, i128::MAX),
            Binary::Eq => (than, than),
            _ => unreachable!("checked: {op:?} of integers is no truth value"),
        };
        let test = match term {
            Part::Integer(place) => {
                let end = |end: i128| u64::try_from(end.min(u64::MAX.into()));
                match (end(least.max(0)), end(most)) {
                    (Ok(least), Ok(most)) if least <= most => Test::Within(place, least, most),
                    _ => return no,
                }
            }
            term => Test::Term(self.term(term), least, most),
        };
        self.step(test, (yes, no))
    }

    /// The number of a term.
    fn term(&mut self, term: Part) -> usize {
        self.terms.iter().position(|known| *known == term).unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        })
    }
}
