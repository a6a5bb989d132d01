//! What an expression is, once it has been read.

use super::function::Function;
use crate::error::TokenSpan;
use std::hash::{Hash, Hasher};

/// Tokens of a value, counted from 0 with every bracket. They say where a part of an expression comes
/// from, not what it is: all are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSpan {
    /// The first token.
    pub first: usize,
    /// The last one.
    pub last: usize,
}

impl PartialEq for NodeSpan {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for NodeSpan {}

impl Hash for NodeSpan {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl NodeSpan {
    pub(super) fn at(token: usize) -> Self {
        Self { first: token, last: token }
    }

    pub(super) fn to(self, end: NodeSpan) -> Self {
        Self { first: self.first, last: end.last }
    }
}

impl From<NodeSpan> for TokenSpan {
    fn from(NodeSpan { first, last }: NodeSpan) -> Self {
        Self { first, last }
    }
}

/// A parameter of a closure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosureParam {
    /// Its name.
    pub name: String,
    /// What it is indexed by, as `n` in `bias[n]`; nothing for a value at hand and for a scalar.
    pub index: Vec<String>,
    /// Where it stands.
    pub at: NodeSpan,
}

/// Definitions, and the value that is made of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// `let name = value;`
    pub lets: Vec<Let>,
    /// The value of the block.
    pub value: Node,
}

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Let {
    /// The name.
    pub name: String,
    /// What it stands for.
    pub value: Node,
    /// Where the name stands.
    pub at: NodeSpan,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Where it stands.
    pub at: NodeSpan,
}

/// What an expression is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The bits of a finite `f64` that is not negative; where it is an `f32`, the one nearest to its text.
    Float(u64),
    /// A whole number that is not negative.
    Int(i64),
    /// A parameter, a definition or a reserved name.
    Name(String),
    /// An operator on one operand.
    Unary(Unary, Box<Node>),
    /// An operator on two operands; the token is its own.
    Binary(Binary, Box<Node>, Box<Node>, NodeSpan),
    /// `if condition { yes } else { no }`
    If(Box<Node>, Box<Block>, Box<Block>),
    /// A function of the language.
    Call(Function, Vec<Node>),
    /// `waves(128x256)`: a condition's number of tiles of so many rows and columns for each multiprocessor.
    Waves(u32, u32),
}

/// Operators on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Of a number.
    Neg,
    /// Of a truth value.
    Not,
}

/// Operators on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient; of integers towards zero.
    Div,
    /// Remainder of integers, with the dividend's sign.
    Rem,
    /// Less than.
    Lt,
    /// Less than or equal.
    Le,
    /// Greater than.
    Gt,
    /// Greater than or equal.
    Ge,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Both.
    And,
    /// Either.
    Or,
}

/// How tightly an expression binds, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Unary,
    Primary,
}

impl Precedence {
    pub(super) fn above(self) -> Self {
        match self {
            Precedence::Or => Precedence::And,
            Precedence::And => Precedence::Comparison,
            Precedence::Comparison => Precedence::Sum,
            Precedence::Sum => Precedence::Product,
            Precedence::Product => Precedence::Unary,
            Precedence::Unary | Precedence::Primary => Precedence::Primary,
        }
    }
}

impl Binary {
    /// Every operator.
    pub const ALL: &[Binary] = {
        use Binary::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Sub};
        &[Add, Sub, Mul, Div, Rem, Lt, Le, Gt, Ge, Eq, Ne, And, Or]
    };

    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Binary::Add => "+",
            Binary::Sub => "-",
            Binary::Mul => "*",
            Binary::Div => "/",
            Binary::Rem => "%",
            Binary::Lt => "<",
            Binary::Le => "<=",
            Binary::Gt => ">",
            Binary::Ge => ">=",
            Binary::Eq => "==",
            Binary::Ne => "!=",
            Binary::And => "&&",
            Binary::Or => "||",
        }
    }

    pub(super) fn level(self) -> Precedence {
        match self {
            Binary::Add | Binary::Sub => Precedence::Sum,
            Binary::Mul | Binary::Div | Binary::Rem => Precedence::Product,
            Binary::And => Precedence::And,
            Binary::Or => Precedence::Or,
            _ => Precedence::Comparison,
        }
    }

    /// Whether it compares two numbers.
    pub fn is_comparison(self) -> bool {
        self.level() == Precedence::Comparison
    }
}

impl Block {
    /// Visits every expression, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        self.lets.iter().for_each(|definition| definition.value.visit(f));
        self.value.visit(f);
    }
}

impl Node {
    /// Visits this expression and all below it, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        f(self);
        match &self.kind {
            NodeKind::Float(_) | NodeKind::Int(_) | NodeKind::Name(_) | NodeKind::Waves(..) => {}
            NodeKind::Unary(_, e) => e.visit(f),
            NodeKind::Binary(_, a, b, _) => {
                a.visit(f);
                b.visit(f);
            }
            NodeKind::If(cond, yes, no) => {
                cond.visit(f);
                yes.visit(f);
                no.visit(f);
            }
            NodeKind::Call(_, args) => args.iter().for_each(|e| e.visit(f)),
        }
    }
}
