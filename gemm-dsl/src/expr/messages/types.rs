//! Types, and integers that leave theirs.

use super::fault;
use crate::error::{SpecError, clip};
use crate::expr::remedy::{chosen, compared, converted};
use crate::expr::{Binary, Environment, Float, Function, Node, Tokens, Type, Typing, Unary};

/// An operand of another type than `wanted`, a float.
pub(crate) fn wrong_argument(
    key: &'static str,
    at: Tokens,
    function: Function,
    (found, wanted): (Type, Float),
    text: &str,
    remedy: &str,
) -> SpecError {
    let message = format!(
        "`{}` takes {} here, and `{}` is {}; write `{remedy}`",
        function.name(),
        Type::from(wanted).name(),
        clip(text),
        found.name(),
    );
    fault(key, at, message)
}

pub(crate) fn truth_argument(
    key: &'static str,
    at: Tokens,
    function: Function,
    remedy: &str,
) -> SpecError {
    let name = function.name();
    let message = format!("`{name}` takes a number, and this is a truth value; write `{remedy}`");
    fault(key, at, message)
}

/// A function of an `f32` alone that is given an `f64`, and what its value is then converted to.
pub(crate) fn single_only(
    key: &'static str,
    at: Tokens,
    function: Function,
    text: &str,
    to: Option<Float>,
) -> SpecError {
    let (name, text) = (function.name(), clip(text));
    let single = format!("{name}(f32({text}))");
    let remedy = to.map_or(single.clone(), |to| format!("{}({single})", to.name()));
    let message = format!("`{name}` is of an f32 alone, and `{text}` is an f64; write `{remedy}`");
    fault(key, at, message)
}

pub(crate) fn converted_already(env: &Environment, at: Tokens, to: Float) -> SpecError {
    let others = match (to, env.function(Float::F64.name())) {
        (_, None) => "an integer",
        (Float::F32, _) => "an integer or an f64",
        (Float::F64, _) => "an integer or an f32",
    };
    let name = to.name();
    let message =
        format!("`{name}` converts {others}, and this is an {name} already; leave `{name}(…)` out");
    fault(env.key, at, message)
}

pub(crate) fn mixed(
    key: &'static str,
    at: Tokens,
    op: Binary,
    (found, other): (Type, Float),
    text: &str,
    remedy: &str,
) -> SpecError {
    let found = match found {
        Type::Int => "integer",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Bool => "truth value",
    };
    let message = format!(
        "`{}` stands between {} and the {found} `{}`, and nothing is converted by itself; \
         write `{remedy}`",
        op.sign(),
        Type::from(other).name(),
        clip(text),
    );
    fault(key, at, message)
}

pub(crate) fn truth(key: &'static str, at: Tokens, op: Binary, remedy: &str) -> SpecError {
    let message = match op {
        Binary::Eq | Binary::Ne => {
            format!("`{}` compares numbers, not truth values; use `&&`, `||` and `!`", op.sign())
        }
        _ => format!("`{}` takes numbers, not truth values; write `{remedy}`", op.sign()),
    };
    fault(key, at, message)
}

pub(crate) fn no_truth(
    key: &'static str,
    at: Tokens,
    op: Binary,
    found: Type,
    typing: &Typing,
) -> SpecError {
    let message = format!(
        "`{}` takes truth values, and this is {}; compare it, as in `{}`",
        op.sign(),
        found.name(),
        compared('x', found, ">", typing)
    );
    fault(key, at, message)
}

pub(crate) fn no_truths(
    key: &'static str,
    at: Tokens,
    op: Binary,
    (a, b): (Type, Type),
    typing: &Typing,
) -> SpecError {
    let (a, b) = (compared('x', a, ">", typing), compared('y', b, ">", typing));
    let sign = op.sign();
    let message = format!(
        "`{sign}` takes truth values, and these are numbers; compare each, as in `{a} {sign} {b}`"
    );
    fault(key, at, message)
}

