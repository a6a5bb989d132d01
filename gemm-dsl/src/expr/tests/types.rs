//! Tests of types that the plan knows but the key does not. They check when and where faults are
//! reported, and that suggested replacements are valid.

use super::faults::faults;
use crate::error::{Excerpt, TokenSpan};
use crate::expr::random::Random;
use crate::expr::{
    Closure, EPILOGUE, ExprScope, FINISH, FOLD, Float, IDENTITY, MAP, NodeKind, Type, Typing,
    ValueType, literal,
};
use crate::ir::Elem;

const SINGLE: ValueType = ValueType::Float(Float::F32);
const DOUBLE: ValueType = ValueType::Float(Float::F64);
const BYTE: ValueType = ValueType::Int { least: -128, most: 127 };
const COUNT: ValueType = ValueType::Int { least: 0, most: 255 };
const LONG: ValueType = ValueType::Int { least: i64::MIN as i128, most: i64::MAX as i128 };

fn typing(float: Float, values: &[ValueType], result: Type) -> Typing {
    Typing { float, values: values.to_vec(), result, more: Vec::new() }
}

fn doubles(values: &[ValueType]) -> Typing {
    typing(Float::F64, values, Type::F64)
}

fn integers(values: &[ValueType]) -> Typing {
    typing(Float::F32, values, Type::Int)
}

