//! Conditions on the host. The check has found that where facts are in the ranges of the environment no integer
//! leaves the 128 bits that they are computed in and nothing is divided by zero; facts outside of them are
//! refused at the door. Floats are those of IEEE binary64.

use super::tree::{Binary, Block, Node, NodeKind, Unary};
use super::{Closure, Environment, Function, Range};
use crate::intrinsic::{greater, smaller};
use std::collections::HashMap;
use std::fmt;

/// What a name of a condition stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// An extent, or another number.
    Integer(u64),
    /// Whether something is so.
    Truth(bool),
}

/// What a condition asks of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// An integer, and what it can be.
    Integer(&'static str, Range),
    /// A truth value.
    Truth(&'static str),
    /// `waves` of a tile.
    Waves(u32, u32),
}

/// A value on the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
}

/// As a condition asks for it.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Integer(name, _) | Asked::Truth(name) => f.write_str(name),
            Asked::Waves(m, n) => write!(f, "waves({m}x{n})"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => write!(f, "{value:?}"),
            Value::Bool(value) => value.fmt(f),
        }
    }
}

/// The conditions of a table, ready to be evaluated: what they ask has a number, and so have their definitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conditions {
    asked: Vec<Asked>,
    conditions: Vec<Option<Body>>,
}

impl Conditions {
    /// Those of rows, of which one without a condition is for every problem.
    pub(crate) fn new<'c>(rows: impl IntoIterator<Item = Option<&'c Closure>>) -> Self {
        let mut numbers = HashMap::new();
        let conditions = rows.into_iter().map(|row| {
            let closure = row?;
            let mut known = Vec::new();
            Some(
                Reader { env: closure.env, numbers: &mut numbers, known: &mut known }
                    .block(&closure.body),
            )
        });
        let conditions = conditions.collect();
        let mut asked: Vec<(Asked, usize)> = numbers.into_iter().collect();
        asked.sort_by_key(|(_, number)| *number);
        Self { asked: asked.into_iter().map(|(asked, _)| asked).collect(), conditions }
    }

    /// What they ask, in the order of the text.
    pub(crate) fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// How much of that the conditions of the first `rows` rows ask.
    pub(crate) fn asked_by(&self, rows: usize) -> &[Asked] {
        let most = self.conditions.iter().take(rows).flatten().map(Body::asked).max();
        &self.asked[..most.unwrap_or(0)]
    }

    /// The first row whose condition holds where what is asked has the values that are known, or else is what
    /// `ask` says, which is called for what matters, and once.
    pub(crate) fn first(
        &self,
        known: Vec<Option<Value>>,
        ask: &dyn Fn(Asked) -> Value,
    ) -> Option<usize> {
        let mut host = Host { asked: &self.asked, known, ask, locals: Vec::new() };
        let holds = |row: &Option<Body>| match row {
            Some(condition) => host.block(condition) == Value::Bool(true),
            None => true,
        };
        self.conditions.iter().position(holds)
    }
}

impl Closure {
    /// Whether a condition always holds, or never, where it names nothing.
    pub(crate) fn constant(&self) -> Option<bool> {
        let conditions = Conditions::new([Some(self)]);
        let ask = |asked| unreachable!("it asks nothing, not {asked}");
        conditions.asked.is_empty().then(|| conditions.first(Vec::new(), &ask).is_some())
    }
}

/// A block whose names are numbers.
#[derive(Clone, Debug, PartialEq)]
struct Body {
    lets: Vec<Part>,
    value: Box<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Constant(Value),
    /// What is asked under this number.
    Asked(usize),
    /// The definition of this number, counted from the outermost.
    Local(usize),
    Unary(Unary, Box<Part>),
    Binary(Binary, Box<Part>, Box<Part>),
    If(Box<Part>, Body, Body),
    Call(Function, Vec<Part>),
}

impl Body {
    /// One more than the greatest number of what it asks.
    fn asked(&self) -> usize {
        self.lets.iter().map(Part::asked).max().unwrap_or(0).max(self.value.asked())
    }
}

