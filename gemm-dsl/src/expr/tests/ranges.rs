//! Tests of integer ranges. Every value is in the computed range. No accepted expression exceeds 64
//! bits or divides by zero. The range of a single operator on small numbers is exact.

use crate::expr::check::range_of;
use crate::expr::random::Random;
use crate::expr::range::IntRange;
use crate::expr::tree::NodeSpan;
use crate::expr::{Binary, Block, ExprScope, Function, Node, NodeKind, Unary};
use proptest::prelude::*;

/// Integers with small ranges, which are enumerated.
static NAMES: [&str; 3] = ["a", "b", "c"];
static ENV: ExprScope = ExprScope {
    key: "integers",
    values: (0, 0),
    meaning: "nothing",
    reserved: &[],
    lent: None,
    operands: &[],
    output: None,
    results: 1,
    is_typed: false,
    numbers: false,
    folds: false,
    pairs: false,
    integers: &[("a", IntRange::INDEX), ("b", IntRange::INDEX), ("c", IntRange::INDEX)],
    conditions: None,
    typing: None,
    example: "a + b",
};

type Ranges = [(i64, i64); 3];

fn known(ranges: Ranges) -> [(&'static str, IntRange); 3] {
    let mut names = NAMES.into_iter();
    ranges.map(|(least, most)| {
        let range = IntRange { least: least.into(), most: most.into() };
        (names.next().unwrap_or(""), range)
    })
}

fn node(kind: NodeKind) -> Node {
    Node { kind, at: NodeSpan::default() }
}

fn block(value: Node) -> Box<Block> {
    Box::new(Block { lets: Vec::new(), value })
}

/// Returns the 64-bit value that C computes; `None` if it is undefined in C. Both branches of an
/// `if` are computed, including their definitions.
fn value(e: &Node, of: [i64; 3]) -> Option<i64> {
    let arm = |arm: &Block| value(&arm.value, of);
    match &e.kind {
        NodeKind::Int(value) => Some(*value),
        NodeKind::Name(name) => NAMES.iter().position(|known| known == name).map(|at| of[at]),
        NodeKind::Unary(Unary::Neg, e) => value(e, of)?.checked_neg(),
        NodeKind::Binary(op, a, b, _) => {
            let (a, b) = (value(a, of)?, value(b, of)?);
            match op {
                Binary::Add => a.checked_add(b),
                Binary::Sub => a.checked_sub(b),
                Binary::Mul => a.checked_mul(b),
                Binary::Div => a.checked_div(b),
                Binary::Rem => a.checked_rem(b),
                wrong => panic!("{wrong:?} gives no integer"),
            }
        }
        NodeKind::Call(function, args) => {
            let args: Option<Vec<i64>> = args.iter().map(|e| value(e, of)).collect();
            match (function, args?.as_slice()) {
                (Function::Min, [a, b]) => Some(*a.min(b)),
                (Function::Max, [a, b]) => Some(*a.max(b)),
                (Function::Clamp, [x, low, high]) => Some(*x.max(low).min(high)),
                (Function::Abs, [x]) => x.checked_abs(),
                (Function::Sign, [x]) => Some(x.signum()),
                wrong => panic!("{wrong:?} gives no integer"),
            }
        }
        NodeKind::If(cond, yes, no) => {
            let NodeKind::Binary(Binary::Lt, a, b, _) = &cond.kind else { panic!("{cond:?}") };
            let less = value(a, of)? < value(b, of)?;
            let (yes, no) = (arm(yes)?, arm(no)?);
            Some(if less { yes } else { no })
        }
        wrong => panic!("{wrong:?} is not an integer"),
    }
}

/// Returns all values of an expression; `None` if one is undefined.
fn values(e: &Node, [a, b, c]: Ranges) -> Option<Vec<i64>> {
    let all = |(least, most)| least..=most;
    let of = all(a).flat_map(|a| all(b).flat_map(move |b| all(c).map(move |c| [a, b, c])));
    of.map(|of| value(e, of)).collect()
}

fn operator(op: Binary, a: Node, b: Node) -> Node {
    node(NodeKind::Binary(op, Box::new(a), Box::new(b), NodeSpan::default()))
}

const OPERATORS: [Binary; 5] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div, Binary::Rem];

fn grown(random: &mut Random, depth: u32) -> Node {
    let mut pick = |count: u64| random.bits() % count;
    if depth == 0 || pick(6) == 0 {
        return match pick(6) {
            0 => node(NodeKind::Int([0, 1, 2, 7, 1 << 40, i64::MAX][pick(6) as usize])),
            at => node(NodeKind::Name(NAMES[at as usize % 3].to_owned())),
        };
    }
    let (kind, op) = (pick(10), OPERATORS[pick(5) as usize]);
    let mut next = || grown(random, depth - 1);
    match kind {
        0 => node(NodeKind::Unary(Unary::Neg, Box::new(next()))),
        1 => node(NodeKind::Call(Function::Abs, vec![next()])),
        2 => node(NodeKind::Call(Function::Min, vec![next(), next()])),
        3 => node(NodeKind::Call(Function::Max, vec![next(), next()])),
        4 => node(NodeKind::Call(Function::Clamp, vec![next(), next(), next()])),
        5 => node(NodeKind::Call(Function::Sign, vec![next()])),
        6 => {
            let cond = operator(Binary::Lt, next(), next());
            node(NodeKind::If(Box::new(cond), block(next()), block(next())))
        }
        _ => operator(op, next(), next()),
    }
}