/// Returns the marked text and the message of each fault of types, if there are no other faults.
fn of_types(scope: &'static ExprScope, text: &str, typing: &Typing) -> Vec<(String, String)> {
    assert_eq!(faults(scope, text), [], "{text}");
    let closure = Closure::parse(scope, text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let (_, places) = crate::parse::tokens_of(text);
    let faults = closure.check(typing).into_iter().map(|fault| {
        let TokenSpan { first, last } = fault.tokens().expect("a place");
        let excerpt = Excerpt::new(text, places[first].start..places[last].end);
        let chars = excerpt.text.chars().skip(excerpt.column - 1).take(excerpt.width);
        (chars.collect(), fault.message().to_owned())
    });
    faults.collect()
}

#[track_caller]
fn fault(scope: &'static ExprScope, typing: &Typing, text: &str, token: &str, part: &str) {
    let found = of_types(scope, text, typing);
    let fits = |(at, message): &(String, String)| at == token && message.contains(part);
    assert!(found.len() == 1 && found.iter().all(fits), "{text}\n{found:#?}");
}

#[test]
fn types_are_no_matter_where_the_key_does_not_know_them() {
    for text in [
        "|x| x && 2",
        "|x| -(x > 0) + !x",
        "|x| if x { 1 } else { 2.0 }",
        "|x| max(x, i / len) * 1e300",
        "|x| f32(f32(f64(x)))",
        "|x| 9223372036854775807 * (i + len) * x",
    ] {
        assert_eq!(faults(&MAP, text), [], "{text}");
    }
    // All other faults are reported at once.
    let found = faults(&MAP, "|x, i, max, x| { let t = z; rwo && 1 + u }");
    let tokens: Vec<&str> = found.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(tokens, ["i", "max", "x", "z", "rwo", "u"]);
    let found = faults(&MAP, "|x, y| { let t = y; 1.0 }");
    let tokens: Vec<&str> = found.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(tokens, ["x", "t"]);
    let deep = format!("|x| {}x{}", "-(".repeat(40), ")".repeat(40));
    assert!(faults(&MAP, &deep)[0].1.contains("more than 64 levels deep"));
}

#[test]
fn an_environment_says_which_values_it_has() {
    let only = |scope, text: &str, token: &str, part: &str| {
        let found = faults(scope, text);
        let fits = |(at, message): &(String, String)| at == token && message.contains(part);
        assert!(found.len() == 1 && found.iter().all(fits), "{text}\n{found:#?}");
    };
    assert_eq!(faults(&MAP, "|a, b, c, d| a * b + c * d + i - len"), []);
    only(
        &MAP,
        "|a, b, c, d, e| a * b * c * d * e",
        "e",
        "has 5 parameters, and `map` takes 1 to 4: one for each input array, as in `|x| x * x`; \
         leave the last out",
    );
    only(&MAP, "|a, b, c, d, e, f| a * b * c * d * e * f", "e, f", "leave the last 2 out");
    only(
        &MAP,
        "x * x",
        "x",
        "takes a closure with these parameters: one for each input array, as in `map: |x|",
    );
    only(
        &MAP,
        "|| 1.0",
        "||",
        "has no parameters; name one for each input array, as in `|x| x * x`",
    );
    only(
        &MAP,
        "|x, y[n]| x * y",
        "y[n]",
        "`map` names values, not arrays; write `y` alone, for an input of the same shape as the \
         others",
    );
    only(&FOLD, "|a, b[n]| a + b", "b[n]", "`fold` names values, not arrays; write `b` alone");
    only(&MAP, "|x| x * SCALE", "SCALE", "`len`; write the value of a Rust constant as a number");
    only(&FOLD, "|a: f64, b| a + b", ":", "has the type of its argument; leave `: …` out");
    only(&MAP, "|x: f64| x", "x: f64", "it is a number that the launch passes, and no parameter");
    only(&MAP, "|t: f64, x| x * t", "t: f64", "move `t` to the end, or leave its type out");
    only(
        &MAP,
        "|x, t: bf16| x * t",
        "t: bf16",
        "no number has the type `bf16`; write `f32`, or leave",
    );
    only(&MAP, "|x, t[n]: f32| x * t", "t[n]: f32", "a number, not an array; write `t` without");
    assert_eq!(faults(&MAP, "|x, y, t: f32, k: i64| x * y * t + k"), []);
    assert_eq!(faults(&FINISH, "|s, len, t: f32| s / len + t"), []);
    only(&MAP, "|x, len| x / len", "len", "`len` is reserved");
    only(&MAP, "|x| x + row", "row", "the known names are `x`, `i`, `len`");
    only(
        &FOLD,
        "|a| a",
        "a",
        "has 1 parameter, and `fold` takes 2: two values to fold, as in `|a, b|",
    );
    only(&FOLD, "|a, b, c| a + b + c", "c", "has 3 parameters, and `fold` takes 2");
    only(&FOLD, "|a, b| a + b + i", "i", "not a known name; the known names are `a`, `b`");
    assert_eq!(faults(&FINISH, "|s| s * s"), []);
    assert_eq!(faults(&FINISH, "|s, len| sqrt(s / len)"), []);
    assert_eq!(faults(&FINISH, "|mean, m2, len| m2 / len - mean"), []);
    only(&FINISH, "|len| len", "len", "`len` is reserved");
    only(&FINISH, "|s, i| s / i", "i", "`i` is reserved");
    // Names of integers that only a GEMM has.
    for closure in ["|m, n, k, row| m * n + k * row", "|col| { let batch = col; batch * batch }"] {
        assert_eq!(faults(&MAP, closure), []);
    }
    assert_eq!(faults(&FOLD, "|m, n| max(m, n)"), []);
    only(&FINISH, "|s, len, len| s / len", "len", "`len` is defined already");
    only(&FINISH, "|s| { let len = s; len }", "len", "`len` is reserved");
    only(&FINISH, "|s| s / len", "len", "not a known name; the only known name is `s`");
    assert_eq!(faults(&IDENTITY, "-1.0 / 0.0"), []);
    only(&IDENTITY, "|a| 0.0", "|", "takes no parameters; write the expression alone, as in `0.0`");
    only(&IDENTITY, "x", "x", "not a known name; only numbers and functions are allowed");
    only(&IDENTITY, "min", "min", "it is a function: `min(a, b)`");
}

#[test]
fn a_key_without_f64_does_not_know_the_word() {
    let found = faults(&EPILOGUE, "|acc| f64(acc)");
    assert!(
        found[0].1.starts_with("`f64` is not a function; the known functions are"),
        "{found:?}"
    );
    assert!(!found[0].1["`f64` is not a function".len()..].contains("f64"), "{found:?}");
    assert_eq!(faults(&EPILOGUE, "|acc, f64| acc * f64"), []);
    assert!(faults(&MAP, "|f64| f64")[0].1.contains("`f64` is a function"));
    assert!(faults(&MAP, "|x| double(x)")[0].1.contains("did you mean `f64(integer)`?"));
    assert!(faults(&MAP, "|x| x as f64")[0].1.contains("convert a number by `f64(…)`"));
    assert!(faults(&MAP, "|x| x as i32")[0].1.contains("conversions are `f32(…)` and `f64(…)`"));
}

#[test]
fn mixed_float_types_are_reported() {
    let all = doubles(&[DOUBLE]);
    fault(
        &MAP,
        &all,
        "|x| exp(x)",
        "exp(x)",
        "takes only an f32, and `x` is an f64; write `f64(exp(f32(x)))`",
    );
    fault(&MAP, &all, "|x| x * f32(i)", "f32(i)", "`*` combines an f64 and the f32 `f32(i)`");
    fault(&MAP, &all, "|x| x + (f32(i) - x)", "f32(i)", "`-` combines an f64 and the f32");
    fault(
        &MAP,
        &all,
        "|x| f64(x)",
        "x",
        "converts an integer or an f32, and this is an f64 already",
    );
    fault(
        &MAP,
        &all,
        "|x| x * 2",
        "2",
        "combines an f64 and the integer `2`, and there is no implicit conversion; write `2.0`",
    );
    fault(&MAP, &all, "|x| x + i", "i", "write `f64(i)`");
    fault(
        &MAP,
        &all,
        "|x| max(x, 0)",
        "0",
        "`max` takes an f64 here, and `0` is an integer; write `0.0`",
    );
    fault(&MAP, &all, "|x| max(x, f32(x))", "f32(x)", "`f32(x)` is an f32; write `f64(f32(x))`");
    fault(
        &MAP,
        &all,
        "|x| f64(exp(2)) * x",
        "2",
        "`exp` takes an f32 here, and `2` is an integer; write `f32(2)`",
    );
    fault(
        &MAP,
        &all,
        "|x| f32(x)",
        "f32(x)",
        "`map` must return an f64, but this is an f32; write `f64(f32(x))`",
    );
    fault(&MAP, &all, "|x| x % 2.0", "%", "for f64 write");
    fault(
        &MAP,
        &all,
        "|x| if x > 0.0 { x } else { f32(i) }",
        "f32(i)",
        "one arm of `if` is an f64, the other an f32; write `f64(f32(i))`",
    );
    fault(&MAP, &all, "|x| if x > 0.0 { 1 } else { x }", "1", "write `1.0`");
    fault(&MAP, &all, "|x| x > 0.0", "x > 0.0", "write `if … { 1.0 } else { 0.0 }`");
    fault(&MAP, &all, "|x| x + f64(i * i * 2)", "*", "convert its parts by `f64(…)` first");
    fault(
        &MAP,
        &Typing::F32,
        "|x| f32(x)",
        "x",
        "converts an integer or an f64, and this is an f32",
    );
    let one = typing(Float::F32, &[DOUBLE], Type::F32);
    fault(&MAP, &one, "|x| x", "x", "`map` must return an f32, but this is an f64; write `f32(x)`");
    fault(&MAP, &one, "|x| exp(x)", "exp(x)", "write `exp(f32(x))`");
    fault(&MAP, &one, "|x| if x { 1.0 } else { 0.0 }", "x", "as in `x > f64(0)`");
}

#[test]
fn wrong_integer_and_bool_types_are_reported() {
    let one = integers(&[BYTE, COUNT]);
    fault(&MAP, &one, "|x| x * 2.0", "x", "write `f32(x)`");
    fault(
        &MAP,
        &one,
        "|x| f32(x)",
        "f32(x)",
        "`map` must return an integer, but this is an f32; use `acc: f32`",
    );
    fault(&MAP, &one, "|x| x > 0", "x > 0", "write `if … { 1 } else { 0 }`");
    fault(&MAP, &one, "|x| max(x, x > 0)", "x > 0", "write `if … { 1 } else { 0 }`");
    fault(
        &MAP,
        &one,
        "|x, y| x / y",
        "y",
        "write `max(y, 1)`, or divide by a value that is never 0",
    );
    fault(
        &MAP,
        &one,
        "|x, y| y / x",
        "x",
        "may be 0; divide by a value that is never 0, such as `max(abs(x), 1)`",
    );
    fault(
        &FOLD,
        &integers(&[LONG, LONG]),
        "|a, b| a + b",
        "+",
        "may overflow 64 bits; limit its parts first",
    );
    let any = typing(Float::F32, &[BYTE, ValueType::Bool], Type::Bool);
    fault(
        &MAP,
        &any,
        "|x| x",
        "x",
        "`map` must return a boolean, but this is an integer; compare it, as in `x > 0`",
    );
    fault(&MAP, &any, "|x, keep| x + keep > 0", "+", "write `if … { 1 } else { 0 }`");
    assert_eq!(of_types(&MAP, "|x, keep| keep && x > 0", &any), []);
    // Values that signed 64-bit integers cannot represent are rejected where they are read.
    let wide = ValueType::Int { least: 0, most: u64::MAX.into() };
    fault(&MAP, &integers(&[wide]), "|x| min(x, 1)", "x", "may overflow 64 bits");
    let turned = ValueType::Int { least: 1, most: 0 };
    fault(&MAP, &integers(&[turned]), "|x| 1 / x", "x", "may be 0");
    let all = [i128::MIN, 0, i128::MAX];
    for (least, most) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
        let typing = integers(&[ValueType::Int { least, most }]);
        for text in ["|x| -x", "|x| x * x", "|x| abs(x) % (x - 1)", "|x| 1 / x"] {
            assert!(!of_types(&MAP, text, &typing).is_empty() || (least, most) == (0, 0), "{text}");
        }
    }
}

