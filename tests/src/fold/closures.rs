//! Expressions for reductions, each with a Rust function that computes the same.

use gemm_dsl::ir::Elem;
use gemm_oracle::fold::{Kind, Number};

/// `map`, with a Rust function that computes the same.
#[derive(Debug)]
pub struct MapCase {
    pub text: &'static str,
    pub inputs: usize,
    /// Element type and accumulator type for which the expression is valid. The latter is None for
    /// booleans.
    pub suits: (Type, Option<Type>),
    /// Value for some elements, their index, and the number of elements.
    pub eval: fn(&[Number], i128, i128) -> Number,
}

/// `finish`, with a Rust function that computes the same. If its input is a float, it is
/// monotonically increasing.
#[derive(Debug)]
pub struct FinishCase {
    pub text: &'static str,
    /// Number of its parameters before the number of elements.
    pub values: usize,
    /// Accumulator type and result type for which the expression is valid.
    pub suits: (Type, Type),
    /// Value for the reduced values and the number of elements.
    pub eval: fn(&[Number], u64) -> Number,
}

/// `fold` with its `identity`.
#[derive(Debug)]
pub struct FoldCase {
    pub text: &'static str,
    pub identity: &'static str,
    /// Accumulator type for which the expression is valid.
    pub suits: Elem,
    /// Equivalent kind of reduction.
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `f32`, and narrower floats, which are converted to `f32`.
    F32,
    F64,
    /// Integers, except `u64`.
    Int,
}

impl Type {
    /// Type in which an element is computed, or None for `u64`.
    pub fn of(elem: Elem) -> Option<Self> {
        match elem {
            Elem::F64 => Some(Type::F64),
            Elem::U64 => None,
            elem if elem.is_float() => Some(Type::F32),
            _ => Some(Type::Int),
        }
    }
}

/// Numbers that a launch passes in the tests, by their type.
pub(super) const SINGLE: f32 = 1.5;
pub(super) const DOUBLE: f64 = -0.75;
pub(super) const INT: i32 = 7;
pub(super) const UNSIGNED: u32 = 5;
pub(super) const LONG: i64 = -3;

/// Bits of the number of a type.
pub fn number(elem: Elem) -> u64 {
    match elem {
        Elem::F32 => SINGLE.to_bits().into(),
        Elem::F64 => DOUBLE.to_bits(),
        Elem::I32 => INT as u64,
        Elem::U32 => UNSIGNED.into(),
        Elem::I64 => LONG as u64,
        other => unreachable!("no number is a {other}"),
    }
}

/// Maps for an element type and an accumulator type, which is None for booleans.
pub fn maps(element: Elem, acc: Option<Elem>) -> Vec<&'static MapCase> {
    let acc = match acc {
        None => Some(None),
        Some(acc) => Type::of(acc).map(Some),
    };
    let suits = |map: &&MapCase| Type::of(element) == Some(map.suits.0) && acc == Some(map.suits.1);
    MAPS.iter().filter(suits).collect()
}

/// Finishes from an accumulator type to a result type, for a number of values.
pub fn finishes(acc: Elem, result: Elem, values: usize) -> Vec<&'static FinishCase> {
    let types = Type::of(acc).zip(Type::of(result));
    let suits = |finish: &&FinishCase| Some(finish.suits) == types && finish.values == values;
    FINISHES.iter().filter(suits).collect()
}

/// Folds for an accumulator type.
pub fn folds(acc: Elem) -> Vec<&'static FoldCase> {
    FOLDS.iter().filter(|fold| fold.suits == acc).collect()
}

/// Value `n` as an `f32`.
fn single(values: &[Number], n: usize) -> f32 {
    values[n].float() as f32
}

fn double(values: &[Number], n: usize) -> f64 {
    values[n].float()
}

fn int(values: &[Number], n: usize) -> i128 {
    match values[n] {
        Number::Int(n) => n,
        Number::Float(_) => unreachable!("it is for integers"),
    }
}

fn of_single(x: f32) -> Number {
    Number::Float(x.into())
}

/// Maximum of IEEE 754-2019.
fn maximum(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        f64::NAN
    } else if a.total_cmp(&b).is_lt() {
        b
    } else {
        a
    }
}

