//! Conditions on the host: expressions of integers and truth values. The check has found that with extents up to
//! 2^48 no integer leaves the 128 bits that they are computed in and nothing is divided by zero. With greater ones,
//! which no array has, an integer stays at the end of its range, and a condition with a quotient by zero does not hold.

use super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::{Closure, Function};

/// The value of an integer that a name stands for.
type Integers<'i> = &'i dyn Fn(&str) -> i128;

/// A value on the host.
#[derive(Clone, Copy, PartialEq)]
enum Value {
    Int(i128),
    Bool(bool),
    /// What such expressions do not have: floats, and a quotient by zero.
    None,
}

impl Closure {
    /// Whether a condition holds where its names stand for these integers.
    pub(crate) fn holds(&self, integers: Integers<'_>) -> bool {
        let mut known = Vec::new();
        Host { integers, known: &mut known }.block(&self.body) == Value::Bool(true)
    }

    /// Whether a condition always holds, or never, where it names nothing.
    pub(crate) fn constant(&self) -> Option<bool> {
        let mut named = false;
        self.body.visit(&mut |e| {
            named |=
                matches!(&e.kind, NodeKind::Name(name) if self.env.integers.contains(&&**name));
        });
        (!named).then(|| self.holds(&|_| 0))
    }
}

struct Host<'h, 'c> {
    integers: Integers<'h>,
    known: &'h mut Vec<(&'c str, Value)>,
}

impl<'c> Host<'_, 'c> {
    fn block(&mut self, block: &'c Block) -> Value {
        let outer = self.known.len();
        for definition in &block.lets {
            let value = self.node(&definition.value);
            self.known.push((&definition.name, value));
        }
        let value = self.node(&block.value);
        self.known.truncate(outer);
        value
    }

    fn node(&mut self, e: &'c Node) -> Value {
        use Value::{Bool, Int};
        match &e.kind {
            NodeKind::Int(value) => Int((*value).into()),
            NodeKind::Float(_) => Value::None,
            NodeKind::Name(name) => {
                let known = self.known.iter().rev().find(|(known, _)| known == name);
                known.map_or_else(|| Int((self.integers)(name)), |(_, value)| *value)
            }
            NodeKind::Unary(op, e) => match (op, self.node(e)) {
                (Unary::Neg, Int(x)) => Int(x.saturating_neg()),
                (Unary::Not, Bool(x)) => Bool(!x),
                _ => Value::None,
            },
            NodeKind::If(cond, yes, no) => match self.node(cond) {
                Bool(true) => self.block(yes),
                Bool(false) => self.block(no),
                _ => Value::None,
            },
            NodeKind::Binary(op, a, b, _) => {
                let (a, b) = (self.node(a), self.node(b));
                binary(*op, a, b)
            }
            NodeKind::Call(function, args) => {
                let args: Vec<Value> = args.iter().map(|e| self.node(e)).collect();
                match (function, args.as_slice()) {
                    (Function::Min, [Int(a), Int(b)]) => Int(*a.min(b)),
                    (Function::Max, [Int(a), Int(b)]) => Int(*a.max(b)),
                    (Function::Abs, [Int(x)]) => Int(x.saturating_abs()),
                    (Function::Clamp, [Int(x), Int(low), Int(high)]) => Int(*x.max(low).min(high)),
                    _ => Value::None,
                }
            }
        }
    }
}

fn binary(op: Binary, a: Value, b: Value) -> Value {
    use Value::{Bool, Int};
    match (op, a, b) {
        (Binary::And, Bool(a), Bool(b)) => Bool(a && b),
        (Binary::Or, Bool(a), Bool(b)) => Bool(a || b),
        (Binary::Add, Int(a), Int(b)) => Int(a.saturating_add(b)),
        (Binary::Sub, Int(a), Int(b)) => Int(a.saturating_sub(b)),
        (Binary::Mul, Int(a), Int(b)) => Int(a.saturating_mul(b)),
        (Binary::Div | Binary::Rem, Int(_), Int(0)) => Value::None,
        (Binary::Div, Int(a), Int(b)) => Int(a.saturating_div(b)),
        (Binary::Rem, Int(a), Int(b)) => Int(a.wrapping_rem(b)),
        (Binary::Lt, Int(a), Int(b)) => Bool(a < b),
        (Binary::Le, Int(a), Int(b)) => Bool(a <= b),
        (Binary::Gt, Int(a), Int(b)) => Bool(a > b),
        (Binary::Ge, Int(a), Int(b)) => Bool(a >= b),
        (Binary::Eq, Int(a), Int(b)) => Bool(a == b),
        (Binary::Ne, Int(a), Int(b)) => Bool(a != b),
        _ => Value::None,
    }
}