/// Suggested replacements have no fault.
#[test]
fn remedies_are_sound() {
    let all = doubles(&[DOUBLE]);
    let byte = integers(&[BYTE, COUNT]);
    let one = typing(Float::F32, &[DOUBLE], Type::F32);
    for (typing, text, suggestion, mended) in [
        (&all, "|x| x + exp(x)", "write `f64(exp(f32(x)))`", "|x| x + f64(exp(f32(x)))"),
        (&all, "|x| x + f32(i)", "write `f64(f32(i))`", "|x| x + f64(f32(i))"),
        (&all, "|x| x * (1 / 3)", "write `1.0 / 3.0`", "|x| x * (1.0 / 3.0)"),
        (&all, "|x| x * 16777217", "write `16777217.0`", "|x| x * 16777217.0"),
        (
            &all,
            "|x| x * 9007199254740993",
            "write `f64(9007199254740993)`",
            "|x| x * f64(9007199254740993)",
        ),
        (&all, "|x| x + f64(tanh(2.0))", "write `tanh(f32(2.0))`", "|x| x + f64(tanh(f32(2.0)))"),
        (&all, "|_x| 1 / 4", "write `1.0 / 4.0`", "|_x| 1.0 / 4.0"),
        (&one, "|x| 2.0 * f32(x * 3)", "write `f64(3)`", "|x| 2.0 * f32(x * f64(3))"),
        (&one, "|x| f32(x * 0.5)", "write `f64(0.5)`", "|x| f32(x * f64(0.5))"),
        (
            &one,
            "|x| if !x { 1.0 } else { 0.0 }",
            "`x == f64(0)`",
            "|x| if x == f64(0) { 1.0 } else { 0.0 }",
        ),
        (&byte, "|x, y| x % y", "write `max(y, 1)`", "|x, y| x % max(y, 1)"),
        (&byte, "|x, y| y % x", "`max(abs(x), 1)`", "|x, y| y % max(abs(x), 1)"),
        (&byte, "|x| if x { 1 } else { 2 }", "`x > 0`", "|x| if x > 0 { 1 } else { 2 }"),
    ] {
        let found = of_types(&MAP, text, typing);
        assert!(found.len() == 1 && found[0].1.contains(suggestion), "{text}\n{found:#?}");
        assert_eq!(of_types(&MAP, mended, typing), [], "{text}");
    }
}

