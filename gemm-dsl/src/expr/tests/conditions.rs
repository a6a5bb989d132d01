//! Tests of conditions on the host, against an evaluation that is built along with their text.

use crate::expr::random::Random;
use crate::expr::{Closure, ConditionInput, Conditions, Facts, REDUCE_TABLE};

type Compared = fn(i128, i128) -> bool;

type Extents = [u64; 3];

const MOST: u64 = 1 << 48;

fn condition(text: &str) -> Closure {
    Closure::parse(&REDUCE_TABLE, text).unwrap_or_else(|faults| panic!("`{text}`: {faults}"))
}

fn holds(when: &Closure, [outer, len, inner]: Extents) -> bool {
    let conditions = Conditions::new([Some(when)]);
    let facts = Facts::new([outer, len, inner], []);
    let waves = |tile| panic!("waves of {tile:?}");
    conditions.first(ConditionInput { facts: &facts, waves: &waves }, 0).is_some()
}

/// Text of an expression, and its values for some extents.
struct Told<T> {
    text: String,
    values: Vec<T>,
}

/// Random expression, evaluated while it grows.
struct Grow<'e> {
    random: Random,
    extents: &'e [Extents],
    known: Vec<(String, Vec<i128>)>,
    next: usize,
}

impl Grow<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.random.bits() % n
    }

    fn leaf(&mut self) -> Told<i128> {
        let name = |name: &str, at: usize| Told {
            text: name.to_owned(),
            values: self.extents.iter().map(|extents| extents[at].into()).collect(),
        };
        match self.random.bits() % 6 {
            0 => name("outer", 0),
            1 | 2 => name("len", 1),
            3 => name("inner", 2),
            4 if !self.known.is_empty() => {
                let at = self.random.bits() as usize % self.known.len();
                let (text, values) = self.known[at].clone();
                Told { text, values }
            }
            _ => {
                let value = [0, 1, 2, 3, 7, 64, 1000, 65536, 1 << 40][self.below(9) as usize];
                Told { text: value.to_string(), values: vec![value; self.extents.len()] }
            }
        }
    }

    fn integer(&mut self, depth: u32) -> Told<i128> {
        if depth == 0 {
            return self.leaf();
        }
        let a = self.integer(depth - 1);
        let one = |text: String, f: fn(i128) -> i128| Told {
            text,
            values: a.values.iter().map(|a| f(*a)).collect(),
        };
        match self.random.bits() % 12 {
            0 => one(format!("-({})", a.text), |a| 0_i128.saturating_sub(a)),
            1 => one(
                format!("abs({})", a.text),
                |a| if a < 0 { 0_i128.saturating_sub(a) } else { a },
            ),
            2 => {
                let cond = self.truth(depth - 1);
                let b = self.integer(depth - 1);
                let values = cond.values.iter().zip(a.values.iter().zip(&b.values));
                Told {
                    text: format!("if {} {{ {} }} else {{ {} }}", cond.text, a.text, b.text),
                    values: values.map(|(cond, (a, b))| if *cond { *a } else { *b }).collect(),
                }
            }
            3 => {
                let (low, high) = (self.integer(depth - 1), self.integer(0));
                let values = a.values.iter().zip(low.values.iter().zip(&high.values));
                // The lower bound of `clamp` is applied first.
                let value = |(x, (low, high)): (&i128, (&i128, &i128))| {
                    let raised = if x < low { low } else { x };
                    if raised > high { *high } else { *raised }
                };
                Told {
                    text: format!("clamp({}, {}, {})", a.text, low.text, high.text),
                    values: values.map(value).collect(),
                }
            }
            op => {
                let b = self.integer(depth - 1);
                let two = |text: String, f: fn(i128, i128) -> i128| Told {
                    text,
                    values: a.values.iter().zip(&b.values).map(|(a, b)| f(*a, *b)).collect(),
                };
                match op {
                    4 | 5 => two(format!("({}) + ({})", a.text, b.text), i128::saturating_add),
                    6 => two(format!("({}) - ({})", a.text, b.text), i128::saturating_sub),
                    7 => two(format!("({}) * ({})", a.text, b.text), i128::saturating_mul),
                    8 => two(format!("({}) / max({}, 1)", a.text, b.text), |a, b| {
                        quotient(a, b.max(1)).0
                    }),
                    9 => two(format!("({}) % max({}, 1)", a.text, b.text), |a, b| {
                        quotient(a, b.max(1)).1
                    }),
                    10 => two(
                        format!("min({}, {})", a.text, b.text),
                        |a, b| if a < b { a } else { b },
                    ),
                    _ => two(
                        format!("(({}) / min({}, -1)) - (({0}) % min({1}, -1))", a.text, b.text),
                        |a, b| {
                            let (q, r) = quotient(a, b.min(-1));
                            q.saturating_sub(r)
                        },
                    ),
                }
            }
        }
    }

    fn truth(&mut self, depth: u32) -> Told<bool> {
        let less = depth.saturating_sub(1);
        match self.below(8) {
            0 if depth > 0 => {
                let a = self.truth(less);
                Told {
                    text: format!("!({})", a.text),
                    values: a.values.iter().map(|a| !a).collect(),
                }
            }
            n @ (1 | 2) if depth > 0 => {
                let (a, b) = (self.truth(less), self.truth(less));
                let values = a.values.iter().zip(&b.values);
                let (sign, values) = match n {
                    1 => ("&&", values.map(|(a, b)| *a && *b).collect()),
                    _ => ("||", values.map(|(a, b)| *a || *b).collect()),
                };
                Told { text: format!("({}) {sign} ({})", a.text, b.text), values }
            }
            _ => {
                let (a, b) = (self.integer(less), self.integer(less));
                let ops: [(&str, Compared); 6] = [
                    ("<", |a, b| a < b),
                    ("<=", |a, b| a <= b),
                    (">", |a, b| a > b),
                    (">=", |a, b| a >= b),
                    ("==", |a, b| a == b),
                    ("!=", |a, b| a != b),
                ];
                let (sign, of) = ops[self.below(6) as usize];
                let values = a.values.iter().zip(&b.values).map(|(a, b)| of(*a, *b)).collect();
                Told { text: format!("({}) {sign} ({})", a.text, b.text), values }
            }
        }
    }

    /// A condition, with or without definitions.
    fn condition(&mut self) -> Told<bool> {
        let mut lets = String::new();
        for _ in 0..self.below(3) {
            let Told { text, values } = self.integer(2);
            let name = format!("_t{}", self.next);
            self.next += 1;
            lets += &format!("let {name} = {text}; ");
            self.known.push((name, values));
        }
        let Told { text, values } = self.truth(3);
        let text = if lets.is_empty() { text } else { format!("{{ {lets}{text} }}") };
        Told { text, values }
    }
}

