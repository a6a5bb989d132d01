//! Messages about types, and about integers that overflow.

use crate::error::{SpecError, clip};
use crate::expr::suggestion::{chosen, compared, converted};
use crate::expr::tree::NodeSpan;
use crate::expr::{Binary, ExprScope, Float, Function, IntRange, Node, Type, Typing, Unary};

/// Reports an argument that does not have the type `wanted`, a float type.
pub(crate) fn wrong_argument(
    key: &'static str,
    at: NodeSpan,
    function: Function,
    found: Type,
    wanted: Float,
    text: &str,
    suggestion: &str,
) -> SpecError {
    let message = format!(
        "`{}` takes {} here, and `{}` is {}; write `{suggestion}`",
        function.name(),
        Type::from(wanted).name(),
        clip(text),
        found.name(),
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn truth_argument(
    key: &'static str,
    at: NodeSpan,
    function: Function,
    suggestion: &str,
) -> SpecError {
    let name = function.name();
    let message = format!("`{name}` takes a number, but this is a boolean; write `{suggestion}`");
    SpecError::at_tokens(key, at, message)
}

/// Reports an `f64` argument of an `f32` function. `to` is the type to which the function's value
/// is then converted.
pub(crate) fn single_only(
    key: &'static str,
    at: NodeSpan,
    function: Function,
    text: &str,
    to: Option<Float>,
) -> SpecError {
    let (name, text) = (function.name(), clip(text));
    let single = format!("{name}(f32({text}))");
    let suggestion = to.map_or(single.clone(), |to| format!("{}({single})", to.name()));
    let message =
        format!("`{name}` takes only an f32, and `{text}` is an f64; write `{suggestion}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn converted_already(scope: &ExprScope, at: NodeSpan, to: Float) -> SpecError {
    let others = match (to, scope.function(Float::F64.name())) {
        (_, None) => "an integer",
        (Float::F32, _) => "an integer or an f64",
        (Float::F64, _) => "an integer or an f32",
    };
    let name = to.name();
    let message =
        format!("`{name}` converts {others}, and this is an {name} already; leave `{name}(…)` out");
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn mixed(
    key: &'static str,
    at: NodeSpan,
    op: Binary,
    found: Type,
    other: Float,
    text: &str,
    suggestion: &str,
) -> SpecError {
    let found = match found {
        Type::Int => "integer",
        Type::F32 => "f32",
        Type::F64 => "f64",
        Type::Bool => "boolean",
    };
    let message = format!(
        "`{}` combines {} and the {found} `{}`, and there is no implicit conversion; write \
         `{suggestion}`",
        op.sign(),
        Type::from(other).name(),
        clip(text),
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn truth(key: &'static str, at: NodeSpan, op: Binary, suggestion: &str) -> SpecError {
    let message = match op {
        Binary::Eq | Binary::Ne => {
            format!("`{}` compares numbers, not booleans; use `&&`, `||` and `!`", op.sign())
        }
        _ => format!("`{}` takes numbers, not booleans; write `{suggestion}`", op.sign()),
    };
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn no_truth(
    key: &'static str,
    at: NodeSpan,
    op: Binary,
    found: Type,
    typing: &Typing,
) -> SpecError {
    let message = format!(
        "`{}` takes booleans, but this is {}; compare it, as in `{}`",
        op.sign(),
        found.name(),
        compared('x', found, ">", typing)
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn no_truths(
    key: &'static str,
    at: NodeSpan,
    op: Binary,
    a: Type,
    b: Type,
    typing: &Typing,
) -> SpecError {
    let (a, b) = (compared('x', a, ">", typing), compared('y', b, ">", typing));
    let sign = op.sign();
    let message = format!(
        "`{sign}` takes booleans, but these are numbers; compare each, as in `{a} {sign} {b}`"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn remainder(key: &'static str, at: NodeSpan, float: Float) -> SpecError {
    let name = float.name();
    let message = format!(
        "`%` is for integers; for {name} write `x - y * floor(x / y)`, where each operation rounds"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn wrong_sign(
    key: &'static str,
    at: NodeSpan,
    op: Unary,
    found: Type,
    typing: &Typing,
) -> SpecError {
    let message = match op {
        Unary::Neg => "`-` takes a number, but this is a boolean; write `!`".into(),
        Unary::Not => format!(
            "`!` takes a boolean, but this is {}; compare it, as in `{}`",
            found.name(),
            compared('x', found, "==", typing)
        ),
    };
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn condition(
    key: &'static str,
    at: NodeSpan,
    found: Type,
    typing: &Typing,
) -> SpecError {
    let message = format!(
        "a condition must be a boolean, but this is {}; compare it, as in `{}`",
        found.name(),
        compared('x', found, ">", typing)
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn arms(
    key: &'static str,
    at: NodeSpan,
    yes: Type,
    no: Type,
    suggestion: Option<String>,
) -> SpecError {
    let suggestion = match suggestion {
        Some(suggestion) => format!("write `{suggestion}`"),
        None => "give both arms one type".into(),
    };
    let message =
        format!("one arm of `if` is {}, the other {}; {suggestion}", yes.name(), no.name());
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn wrong_result(
    scope: &ExprScope,
    typing: &Typing,
    value: &Node,
    wanted: Type,
    found: Type,
) -> SpecError {
    let write = |to| format!("write `{}`", converted(value, to, typing));
    let suggestion = match (wanted, found) {
        (Type::F32, Type::Int | Type::F64) => write(Float::F32),
        (Type::F64, Type::Int | Type::F32) => write(Float::F64),
        (Type::Int, found @ (Type::F32 | Type::F64)) => integer_wanted(scope, found),
        (Type::Bool, found) => format!("compare it, as in `{}`", compared('x', found, ">", typing)),
        (wanted, _) => format!("write `{}`", chosen(wanted, typing)),
    };
    let (key, wanted, found) = (scope.key, wanted.name(), found.name());
    // An expression without parameters is a value, not a closure.
    let subject = match (scope.conditions, scope.values.1) {
        (Some(_), _) => "a condition must be".to_owned(),
        (None, 0) if scope.operands.is_empty() => format!("`{key}` must be"),
        _ if scope.is_elementwise() => "a result must be".to_owned(),
        (None, _) => format!("`{key}` must return"),
    };
    let message = format!("{subject} {wanted}, but this is {found}; {suggestion}");
    SpecError::at_tokens(key, value.at, message)
}

/// Returns advice for a float where an integer is required. No function converts floats to
/// integers. The types of a reduction are keys, so another key makes the float valid.
fn integer_wanted(scope: &ExprScope, found: Type) -> String {
    let float = if found == Type::F64 { Float::F64 } else { Float::F32 }.name();
    if scope.is_typed {
        return format!("state its type, as in `|…| -> {float} …`");
    }
    match scope.key {
        "identity" => format!("write a whole number, or use `acc: {float}`"),
        "finish" => format!("use `result: {float}`"),
        _ => format!("use `acc: {float}`"),
    }
}

pub(crate) fn overflow(key: &'static str, at: NodeSpan, typing: &Typing) -> SpecError {
    let suggestion = match typing.result {
        Type::Int => "limit its parts first, as in `clamp(x, -1000, 1000)`".to_owned(),
        _ => format!("convert its parts by `{}(…)` first", typing.float.name()),
    };
    SpecError::at_tokens(key, at, format!("the integer may overflow 64 bits; {suggestion}"))
}

pub(crate) fn by_zero(
    scope: &ExprScope,
    at: NodeSpan,
    op: Binary,
    divisor: &str,
    range: IntRange,
    typing: &Typing,
) -> SpecError {
    let divisor = clip(divisor);
    let never = || "divide by a value that is never 0, such as `max(abs(x), 1)`".to_owned();
    let convert = match typing.result {
        Type::Int => Some(never()),
        _ if !scope.has_floats() || op == Binary::Rem => None,
        _ => Some(format!("convert both sides by `{}(…)`", typing.float.name())),
    };
    // The suggested `max` changes the divisor only if it is 0.
    let write = match (range.least, range.most) {
        (0, 1..) => Some(format!("write `max({divisor}, 1)`")),
        (..=-1, 0) => Some(format!("write `min({divisor}, -1)`")),
        _ => None,
    };
    let suggestion = match (write, convert) {
        (Some(write), Some(convert)) => format!("{write}, or {convert}"),
        (write, convert) => write.or(convert).unwrap_or_else(never),
    };
    SpecError::at_tokens(
        scope.key,
        at,
        format!("the right side of `{}` may be 0; {suggestion}", op.sign()),
    )
}

/// Reports a number with a point in a scope that has only integers.
pub(crate) fn no_floats(key: &'static str, at: NodeSpan, number: &str) -> SpecError {
    let message = format!("`{number}`: a {key} uses only integers; write a whole number");
    SpecError::at_tokens(key, at, message)
}