#[test]
fn all_faults_of_types_are_told_at_once() {
    let found =
        of_types(&MAP, "|x| exp(x) + x * 2 + max(x, 0) + (f32(x) - x)", &doubles(&[DOUBLE]));
    let tokens: Vec<&str> = found.iter().map(|(token, _)| token.as_str()).collect();
    assert_eq!(tokens, ["exp(x)", "2", "0", "f32(x)"]);
}

#[test]
fn a_number_keeps_the_digits_that_its_type_has() {
    let number = |scope, text: &str| {
        let closure = Closure::parse(scope, text).unwrap_or_else(|e| panic!("{text}: {e}"));
        (closure.to_string(), closure)
    };
    for text in
        ["0.1", "3.141592653589793", "1e300", "5e-324", "0.30000000000000004", "1.0", "1e16"]
    {
        assert_eq!(number(&IDENTITY, text).0, text);
        let NodeKind::Float(bits) = number(&IDENTITY, text).1.body().value.kind else { panic!() };
        assert_eq!(Ok(f64::from_bits(bits)), text.parse(), "{text}");
    }
    assert_eq!(number(&IDENTITY, "0.1000000000000000055511151231257827").0, "0.1");
    // If all types are `f32`, literals that round to the same `f32` are the same number and have
    // the same text.
    for (text, printed) in [("0.1", "0.1"), ("0.7978845608028654", "0.7978846"), ("1e-45", "1e-45")]
    {
        let (text, wide) = (format!("|x| x * {text}"), format!("|x| x * {printed}"));
        assert_eq!(number(&EPILOGUE, &text).0, wide);
        assert_eq!(number(&EPILOGUE, &text).1, number(&EPILOGUE, &wide).1);
    }
    for (text, part) in [
        ("1e39", "`1e39` is too large; an f32 is at most 3.4028235e38"),
        ("1e-60", "`1e-60` is too small for an f32 and would be 0; write `0.0`"),
    ] {
        fault(&IDENTITY, &Typing::F32, text, text, part);
        assert_eq!(of_types(&IDENTITY, text, &Typing::F64), []);
    }
    assert!(faults(&IDENTITY, "1e400")[0].1.contains("an f64 is at most 1.7976931348623157e308"));
    assert!(faults(&IDENTITY, "1e-400")[0].1.contains("too small for an f64"));
    assert!(faults(&EPILOGUE, "|x| x * 1e400")[0].1.contains("an f32 is at most 3.4028235e38"));
    assert!(faults(&EPILOGUE, "|x| x * 1e-400")[0].1.contains("too small for an f32"));
}

