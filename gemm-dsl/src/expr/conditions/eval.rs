//! Evaluation of conditions on the host.

use super::super::Function;
use super::super::tree::{Binary, Unary};
use super::node::{ConditionBlock, ConditionNode, WavesQuery};
use super::{ConditionInput, ConditionValue};
use crate::expr::conditions::decision_tree::Test;
use crate::target::intrinsic::{greater, smaller};

/// Maximum number of waves, and of terms, that are cached per problem. Others are recomputed at
/// each use.
const KEPT: usize = 32;

pub(super) struct Evaluator<'h> {
    problem: ConditionInput<'h>,
    /// Terms to which the numbers in [`Test::Term`] refer.
    terms: &'h [ConditionNode],
    /// Values of `waves` computed so far.
    waves: [Option<f64>; KEPT],
    integers: [Option<i128>; KEPT],
    locals: Vec<ConditionValue>,
}

impl<'h> Evaluator<'h> {
    pub(super) fn new(problem: ConditionInput<'h>, terms: &'h [ConditionNode]) -> Self {
        let (waves, integers) = ([None; KEPT], [None; KEPT]);
        Self { problem, terms, waves, integers, locals: Vec::new() }
    }

    pub(super) fn holds(&mut self, test: &Test) -> bool {
        match test {
            Test::Within(place, least, most) => {
                (*least..=*most).contains(&self.problem.facts.integers[*place])
            }
            Test::Term(number, least, most) => (*least..=*most).contains(&self.term(*number)),
            Test::Truth(place) => self.problem.facts.truths[*place],
            Test::Waves(waves, op, than) => {
                let found = self.waves(*waves);
                floats(*op, found, *than) == ConditionValue::Bool(true)
            }
            Test::Other(body) => self.block(body) == ConditionValue::Bool(true),
        }
    }

    fn waves(&mut self, WavesQuery { tile, number }: WavesQuery) -> f64 {
        let compute = || (self.problem.waves)(tile);
        match self.waves.get_mut(number) {
            Some(kept) => *kept.get_or_insert_with(compute),
            None => compute(),
        }
    }

    fn term(&mut self, number: usize) -> i128 {
        if let Some(Some(known)) = self.integers.get(number) {
            return *known;
        }
        let terms = self.terms;
        let value = match self.part(&terms[number]) {
            ConditionValue::Int(value) => value,
            other => unreachable!("checked: {other} is compared with an integer"),
        };
        if let Some(kept) = self.integers.get_mut(number) {
            *kept = Some(value);
        }
        value
    }

    fn block(&mut self, block: &ConditionBlock) -> ConditionValue {
        let outer = self.locals.len();
        for definition in &block.lets {
            let value = self.part(definition);
            self.locals.push(value);
        }
        let value = self.part(&block.value);
        self.locals.truncate(outer);
        value
    }

    fn truth(&mut self, e: &ConditionNode) -> bool {
        match self.part(e) {
            ConditionValue::Bool(truth) => truth,
            other => unreachable!("checked: {other} is not a boolean"),
        }
    }

    fn part(&mut self, e: &ConditionNode) -> ConditionValue {
        use ConditionValue::{Bool, Float, Int};
        match e {
            ConditionNode::Constant(value) => *value,
            ConditionNode::Integer(place) => Int(self.problem.facts.integers[*place].into()),
            ConditionNode::Truth(place) => Bool(self.problem.facts.truths[*place]),
            ConditionNode::Waves(waves) => Float(self.waves(*waves)),
            ConditionNode::Local(number) => self.locals[*number],
            ConditionNode::Unary(op, e) => match (op, self.part(e)) {
                (Unary::Neg, Int(x)) => Int(-x),
                (Unary::Neg, Float(x)) => Float(-x),
                (Unary::Not, Bool(x)) => Bool(!x),
                (_, other) => unreachable!("checked: {other} cannot be negated"),
            },
            ConditionNode::If(cond, yes, no) => match self.truth(cond) {
                true => self.block(yes),
                false => self.block(no),
            },
            ConditionNode::Binary(Binary::And, a, b) => Bool(self.truth(a) && self.truth(b)),
            ConditionNode::Binary(Binary::Or, a, b) => Bool(self.truth(a) || self.truth(b)),
            ConditionNode::Binary(op, a, b) => match (self.part(a), self.part(b)) {
                (Int(a), Int(b)) => integers(*op, a, b),
                (Float(a), Float(b)) => floats(*op, a, b),
                (a, b) => unreachable!("checked: {a} and {b} are numbers of one type"),
            },
            ConditionNode::Call(function, args) => {
                let mut values = [Int(0); MOST_ARGUMENTS];
                for (value, e) in values.iter_mut().zip(args) {
                    *value = self.part(e);
                }
                call(*function, values.get(..args.len()).unwrap_or_default())
            }
        }
    }
}

/// Message for operators on booleans, which [`Evaluator::part`] evaluates elsewhere.
const JOINED: &str = "`&&` and `||` take booleans";

fn integers(op: Binary, a: i128, b: i128) -> ConditionValue {
    use ConditionValue::{Bool, Int};
    // 128-bit divisions are slow, so 64-bit divisions are used where possible.
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

fn floats(op: Binary, a: f64, b: f64) -> ConditionValue {
    use ConditionValue::{Bool, Float};
    match op {
        Binary::Add => Float(a + b),
        Binary::Sub => Float(a - b),
        Binary::Mul => Float(a * b),
        Binary::Div => Float(a / b),
        Binary::Rem => unreachable!("checked: `%` takes integers"),
        Binary::Lt => Bool(a < b),
        Binary::Le => Bool(a <= b),
        Binary::Gt => Bool(a > b),
        Binary::Ge => Bool(a >= b),
        Binary::Eq => Bool(a == b),
        Binary::Ne => Bool(a != b),
        Binary::And | Binary::Or => unreachable!("{JOINED}"),
    }
}

/// Maximum number of arguments of a function that the host evaluates.
const MOST_ARGUMENTS: usize = 3;

fn call(function: Function, args: &[ConditionValue]) -> ConditionValue {
    use ConditionValue::{Bool, Float, Int};
    match (function, args) {
        (Function::Min, [Int(a), Int(b)]) => Int(*a.min(b)),
        (Function::Max, [Int(a), Int(b)]) => Int(*a.max(b)),
        (Function::Abs, [Int(x)]) => Int(x.abs()),
        (Function::Sign, [Int(x)]) => Int(x.signum()),
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
        (Function::Ceil, [Float(x)]) => Float(x.ceil()),
        (Function::Trunc, [Float(x)]) => Float(x.trunc()),
        (Function::Sign, [Float(x)]) => {
            Float(if *x == 0.0 || x.is_nan() { *x } else { x.signum() })
        }
        (Function::IsNan, [Float(x)]) => Bool(x.is_nan()),
        (Function::Round, [Float(x)]) => Float(x.round_ties_even()),
        (Function::Relu, [Float(x)]) => Float(greater(*x, 0.0)),
        (Function::ToF64, [Int(x)]) => Float(*x as f64),
        _ => unreachable!("ExprScope::functions: {} exists only in kernels", function.name()),
    }
}
