//! Syntax tree of an expression.

use super::function::Function;
use crate::error::TokenSpan;
use crate::ir::Elem;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Range of tokens in a value, numbered from 0; each bracket counts as one. All spans compare
/// equal, because the position of an expression is not part of its meaning.
#[derive(Clone, Copy, Debug, Default)]
pub struct NodeSpan {
    pub first: usize,
    /// Last token, inclusive.
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

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClosureParam {
    pub name: String,
    /// Names in the index, such as `n` in `bias[n]`; empty for a value of the scope and for a
    /// scalar.
    pub index: Vec<String>,
    /// Element type, if the parameter states it, as in `x[m, n]: bf16`.
    pub elem: Option<Elem>,
    pub at: NodeSpan,
}

/// Result of a closure, as the closure states it: `f32`, or `f32[m]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClosureResult {
    pub elem: Elem,
    /// True for one value for each row.
    pub per_row: bool,
}

/// Block: definitions, and the value that may use them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// `let name = value;`
    pub lets: Vec<Let>,
    pub value: Node,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Let {
    pub name: String,
    pub value: Node,
    pub at: NodeSpan,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub kind: NodeKind,
    pub at: NodeSpan,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// Bits of a non-negative, finite `f64`. In an `f32` expression, the literal is the `f32`
    /// nearest to the shortest text of this `f64`.
    Float(u64),
    /// A non-negative integer.
    Int(i64),
    /// A parameter, a definition or a reserved name.
    Name(String),
    /// An operator on one operand.
    Unary(Unary, Box<Node>),
    /// Operator on two operands, with the position of the operator itself.
    Binary(Binary, Box<Node>, Box<Node>, NodeSpan),
    /// `if condition { yes } else { no }`
    If(Box<Node>, Box<Block>, Box<Block>),
    Call(Function, Vec<Node>),
    /// Fold of a value over the columns of a row, as in `sum(x * x)`. Only scopes with
    /// [`folds`](super::ExprScope::folds) have it.
    Fold(FoldOp, Box<Node>),
    /// `next(e)`: the value of `e` in the odd column of a pair of columns. Only scopes with
    /// [`pairs`](super::ExprScope::pairs) have it.
    Next(Box<Node>),
    /// `pair(x, y)`: the values of the even and of the odd column. It is a value of the closure,
    /// not an operand.
    Pair(Box<Node>, Box<Node>),
    /// `waves(128x256)`, which only conditions may use: the number of tiles of this size, divided
    /// by the number of SMs.
    Waves(u32, u32),
}

/// Operator of a fold over a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoldOp {
    Sum,
    Prod,
    /// Maximum of IEEE 754-2019: NaN wins, −0 is below +0.
    Max,
    /// Minimum of IEEE 754-2019: NaN wins, −0 is below +0.
    Min,
}

impl FoldOp {
    pub const ALL: &[FoldOp] = &[FoldOp::Sum, FoldOp::Prod, FoldOp::Max, FoldOp::Min];

    /// Returns the spelling in the language.
    pub fn name(self) -> &'static str {
        match self {
            FoldOp::Sum => "sum",
            FoldOp::Prod => "prod",
            FoldOp::Max => "max",
            FoldOp::Min => "min",
        }
    }

    /// Returns the operator with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Returns true if a function of several operands has the same name.
    pub(super) fn is_function(self) -> bool {
        matches!(self, FoldOp::Max | FoldOp::Min)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Negation of a number.
    Neg,
    /// Negation of a boolean.
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    /// Quotient; for integers rounded towards zero.
    Div,
    /// Remainder of integers, with the dividend's sign.
    Rem,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
}

/// Precedence of an operator, from the lowest to the highest.
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
    pub const ALL: &[Binary] = {
        use Binary::{Add, And, Div, Eq, Ge, Gt, Le, Lt, Mul, Ne, Or, Rem, Sub};
        &[Add, Sub, Mul, Div, Rem, Lt, Le, Gt, Ge, Eq, Ne, And, Or]
    };

    /// Returns the spelling in the language.
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

    /// Returns true if the operator compares two numbers.
    pub fn is_comparison(self) -> bool {
        self.level() == Precedence::Comparison
    }
}