/// Ranges of a few numbers around 0 or at an end of the 64 bits.
fn small() -> impl Strategy<Value = (i64, i64)> {
    let from = |start: i64| (0..3i64).prop_map(move |by| start + by);
    let start = prop_oneof![
        6 => -5..5i64,
        1 => from(i64::MIN),
        1 => from(i64::MAX - 5),
        1 => Just(1i64 << 31),
    ];
    (start, 0..4i64).prop_map(|(start, more)| (start, start + more))
}

/// An accepted expression is defined, and its values lie in its range.
fn holds(e: &Node, ranges: Ranges) -> Result<(), String> {
    let Some(range) = range_of(&ENV, &known(ranges), e) else { return Ok(()) };
    let Some(values) = values(e, ranges) else {
        return Err(format!("`{e}` of {ranges:?} is accepted, and not always defined"));
    };
    match values.iter().find(|v| !(range.least..=range.most).contains(&i128::from(**v))) {
        None => Ok(()),
        Some(value) => Err(format!("`{e}` of {ranges:?} may be {value}, outside {range:?}")),
    }
}

proptest! {
    #![proptest_config(gemm_cases::cases(4000))]

    #[test]
    fn every_value_lies_in_the_range(
        seed: u64,
        depth in 1..5u32,
        a in small(),
        b in small(),
        c in small(),
    ) {
        let e = grown(&mut Random(seed), depth);
        holds(&e, [a, b, c]).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn one_operation_gives_just_its_values(a in small(), b in small(), c in small()) {
        let name = |n: usize| node(NodeKind::Name(NAMES[n].to_owned()));
        let call = |function, count: usize| {
            node(NodeKind::Call(function, (0..count).map(name).collect()))
        };
        let cond = operator(Binary::Lt, name(2), node(NodeKind::Int(1)));
        let both = node(NodeKind::If(Box::new(cond), block(name(0)), block(name(1))));
        let operators = OPERATORS.map(|op| operator(op, name(0), name(1)));
        let calls = [
            node(NodeKind::Unary(Unary::Neg, Box::new(name(0)))),
            call(Function::Abs, 1),
            call(Function::Sign, 1),
            call(Function::Min, 2),
            call(Function::Max, 2),
            call(Function::Clamp, 3),
            both,
        ];
        let ranges = [a, b, c];
        for e in operators.into_iter().chain(calls) {
            holds(&e, ranges).map_err(TestCaseError::fail)?;
            let (range, values) = (range_of(&ENV, &known(ranges), &e), values(&e, ranges));
            let Some(values) = values else { continue };
            let Some(range) = range else {
                return Err(TestCaseError::fail(format!("`{e}` of {ranges:?} is refused")));
            };
            let ends = (values.iter().min().copied(), values.iter().max().copied());
            let found = (i64::try_from(range.least).ok(), i64::try_from(range.most).ok());
            // The range of a remainder follows from the divisor alone, and an `if` has the range of
            // both arms.
            if !matches!(e.kind, NodeKind::Binary(Binary::Rem, ..) | NodeKind::If(..)) {
                prop_assert_eq!(found, ends, "`{}` of {:?}", e, ranges);
            }
        }
    }
}

#[test]
fn remainders_are_smaller_than_the_divisor() {
    let name = |n: usize| node(NodeKind::Name(NAMES[n].to_owned()));
    let e = operator(Binary::Rem, name(0), name(1));
    let range = |a, b| range_of(&ENV, &known([a, b, (0, 0)]), &e).map(|r| (r.least, r.most));
    assert_eq!(range((-100, 100), (7, 7)), Some((-6, 6)));
    assert_eq!(range((-100, 100), (-9, -7)), Some((-8, 8)));
    assert_eq!(range((0, 100), (7, 7)), Some((0, 6)));
    assert_eq!(range((-3, 100), (7, 7)), Some((-3, 6)));
    assert_eq!(range((0, 5), (7, 7)), Some((0, 5)));
    assert_eq!(range((0, 5), (0, 7)), None);
    // The quotient is 2^63, and processors that compute the remainder by division trap.
    assert_eq!(range((i64::MIN, 0), (-1, -1)), None);
    assert_eq!(range((i64::MIN, 0), (-3, -1)), None);
    assert_eq!(range((i64::MIN, 0), (-3, -2)), Some((-2, 0)));
    assert_eq!(range((i64::MIN + 1, 0), (-1, -1)), Some((0, 0)));
}
