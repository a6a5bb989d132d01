//! Decision tree of the conditions of all rules of a table. Its branches replace `&&`, `||` and
//! `!`.

use super::super::tree::{Binary, Unary};
use super::ConditionValue;
use super::node::{ConditionBlock, ConditionNode, WavesQuery};
use crate::expr::reachability::turned;

/// Test with two successors. A successor below the number of nodes is a node. Subtracting the
/// number of nodes from a greater successor gives the index of a rule, or the number of rules if no
/// rule matches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DecisionNode {
    pub(super) test: Test,
    pub(super) yes: usize,
    pub(super) no: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// True if the integer at this index of the facts is in a range.
    Within(usize, u64, u64),
    /// True if the term with this number is in a range.
    Term(usize, i128, i128),
    /// True if the boolean at this index of the facts is true.
    Truth(usize),
    /// Compares the waves of a tile with a number.
    Waves(WavesQuery, Binary, f64),
    Other(ConditionBlock),
}

/// Successor of a test during the construction of the tree, which starts at the last rule.
#[derive(Clone, Copy)]
enum Branch {
    Node(usize),
    Rule(usize),
}

/// Successors of a test if it is true and if it is false.
#[derive(Clone, Copy)]
struct Branches {
    yes: Branch,
    no: Branch,
}

/// Conditions as a decision tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DecisionTree {
    pub(super) nodes: Vec<DecisionNode>,
    /// First node of each rule's condition, in the encoding of [`DecisionNode::yes`].
    pub(super) starts: Vec<usize>,
    /// Integer expressions that are compared with constants, such as `m * n`, each stored once.
    pub(super) terms: Vec<ConditionNode>,
}

#[derive(Default)]
struct Builder {
    nodes: Vec<(Test, Branches)>,
    terms: Vec<ConditionNode>,
}

impl DecisionTree {
    /// Builds the tree of the conditions of all rules, in their order.
    pub(super) fn new(conditions: Vec<Option<ConditionBlock>>) -> Self {
        let mut builder = Builder::default();
        // The rules are visited from the last to the first, because a false condition leads to the
        // next rule.
        let mut no = Branch::Rule(conditions.len());
        let mut starts = Vec::new();
        for (rule, condition) in conditions.into_iter().enumerate().rev() {
            let yes = Branch::Rule(rule);
            no = match condition {
                None => yes,
                Some(ConditionBlock { lets, value }) if lets.is_empty() => {
                    builder.truth(*value, Branches { yes, no })
                }
                Some(block) => builder.node(Test::Other(block), Branches { yes, no }),
            };
            starts.push(no);
        }
        let Builder { nodes, terms } = builder;
        let count = nodes.len();
        let place = |next| match next {
            Branch::Node(node) => node,
            Branch::Rule(rule) => count + rule,
        };
        let nodes = nodes.into_iter().map(|(test, Branches { yes, no })| DecisionNode {
            test,
            yes: place(yes),
            no: place(no),
        });
        let starts = starts.into_iter().rev().map(place).collect();
        Self { nodes: nodes.collect(), starts, terms }
    }
}

impl Builder {
    fn node(&mut self, test: Test, branches: Branches) -> Branch {
        self.nodes.push((test, branches));
        Branch::Node(self.nodes.len() - 1)
    }

    /// Adds the nodes of a boolean and returns the first one.
    fn truth(&mut self, e: ConditionNode, branches: Branches) -> Branch {
        let Branches { yes, no } = branches;
        match e {
            ConditionNode::Constant(ConditionValue::Bool(holds)) => {
                if holds {
                    yes
                } else {
                    no
                }
            }
            ConditionNode::Truth(place) => self.node(Test::Truth(place), branches),
            ConditionNode::Unary(Unary::Not, e) => self.truth(*e, Branches { yes: no, no: yes }),
            ConditionNode::Binary(Binary::And, a, b) => {
                let yes = self.truth(*b, branches);
                self.truth(*a, Branches { yes, no })
            }
            ConditionNode::Binary(Binary::Or, a, b) => {
                let no = self.truth(*b, branches);
                self.truth(*a, Branches { yes, no })
            }
            ConditionNode::Binary(op, a, b) => match (*a, *b) {
                (
                    ConditionNode::Waves(waves),
                    ConditionNode::Constant(ConditionValue::Float(than)),
                ) => self.node(Test::Waves(waves, op, than), branches),
                (
                    ConditionNode::Constant(ConditionValue::Float(than)),
                    ConditionNode::Waves(waves),
                ) => self.node(Test::Waves(waves, turned(op), than), branches),
                (term, ConditionNode::Constant(ConditionValue::Int(than))) => {
                    self.compared(term, op, than, branches)
                }
                (ConditionNode::Constant(ConditionValue::Int(than)), term) => {
                    self.compared(term, turned(op), than, branches)
                }
                (a, b) => self.other(ConditionNode::Binary(op, Box::new(a), Box::new(b)), branches),
            },
            e => self.other(e, branches),
        }
    }

    fn other(&mut self, e: ConditionNode, branches: Branches) -> Branch {
        let block = ConditionBlock { lets: Vec::new(), value: Box::new(e) };
        self.node(Test::Other(block), branches)
    }

    /// Adds a node that compares an integer with a constant.
    fn compared(
        &mut self,
        term: ConditionNode,
        op: Binary,
        than: i128,
        branches: Branches,
    ) -> Branch {
        let Branches { yes, no } = branches;
        let (least, most) = match op {
            Binary::Ne => {
                return self.compared(term, Binary::Eq, than, Branches { yes: no, no: yes });
            }
            Binary::Lt => (i128::MIN, than - 1),
            Binary::Le => (i128::MIN, than),
            Binary::Gt => (than + 1, i128::MAX),
            Binary::Ge => (than, i128::MAX),
            Binary::Eq => (than, than),
            _ => unreachable!("checked: {op:?} of integers is not a boolean"),
        };
        let test = match term {
            ConditionNode::Integer(place) => {
                let end = |end: i128| u64::try_from(end.min(u64::MAX.into()));
                match (end(least.max(0)), end(most)) {
                    (Ok(least), Ok(most)) if least <= most => Test::Within(place, least, most),
                    _ => return no,
                }
            }
            term => Test::Term(self.term(term), least, most),
        };
        self.node(test, branches)
    }

    /// Returns the number of a term, and stores the term if it is new.
    fn term(&mut self, term: ConditionNode) -> usize {
        self.terms.iter().position(|known| *known == term).unwrap_or_else(|| {
            self.terms.push(term);
            self.terms.len() - 1
        })
    }
}