/// Quotient rounded towards zero, and remainder, by long division.
fn quotient(a: i128, b: i128) -> (i128, i128) {
    let (q, r) = (a.unsigned_abs() / b.unsigned_abs(), a.unsigned_abs() % b.unsigned_abs());
    let signed = |negative: bool, of: u128| if negative { -(of as i128) } else { of as i128 };
    (signed((a < 0) != (b < 0), q), signed(a < 0, r))
}

#[test]
fn random_conditions_hold_where_another_telling_says_so() {
    let mut random = Random(7);
    let (mut read, mut refused, mut held) = (0, 0, [0, 0]);
    for seed in gemm_cases::seeds(6_000) {
        let mut extent = || {
            let bits = random.bits();
            match bits % 4 {
                0 => [0, 1, 2, 3, 4, 63, 64, 65, 1000, 1 << 31, MOST - 1, MOST]
                    [(bits / 4 % 12) as usize],
                1 => bits / 4 % 10,
                _ => bits / 4 % 5_000,
            }
        };
        let extents: Vec<Extents> = (0..6).map(|_| [extent(), extent(), extent()]).collect();
        let grow = Random(seed);
        let mut grow = Grow { random: grow, extents: &extents, known: Vec::new(), next: 0 };
        let Told { text, values } = grow.condition();
        // Some expressions may leave the 128 bits of the host.
        let Ok(when) = Closure::parse(&REDUCE_TABLE, &text) else {
            refused += 1;
            continue;
        };
        read += 1;
        for (extents, value) in extents.iter().zip(values) {
            assert_eq!(holds(&when, *extents), value, "{text} of {extents:?}");
            held[usize::from(value)] += 1;
        }
    }
    assert!(
        read > 4 * refused && held.iter().all(|held| *held > read),
        "{read} {refused} {held:?}"
    );
}

#[test]
fn precedence_and_rounding() {
    for (text, extents, expected) in [
        ("1 + 2 * len == 7", [1, 3, 1], true),
        ("7 - len - 2 == 2", [1, 3, 1], true),
        ("len / 2 * 2 == len", [1, 7, 1], false),
        ("(0 - len) / 2 == -3", [1, 7, 1], true),
        ("(0 - len) % 2 == -1", [1, 7, 1], true),
        ("(0 - len) / -2 == 3 && len / -2 == -3", [1, 7, 1], true),
        ("len < 4 || len > 6 && outer == 2", [1, 3, 1], true),
        ("(len < 4 || len > 6) && outer == 2", [1, 3, 1], false),
        ("!(len < 4) || outer == 1", [1, 3, 1], true),
        ("{ let t = len; let u = t * t; u == 9 }", [1, 3, 1], true),
        ("{ let t = if len > 2 { let u = 5; u } else { 6 }; let u = t; u == 5 }", [1, 3, 1], true),
    ] {
        assert_eq!(holds(&condition(text), extents), expected, "{text}");
    }
}

/// Nothing overflows at the ends of the checked ranges.
#[test]
fn at_the_greatest_extents_nothing_overflows() {
    for text in [
        "outer * len > inner * 65536",
        "0 - outer * len < inner",
        "-(0 - outer * len - outer * len - len) > 0",
        "abs(0 - outer * len - outer * len - 4 * len - 2) > 0",
        "(0 - outer * len * 4) / -1 > 0",
        "(0 - outer * len * 4 + 5 - 5) / max(len, 1) < 0",
        "outer * len * 1024 > len",
        "len == 281474976710656 && 9223372036854775807 > len",
        "1 / (281474976710657 - len) == 1",
    ] {
        assert!(holds(&condition(text), [MOST; 3]), "{text}");
    }
    for seed in gemm_cases::seeds(3_000) {
        let mut random = Random(seed);
        let mut extent = || [MOST, MOST - 1, 1 << 40, 0, 1][(random.bits() % 5) as usize];
        let extents = [extent(), extent(), extent()];
        let some = [[1, 1, 1]];
        let mut grow = Grow { random: Random(seed), extents: &some, known: Vec::new(), next: 0 };
        if let Ok(when) = Closure::parse(&REDUCE_TABLE, &grow.condition().text) {
            let _ = holds(&when, extents);
        }
    }
}

#[test]
fn a_condition_that_names_no_extent_is_constant() {
    for (text, constant) in [
        ("1 < 2", Some(true)),
        ("2 / 3 == 1", Some(false)),
        ("{ let t = 4; if t > 3 { t % 2 == 1 } else { t == t } }", Some(false)),
        ("len < 2", None),
        ("1 < 2 || outer == outer", None),
        ("{ let _t = inner; 1 < 2 }", None),
    ] {
        assert_eq!(condition(text).constant(), constant, "{text}");
    }
}