impl Let {
    /// Returns those of the definitions whose names are read. Adds the names that they read.
    pub(super) fn needed<'l>(lets: &'l [Let], read: &mut HashSet<&'l str>) -> Vec<Let> {
        let mut needed = Vec::new();
        for definition in lets.iter().rev() {
            if read.contains(definition.name.as_str()) {
                definition.value.visit_read(read);
                needed.push(definition.clone());
            }
        }
        needed.reverse();
        needed
    }
}

impl Block {
    /// Returns the block of a value, with those of the definitions that it reads.
    pub(super) fn reading(lets: &[Let], value: Node) -> Self {
        let mut read = HashSet::new();
        value.visit_read(&mut read);
        Self { lets: Let::needed(lets, &mut read), value }
    }

    /// Returns the names that the block reads, including those that it defines.
    pub(super) fn read(&self) -> HashSet<&str> {
        let mut read = HashSet::new();
        self.lets.iter().for_each(|definition| definition.value.visit_read(&mut read));
        self.value.visit_read(&mut read);
        read
    }

    /// Visits every expression of the block, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        self.lets.iter().for_each(|definition| definition.value.visit(f));
        self.value.visit(f);
    }

    /// Visits every name that the block reads, to change it.
    pub(super) fn visit_names(&mut self, f: &mut impl FnMut(&mut String)) {
        self.lets.iter_mut().for_each(|definition| definition.value.visit_names(f));
        self.value.visit_names(f);
    }
}

impl Node {
    /// Visits this expression and its subexpressions, parents first.
    pub fn visit<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        f(self);
        self.children(&mut |child| child.visit(f));
    }

    /// Visits the direct subexpressions, and those in the blocks of an `if`.
    pub(super) fn children<'a>(&'a self, f: &mut impl FnMut(&'a Node)) {
        match &self.kind {
            NodeKind::Float(_) | NodeKind::Int(_) | NodeKind::Name(_) | NodeKind::Waves(..) => {}
            NodeKind::Unary(_, e) | NodeKind::Fold(_, e) | NodeKind::Next(e) => f(e),
            NodeKind::Binary(_, a, b, _) | NodeKind::Pair(a, b) => {
                f(a);
                f(b);
            }
            NodeKind::If(cond, yes, no) => {
                f(cond);
                for block in [yes, no] {
                    block.lets.iter().for_each(|definition| f(&definition.value));
                    f(&block.value);
                }
            }
            NodeKind::Call(_, args) => args.iter().for_each(f),
        }
    }

    /// Visits the subexpressions as [`children`](Self::children) does, to change them.
    pub(super) fn children_mut(&mut self, f: &mut impl FnMut(&mut Node)) {
        match &mut self.kind {
            NodeKind::Float(_) | NodeKind::Int(_) | NodeKind::Name(_) | NodeKind::Waves(..) => {}
            NodeKind::Unary(_, e) | NodeKind::Fold(_, e) | NodeKind::Next(e) => f(e),
            NodeKind::Binary(_, a, b, _) | NodeKind::Pair(a, b) => {
                f(a);
                f(b);
            }
            NodeKind::If(cond, yes, no) => {
                f(cond);
                for block in [yes, no] {
                    block.lets.iter_mut().for_each(|definition| f(&mut definition.value));
                    f(&mut block.value);
                }
            }
            NodeKind::Call(_, args) => args.iter_mut().for_each(f),
        }
    }

    /// Adds the names that the expression reads.
    pub(super) fn visit_read<'a>(&'a self, read: &mut HashSet<&'a str>) {
        self.visit(&mut |e| {
            if let NodeKind::Name(name) = &e.kind {
                read.insert(name);
            }
        });
    }

    pub(super) fn visit_names(&mut self, f: &mut impl FnMut(&mut String)) {
        match &mut self.kind {
            NodeKind::Name(name) => f(name),
            _ => self.children_mut(&mut |child| child.visit_names(f)),
        }
    }
}
