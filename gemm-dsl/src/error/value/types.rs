//! Types, and integers that leave theirs.

use super::fault;
use crate::error::{SpecError, clip};
use crate::value::{Binary, Environment, Function, Tokens, Type, Unary};

/// A comparison of a number of this type, called `name`.
fn compared(name: char, found: Type, sign: &str) -> String {
    match found {
        Type::Int => format!("{name} {sign} 0"),
        _ => format!("{name} {sign} 0.0"),
    }
}

pub(crate) fn integer_argument(
    key: &'static str,
    at: Tokens,
    function: Function,
    text: &str,
    float: &str,
) -> SpecError {
    let message = format!(
        "`{}` takes an f32 here, and `{}` is an integer; write `{float}`",
        function.name(),
        clip(text),
    );
    fault(key, at, message)
}

pub(crate) fn wrong_argument(
    key: &'static str,
    at: Tokens,
    function: Function,
    found: Type,
) -> SpecError {
    let name = function.name();
    let message = match (function, found) {
        (Function::ToF32, Type::F32) => {
            "`f32` converts an integer, and this is an f32 already; leave `f32(…)` out".into()
        }
        (_, Type::Bool) => format!(
            "`{name}` takes a number, and this is a truth value; write `if … {{ 1.0 }} else {{ 0.0 }}`"
        ),
        _ => format!("`{name}` takes an integer here, and this is {}", found.name()),
    };
    fault(key, at, message)
}

pub(crate) fn mixed(
    key: &'static str,
    at: Tokens,
    op: Binary,
    text: &str,
    float: &str,
) -> SpecError {
    let message = format!(
        "`{}` stands between an f32 and the integer `{}`, and nothing is converted by itself; \
         write `{float}`",
        op.sign(),
        clip(text),
    );
    fault(key, at, message)
}

pub(crate) fn truth(key: &'static str, at: Tokens, op: Binary) -> SpecError {
    let message = match op {
        Binary::Eq | Binary::Ne => {
            format!("`{}` compares numbers, not truth values; use `&&`, `||` and `!`", op.sign())
        }
        _ => format!(
            "`{}` takes numbers, not truth values; write `if … {{ 1.0 }} else {{ 0.0 }}`",
            op.sign()
        ),
    };
    fault(key, at, message)
}

pub(crate) fn no_truth(key: &'static str, at: Tokens, op: Binary, found: Type) -> SpecError {
    let message = format!(
        "`{}` takes truth values, and this is {}; compare it, as in `{}`",
        op.sign(),
        found.name(),
        compared('x', found, ">")
    );
    fault(key, at, message)
}

pub(crate) fn no_truths(
    key: &'static str,
    at: Tokens,
    op: Binary,
    (a, b): (Type, Type),
) -> SpecError {
    let (sign, a, b) = (op.sign(), compared('x', a, ">"), compared('y', b, ">"));
    let message = format!(
        "`{sign}` takes truth values, and these are numbers; compare each, as in `{a} {sign} {b}`"
    );
    fault(key, at, message)
}

pub(crate) fn remainder(key: &'static str, at: Tokens) -> SpecError {
    let message = "`%` is for integers; for f32 write `x - y * floor(x / y)`, rounded as it stands";
    fault(key, at, message.into())
}

pub(crate) fn wrong_sign(key: &'static str, at: Tokens, op: Unary, found: Type) -> SpecError {
    let message = match op {
        Unary::Neg => "`-` is of a number, and this is a truth value; write `!`".into(),
        Unary::Not => format!(
            "`!` is of a truth value, and this is {}; compare it, as in `{}`",
            found.name(),
            compared('x', found, "==")
        ),
    };
    fault(key, at, message)
}

pub(crate) fn condition(key: &'static str, at: Tokens, found: Type) -> SpecError {
    let message = format!(
        "a condition is a truth value, and this is {}; compare it, as in `{}`",
        found.name(),
        compared('x', found, ">")
    );
    fault(key, at, message)
}

pub(crate) fn arms(
    key: &'static str,
    at: Tokens,
    (yes, no): (Type, Type),
    whole: Option<i64>,
) -> SpecError {
    let float = yes == Type::F32 || no == Type::F32;
    let remedy = match whole.filter(|_| float) {
        Some(value) => format!("write `{value}.0`"),
        None => "let both have one type".into(),
    };
    let message = format!("one arm of `if` is {}, the other {}; {remedy}", yes.name(), no.name());
    fault(key, at, message)
}

pub(crate) fn wrong_result(env: &Environment, at: Tokens, found: Type, float: &str) -> SpecError {
    let remedy = match (env.result, found) {
        (Type::F32, Type::Int) => format!("; write `{float}`"),
        (Type::F32, Type::Bool) => "; write `if … { 1.0 } else { 0.0 }`".into(),
        (Type::Bool, _) => "; compare it, as in `n > 64`".into(),
        _ => String::new(),
    };
    let message =
        format!("`{}` gives {}, and this is {}{remedy}", env.key, env.result.name(), found.name());
    fault(env.key, at, message)
}

pub(crate) fn overflow(key: &'static str, at: Tokens) -> SpecError {
    let message = "the integer may leave 64 bits; convert its parts by `f32(…)` first";
    fault(key, at, message.into())
}

pub(crate) fn by_zero(
    key: &'static str,
    at: Tokens,
    op: Binary,
    divisor: &str,
    (least, most): (i128, i128),
) -> SpecError {
    let divisor = clip(divisor);
    // Nothing is changed but the 0.
    let remedy = match (least, most) {
        (0, 1..) => format!("write `max({divisor}, 1)`, or convert both by `f32(…)`"),
        (..=-1, 0) => format!("write `min({divisor}, -1)`, or convert both by `f32(…)`"),
        _ => "convert both by `f32(…)`".to_owned(),
    };
    fault(key, at, format!("the right side of `{}` may be 0; {remedy}", op.sign()))
}