pub(crate) fn remainder(key: &'static str, at: Tokens, float: Float) -> SpecError {
    let name = float.name();
    let message = format!(
        "`%` is for integers; for {name} write `x - y * floor(x / y)`, rounded as it stands"
    );
    fault(key, at, message)
}

pub(crate) fn wrong_sign(
    key: &'static str,
    at: Tokens,
    op: Unary,
    found: Type,
    typing: &Typing,
) -> SpecError {
    let message = match op {
        Unary::Neg => "`-` is of a number, and this is a truth value; write `!`".into(),
        Unary::Not => format!(
            "`!` is of a truth value, and this is {}; compare it, as in `{}`",
            found.name(),
            compared('x', found, "==", typing)
        ),
    };
    fault(key, at, message)
}

pub(crate) fn condition(key: &'static str, at: Tokens, found: Type, typing: &Typing) -> SpecError {
    let message = format!(
        "a condition is a truth value, and this is {}; compare it, as in `{}`",
        found.name(),
        compared('x', found, ">", typing)
    );
    fault(key, at, message)
}

pub(crate) fn arms(
    key: &'static str,
    at: Tokens,
    (yes, no): (Type, Type),
    remedy: Option<String>,
) -> SpecError {
    let remedy = match remedy {
        Some(remedy) => format!("write `{remedy}`"),
        None => "let both have one type".into(),
    };
    let message = format!("one arm of `if` is {}, the other {}; {remedy}", yes.name(), no.name());
    fault(key, at, message)
}

pub(crate) fn wrong_result(
    env: &Environment,
    typing: &Typing,
    value: &Node,
    found: Type,
) -> SpecError {
    let wanted = typing.result;
    let write = |to| format!("write `{}`", converted(value, to, typing));
    let remedy = match (wanted, found) {
        (Type::F32, Type::Int | Type::F64) => write(Float::F32),
        (Type::F64, Type::Int | Type::F32) => write(Float::F64),
        (Type::Int, Type::F32 | Type::F64) => "nothing is converted to an integer".into(),
        (Type::Bool, found) => format!("compare it, as in `{}`", compared('x', found, ">", typing)),
        (wanted, _) => format!("write `{}`", chosen(wanted, typing)),
    };
    let (key, wanted, found) = (env.key, wanted.name(), found.name());
    fault(key, value.at, format!("`{key}` gives {wanted}, and this is {found}; {remedy}"))
}

pub(crate) fn overflow(key: &'static str, at: Tokens, typing: &Typing) -> SpecError {
    let remedy = match typing.result {
        Type::Int => "limit its parts first, as in `clamp(x, -1000, 1000)`".to_owned(),
        _ => format!("convert its parts by `{}(…)` first", typing.float.name()),
    };
    fault(key, at, format!("the integer may leave 64 bits; {remedy}"))
}

pub(crate) fn by_zero(
    env: &Environment,
    at: Tokens,
    op: Binary,
    divisor: &str,
    (least, most): (i128, i128),
    typing: &Typing,
) -> SpecError {
    let divisor = clip(divisor);
    let never = || "divide by what is never 0, such as `max(abs(x), 1)`".to_owned();
    let convert = match typing.result {
        Type::Int => Some(never()),
        _ if !env.has_floats() => None,
        _ => Some(format!("convert both by `{}(…)`", typing.float.name())),
    };
    // Nothing is changed but the 0.
    let write = match (least, most) {
        (0, 1..) => Some(format!("write `max({divisor}, 1)`")),
        (..=-1, 0) => Some(format!("write `min({divisor}, -1)`")),
        _ => None,
    };
    let remedy = match (write, convert) {
        (Some(write), Some(convert)) => format!("{write}, or {convert}"),
        (write, convert) => write.or(convert).unwrap_or_else(never),
    };
    fault(env.key, at, format!("the right side of `{}` may be 0; {remedy}", op.sign()))
}

/// A number with a point where there are integers only.
pub(crate) fn no_floats(key: &'static str, at: Tokens, number: &str) -> SpecError {
    let message = format!("`{number}`: a {key} is of integers; write a whole number");
    fault(key, at, message)
}