macro_rules! cases {
    ($($element:ident => $acc:tt: $text:literal, $inputs:literal, $eval:expr;)*) => {
        &[$(MapCase {
            text: $text,
            inputs: $inputs,
            suits: (Type::$element, cases!(@acc $acc)),
            eval: $eval,
        },)*]
    };
    (@acc bool) => { None };
    (@acc $acc:ident) => { Some(Type::$acc) };
}

const MAPS: &[MapCase] = cases! {
    F32 => F32: "|x| x * x", 1, |x, _, _| of_single(single(x, 0) * single(x, 0));
    F32 => F32: "|x, y| x * y", 2, |x, _, _| of_single(single(x, 0) * single(x, 1));
    F32 => F32: "|x| abs(x)", 1, |x, _, _| of_single(single(x, 0).abs());
    F32 => F32: "|x, y| max(x, y)", 2, |x, _, _| Number::Float(maximum(x[0].float(), x[1].float()));
    F32 => F32: "|x, y, z| fma(x, y, z)", 3,
        |x, _, _| of_single(single(x, 0).mul_add(single(x, 1), single(x, 2)));
    F32 => F32: "|a, b, c, d| (a - b) * (c - d)", 4,
        |x, _, _| of_single((single(x, 0) - single(x, 1)) * (single(x, 2) - single(x, 3)));
    F32 => F32: "|x| if i % 3 == 0 { x } else { 0.0 }", 1,
        |x, i, _| if i % 3 == 0 { x[0] } else { Number::Float(0.0) };
    F32 => F32: "|x| x * (f32(len - i) / f32(len))", 1,
        |x, i, len| of_single(single(x, 0) * ((len - i) as f32 / len as f32));
    F32 => F64: "|x, y| f64(x) * f64(y)", 2, |x, _, _| Number::Float(double(x, 0) * double(x, 1));
    F32 => F32: "|x, mu: f32| (x - mu) * (x - mu)", 1,
        |x, _, _| of_single((single(x, 0) - SINGLE) * (single(x, 0) - SINGLE));
    F32 => F32: "|x, y, k: i32, t: f64| if i < k { x } else { y * f32(t) }", 2,
        |x, i, _| if i < INT.into() { x[0] } else { of_single(single(x, 1) * DOUBLE as f32) };
    F64 => F64: "|x, t: f64, s: f32| x * t + f64(s)", 1,
        |x, _, _| Number::Float(double(x, 0) * DOUBLE + f64::from(SINGLE));
    F64 => F64: "|x| x * x", 1, |x, _, _| Number::Float(double(x, 0) * double(x, 0));
    F64 => F64: "|x, y| x - y", 2, |x, _, _| Number::Float(double(x, 0) - double(x, 1));
    F64 => F32: "|x| f32(x)", 1, |x, _, _| of_single(single(x, 0));
    Int => F32: "|x| f32(x)", 1, |x, _, _| of_single(int(x, 0) as f32);
    Int => F64: "|x, y| f64(x) * 0.5 + f64(y)", 2,
        |x, _, _| Number::Float(int(x, 0) as f64 * 0.5 + int(x, 1) as f64);
    Int => Int: "|x, u: u32, k: i64| max(min(x, u), k)", 1,
        |x, _, _| Number::Int(int(x, 0).min(UNSIGNED.into()).max(LONG.into()));
    Int => Int: "|x| max(x, 1)", 1, |x, _, _| Number::Int(int(x, 0).max(1));
    Int => Int: "|x, y| min(x, y)", 2, |x, _, _| Number::Int(int(x, 0).min(int(x, 1)));
    Int => Int: "|x| if i * 2 < len { x } else { i }", 1,
        |x, i, len| if i * 2 < len { x[0] } else { Number::Int(i) };
    F32 => Int: "|x, y| if x < y { 1 } else { 0 }", 2,
        |x, _, _| Number::Int((single(x, 0) < single(x, 1)).into());
    F32 => bool: "|x, t: f32| x > t", 1, |x, _, _| Number::Int((single(x, 0) > SINGLE).into());
    F32 => bool: "|x| x > 0.5", 1, |x, _, _| Number::Int((single(x, 0) > 0.5).into());
    F32 => bool: "|x, y| x != y || i == 7", 2,
        |x, i, _| Number::Int((single(x, 0) != single(x, 1) || i == 7).into());
    F64 => bool: "|x| x >= 0.0", 1, |x, _, _| Number::Int((double(x, 0) >= 0.0).into());
    Int => bool: "|x| x % 2 == 0", 1, |x, _, _| Number::Int((int(x, 0) % 2 == 0).into());
    Int => bool: "|x, y| x == y", 2, |x, _, _| Number::Int((int(x, 0) == int(x, 1)).into());
};