#[test]
fn an_f32_is_the_number_that_is_written() {
    let mut random = Random(3);
    for _ in 0..200_000 {
        let value = f32::from_bits(random.bits() as u32 % 0x7f80_0000);
        let wide = literal::of_f32(value);
        assert_eq!(literal::to_f32(wide).to_bits(), value.to_bits());
        assert_eq!(format!("{:?}", f64::from_bits(wide)), format!("{value:?}"));
    }
    // Just above the midpoint of two `f32`: rounding twice would give the lower one.
    assert_eq!(literal::to_f32(1.000_000_059_604_644_8f64.to_bits()), 1.000_000_1);
}

#[test]
fn a_faulty_expression_still_has_its_values() {
    let head = |scope, text: &str| {
        let (tokens, _) = crate::parse::tokens_of(text);
        Closure::head(scope, &tokens).map(|closure| closure.params().len())
    };
    assert_eq!(head(&MAP, "|x, y, z| x +"), Some(3));
    assert_eq!(head(&MAP, "|x, y| frobnicate(x)"), Some(2));
    assert_eq!(head(&MAP, "|a, b, c, d, e| a"), None);
    assert_eq!(head(&MAP, "|x, y[n]| x"), None);
    assert_eq!(head(&FOLD, "|a, b| a +"), Some(2));
    assert_eq!(head(&FOLD, "|a| a +"), None);
    assert_eq!(head(&FINISH, "|s, len| s /"), Some(2));
    assert_eq!(head(&IDENTITY, "1.0 /"), None);
}

#[test]
fn the_range_of_an_integer_is_known() {
    let range =
        |text, typing: &Typing| Closure::parse(&MAP, text).expect("it can be read").range(typing);
    assert_eq!(range("|x| x * x", &integers(&[BYTE])), Some((-128 * 127, 128 * 128)));
    assert_eq!(range("|x, y| x - y", &integers(&[BYTE, COUNT])), Some((-383, 127)));
    assert_eq!(range("|_x| i", &integers(&[BYTE])), Some((0, 1 << 48)));
    assert_eq!(range("|x| x", &Typing::F32), None);
    assert_eq!(range("|x| x + 1", &integers(&[LONG])), None);
}

#[test]
fn an_element_has_the_type_that_it_is_computed_in() {
    let limits = |elem| match ValueType::from_elem(elem) {
        Some(ValueType::Int { least, most }) => Some((least, most)),
        _ => None,
    };
    assert_eq!(limits(Elem::I8), Some((i8::MIN.into(), i8::MAX.into())));
    assert_eq!(limits(Elem::U8), Some((0, u8::MAX.into())));
    assert_eq!(limits(Elem::I16), Some((i16::MIN.into(), i16::MAX.into())));
    assert_eq!(limits(Elem::U16), Some((0, u16::MAX.into())));
    assert_eq!(limits(Elem::I32), Some((i32::MIN.into(), i32::MAX.into())));
    assert_eq!(limits(Elem::U32), Some((0, u32::MAX.into())));
    assert_eq!(limits(Elem::I64), Some((i64::MIN.into(), i64::MAX.into())));
    assert_eq!(ValueType::from_elem(Elem::U64), None);
    assert_eq!(ValueType::from_elem(Elem::F64), Some(DOUBLE));
    for elem in [Elem::F32, Elem::F16, Elem::Bf16] {
        assert_eq!(ValueType::from_elem(elem), Some(SINGLE));
    }
}