impl Part {
    fn asked(&self) -> usize {
        match self {
            Part::Constant(_) | Part::Local(_) => 0,
            Part::Asked(number) => number + 1,
            Part::Unary(_, e) => e.asked(),
            Part::Binary(_, a, b) => a.asked().max(b.asked()),
            Part::If(cond, yes, no) => cond.asked().max(yes.asked()).max(no.asked()),
            Part::Call(_, args) => args.iter().map(Part::asked).max().unwrap_or(0),
        }
    }
}

/// Gives names their numbers.
struct Reader<'r, 'c> {
    env: &'static Environment,
    numbers: &'r mut HashMap<Asked, usize>,
    known: &'r mut Vec<&'c str>,
}

impl<'c> Reader<'_, 'c> {
    fn asked(&mut self, asked: Asked) -> Part {
        let next = self.numbers.len();
        Part::Asked(*self.numbers.entry(asked).or_insert(next))
    }

    fn block(&mut self, block: &'c Block) -> Body {
        let outer = self.known.len();
        let mut lets = Vec::with_capacity(block.lets.len());
        for definition in &block.lets {
            lets.push(self.part(&definition.value));
            self.known.push(&definition.name);
        }
        let value = Box::new(self.part(&block.value));
        self.known.truncate(outer);
        Body { lets, value }
    }

    fn part(&mut self, e: &'c Node) -> Part {
        match &e.kind {
            NodeKind::Int(value) => Part::Constant(Value::Int((*value).into())),
            NodeKind::Float(bits) => Part::Constant(Value::Float(f64::from_bits(*bits))),
            NodeKind::Waves(m, n) => self.asked(Asked::Waves(*m, *n)),
            NodeKind::Name(name) => match self.known.iter().rposition(|known| known == name) {
                Some(number) => Part::Local(number),
                None => {
                    let integers = self.env.integers.iter().find(|(known, _)| known == name);
                    let integer = integers.map(|(name, range)| Asked::Integer(name, *range));
                    let truth = || self.env.truths().iter().find(|known| *known == name);
                    let asked = integer.or_else(|| truth().map(|name| Asked::Truth(name)));
                    let asked = asked.unwrap_or_else(|| unreachable!("checked: {name} is known"));
                    self.asked(asked)
                }
            },
            NodeKind::Unary(op, e) => Part::Unary(*op, Box::new(self.part(e))),
            NodeKind::Binary(op, a, b, _) => {
                let (a, b) = (self.part(a), self.part(b));
                Part::Binary(*op, Box::new(a), Box::new(b))
            }
            NodeKind::If(cond, yes, no) => {
                let cond = Box::new(self.part(cond));
                let yes = self.block(yes);
                Part::If(cond, yes, self.block(no))
            }
            NodeKind::Call(function, args) => {
                Part::Call(*function, args.iter().map(|e| self.part(e)).collect())
            }
        }
    }
}

struct Host<'h> {
    asked: &'h [Asked],
    known: Vec<Option<Value>>,
    ask: &'h dyn Fn(Asked) -> Value,
    locals: Vec<Value>,
}

impl Host<'_> {
    fn block(&mut self, block: &Body) -> Value {
        let outer = self.locals.len();
        for definition in &block.lets {
            let value = self.part(definition);
            self.locals.push(value);
        }
        let value = self.part(&block.value);
        self.locals.truncate(outer);
        value
    }

    fn truth(&mut self, e: &Part) -> bool {
        match self.part(e) {
            Value::Bool(truth) => truth,
            other => unreachable!("checked: {other} is no truth value"),
        }
    }

    fn part(&mut self, e: &Part) -> Value {
        use Value::{Bool, Float, Int};
        match e {
            Part::Constant(value) => *value,
            Part::Asked(number) => {
                let (asked, ask) = (self.asked[*number], self.ask);
                *self.known[*number].get_or_insert_with(|| ask(asked))
            }
            Part::Local(number) => self.locals[*number],
            Part::Unary(op, e) => match (op, self.part(e)) {
                (Unary::Neg, Int(x)) => Int(-x),
                (Unary::Neg, Float(x)) => Float(-x),
                (Unary::Not, Bool(x)) => Bool(!x),
                (_, other) => unreachable!("checked: the sign is not of {other}"),
            },
            Part::If(cond, yes, no) => match self.truth(cond) {
                true => self.block(yes),
                false => self.block(no),
            },
            Part::Binary(Binary::And, a, b) => Bool(self.truth(a) && self.truth(b)),
            Part::Binary(Binary::Or, a, b) => Bool(self.truth(a) || self.truth(b)),
            Part::Binary(op, a, b) => match (self.part(a), self.part(b)) {
                (Int(a), Int(b)) => integers(*op, a, b),
                (Float(a), Float(b)) => floats(*op, a, b),
                (a, b) => unreachable!("checked: {a} and {b} are numbers of one type"),
            },
            Part::Call(function, args) => {
                let args: Vec<Value> = args.iter().map(|e| self.part(e)).collect();
                call(*function, &args)
            }
        }
    }
}