macro_rules! finishes {
    ($($acc:ident => $result:ident: $text:literal, $values:literal, $eval:expr;)*) => {
        &[$(FinishCase {
            text: $text,
            values: $values,
            suits: (Type::$acc, Type::$result),
            eval: $eval,
        },)*]
    };
}

const FINISHES: &[FinishCase] = finishes! {
    F32 => F32: "|s, len| s / len", 1, |s, len| of_single(single(s, 0) / len as f32);
    F32 => F32: "|s, len, eps: f32| s / len + eps", 1,
        |s, len| of_single(single(s, 0) / len as f32 + SINGLE);
    F32 => F32: "|s, mu: f32| s + mu", 1, |s, _| of_single(single(s, 0) + SINGLE);
    F32 => F32: "|s| s * 0.5 + 1.0", 1, |s, _| of_single(single(s, 0) * 0.5 + 1.0);
    F32 => F32: "|s, len| sqrt(max(s, 0.0) / len)", 1, |s, len| {
        of_single((maximum(s[0].float(), 0.0) as f32 / len as f32).sqrt())
    };
    F32 => F32: "|_mean, var| sqrt(max(var, 0.0))", 2,
        |s, _| of_single((maximum(s[1].float(), 0.0) as f32).sqrt());
    F32 => F32: "|mean, var, len| mean + var / len", 2,
        |s, len| of_single(single(s, 0) + single(s, 1) / len as f32);
    F64 => F64: "|s, len| s / len", 1, |s, len| Number::Float(double(s, 0) / len as f64);
    F64 => F64: "|mean, var| mean + var", 2, |s, _| Number::Float(double(s, 0) + double(s, 1));
    F64 => F32: "|s| f32(s)", 1, |s, _| of_single(single(s, 0));
    Int => Int: "|s, k: i32| max(s, k)", 1, |s, _| Number::Int(int(s, 0).max(INT.into()));
    Int => Int: "|s| max(s, 10)", 1, |s, _| Number::Int(int(s, 0).max(10));
    Int => Int: "|s, len| if s < 0 { len } else { s }", 1,
        |s, len| if int(s, 0) < 0 { Number::Int(len.into()) } else { s[0] };
    Int => F32: "|s, len| f32(s) / f32(len)", 1,
        |s, len| of_single(int(s, 0) as f32 / len as f32);
    Int => F64: "|s| f64(s) * 0.25", 1, |s, _| Number::Float(int(s, 0) as f64 * 0.25);
};

const FOLDS: &[FoldCase] = &[
    FoldCase { text: "|a, b| a + b", identity: "-0.0", suits: Elem::F32, kind: Kind::Sum },
    FoldCase {
        text: "|a, b| max(a, b)",
        identity: "-1.0 / 0.0",
        suits: Elem::F32,
        kind: Kind::Max,
    },
    FoldCase { text: "|x, y| min(y, x)", identity: "1.0 / 0.0", suits: Elem::F64, kind: Kind::Min },
    FoldCase { text: "|a, b| a * b", identity: "1.0", suits: Elem::F64, kind: Kind::Prod },
    FoldCase {
        text: "|a, b| if a < b { b } else { a }",
        identity: "-2147483648",
        suits: Elem::I32,
        kind: Kind::Max,
    },
    FoldCase { text: "|a, b| a + b", identity: "0", suits: Elem::U32, kind: Kind::Sum },
    FoldCase { text: "|a, b| max(a, b)", identity: "0", suits: Elem::U32, kind: Kind::Max },
];