/// What no operator on two numbers is: [`Host::part`] has joined truth values before.
const JOINED: &str = "`&&` and `||` are of truth values";

fn integers(op: Binary, a: i128, b: i128) -> Value {
    use Value::{Bool, Int};
    // Divisions of 128 bits take their time.
    let short = || i64::try_from(a).ok().zip(i64::try_from(b).ok());
    match op {
        Binary::Add => Int(a + b),
        Binary::Sub => Int(a - b),
        Binary::Mul => Int(a * b),
        Binary::Div => {
            Int(short().and_then(|(a, b)| a.checked_div(b)).map_or_else(|| a / b, i128::from))
        }
        Binary::Rem => {
            Int(short().and_then(|(a, b)| a.checked_rem(b)).map_or_else(|| a % b, i128::from))
        }
        Binary::Lt => Bool(a < b),
        Binary::Le => Bool(a <= b),
        Binary::Gt => Bool(a > b),
        Binary::Ge => Bool(a >= b),
        Binary::Eq => Bool(a == b),
        Binary::Ne => Bool(a != b),
        Binary::And | Binary::Or => unreachable!("{JOINED}"),
    }
}

fn floats(op: Binary, a: f64, b: f64) -> Value {
    use Value::{Bool, Float};
    match op {
        Binary::Add => Float(a + b),
        Binary::Sub => Float(a - b),
        Binary::Mul => Float(a * b),
        Binary::Div => Float(a / b),
        Binary::Rem => unreachable!("checked: `%` is of integers"),
        Binary::Lt => Bool(a < b),
        Binary::Le => Bool(a <= b),
        Binary::Gt => Bool(a > b),
        Binary::Ge => Bool(a >= b),
        Binary::Eq => Bool(a == b),
        Binary::Ne => Bool(a != b),
        Binary::And | Binary::Or => unreachable!("{JOINED}"),
    }
}

fn call(function: Function, args: &[Value]) -> Value {
    use Value::{Float, Int};
    match (function, args) {
        (Function::Min, [Int(a), Int(b)]) => Int(*a.min(b)),
        (Function::Max, [Int(a), Int(b)]) => Int(*a.max(b)),
        (Function::Abs, [Int(x)]) => Int(x.abs()),
        (Function::Clamp, [Int(x), Int(low), Int(high)]) => Int(*x.max(low).min(high)),
        (Function::Min, [Float(a), Float(b)]) => Float(smaller(*a, *b)),
        (Function::Max, [Float(a), Float(b)]) => Float(greater(*a, *b)),
        (Function::Abs, [Float(x)]) => Float(x.abs()),
        (Function::Clamp, [Float(x), Float(low), Float(high)]) => {
            Float(smaller(greater(*x, *low), *high))
        }
        (Function::Sqrt, [Float(x)]) => Float(x.sqrt()),
        (Function::Rsqrt, [Float(x)]) => Float(1.0 / x.sqrt()),
        (Function::Fma, [Float(a), Float(b), Float(c)]) => Float(a.mul_add(*b, *c)),
        (Function::Floor, [Float(x)]) => Float(x.floor()),
        (Function::Round, [Float(x)]) => Float(x.round_ties_even()),
        (Function::Relu, [Float(x)]) => Float(greater(*x, 0.0)),
        (Function::ToF64, [Int(x)]) => Float(*x as f64),
        _ => unreachable!("Environment::functions: {} is of a kernel", function.name()),
    }
}
