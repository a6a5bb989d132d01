//! What can be wrong with an expression.

use super::{SpecError, clip, quoted};
use crate::parse::closest;
use crate::value::{Binary, Environment, Function, Tokens, Type, Unary};

fn fault(key: &'static str, at: Tokens, message: String) -> SpecError {
    SpecError::at_tokens(key, (at.first, at.last), message)
}

pub(crate) fn no_closure(env: &Environment, at: Tokens) -> SpecError {
    let Environment { key, example, meaning, .. } = env;
    let message =
        format!("`{key}` takes a closure whose first name is {meaning}, as in `{key}: {example}`");
    fault(key, at, message)
}

pub(crate) fn open_head(env: &Environment, at: Tokens) -> SpecError {
    let Environment { key, example, .. } = env;
    let message = format!("`|` is not closed; write `|` after the names, as in `{example}`");
    fault(key, at, message)
}

pub(crate) fn expected(key: &'static str, at: Tokens, what: &str, found: &str) -> SpecError {
    fault(key, at, format!("expected {what}, found {found}"))
}

pub(crate) fn not_ascii(key: &'static str, at: Tokens, word: &str) -> SpecError {
    let word = clip(word);
    let message =
        format!("`{word}` is no name here: only ASCII letters, digits and `_`, and no `r#`");
    fault(key, at, message)
}

pub(crate) fn missing_parameter(env: &Environment, at: Tokens) -> SpecError {
    let Environment { key, example, meaning, .. } = env;
    fault(key, at, format!("the closure names nothing; name {meaning} first, as in `{example}`"))
}

pub(crate) fn indexed_value(env: &Environment, at: Tokens, name: &str) -> SpecError {
    let Environment { key, meaning, .. } = env;
    fault(key, at, format!("`{name}` is {meaning}, and no array; write `{name}` alone"))
}

pub(crate) fn no_operands(env: &Environment, at: Tokens, param: &str) -> SpecError {
    let Environment { key, meaning, example, .. } = env;
    let message = format!(
        "`{key}` knows {meaning} and no other operand such as `{param}`; leave it out, as in `{example}`"
    );
    fault(key, at, message)
}

pub(crate) fn wrong_index(env: &Environment, at: Tokens, name: &str) -> SpecError {
    let forms: Vec<String> = env
        .operands
        .iter()
        .map(|index| match index {
            [] => format!("`{name}`"),
            index => format!("`{name}[{}]`", index.join(", ")),
        })
        .collect();
    fault(env.key, at, format!("an operand is one of {}", forms.join(", ")))
}

pub(crate) fn reserved(key: &'static str, at: Tokens, name: &str) -> SpecError {
    let message =
        format!("`{name}` has a meaning of its own; use another name, such as `{name}_value`");
    fault(key, at, message)
}

pub(crate) fn function_name(key: &'static str, at: Tokens, name: &str) -> SpecError {
    let message = format!("`{name}` is a function; use another name, such as `{name}_value`");
    fault(key, at, message)
}

pub(crate) fn duplicate(key: &'static str, at: Tokens, name: &str) -> SpecError {
    fault(key, at, format!("`{}` is defined already; use another name", clip(name)))
}

pub(crate) fn unused(key: &'static str, at: Tokens, name: &str, parameter: bool) -> SpecError {
    let name = clip(name);
    let message = match parameter {
        true => format!("`{name}` is never read; read it, or write `_{name}` if that is meant"),
        false => format!("`{name}` is never read; leave the definition out"),
    };
    fault(key, at, message)
}

pub(crate) fn unknown_name(
    env: &Environment,
    at: Tokens,
    name: &str,
    names: &[&str],
    gone: bool,
) -> SpecError {
    let hint = if gone {
        ": the block that defines it ends before; define it outside".into()
    } else if Function::named(name).is_some() {
        format!(" and no value but a function: `{}`", call_of(name))
    } else if matches!(name, "true" | "false") {
        "; write the condition itself".into()
    } else if let Some(close) = closest(name, names) {
        format!("; did you mean `{close}`?")
    } else {
        format!("; there are {}", quoted(names))
    };
    fault(env.key, at, format!("`{}` is no name that is known here{hint}", clip(name)))
}

fn call_of(name: &str) -> String {
    let operands = Function::named(name).map_or(&[][..], |function| function.row().operands);
    format!("{name}({})", operands.join(", "))
}

/// What CUDA C and Rust call functions that the language has.
const ALIASES: &[(&str, &str)] = &[
    ("fmax", "max"),
    ("fmaxf", "max"),
    ("maximum", "max"),
    ("fmin", "min"),
    ("fminf", "min"),
    ("minimum", "min"),
    ("fabs", "abs"),
    ("fabsf", "abs"),
    ("ln", "log"),
    ("swish", "silu"),
    ("mul_add", "fma"),
    ("fmaf", "fma"),
    ("rint", "round"),
    ("rintf", "round"),
    ("round_ties_even", "round"),
    ("float", "f32"),
];

pub(crate) fn unknown_function(key: &'static str, at: Tokens, name: &str) -> SpecError {
    let functions: Vec<&'static str> = Function::ALL.iter().map(|f| f.name()).collect();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, meant)| *meant);
    let plain = || name.strip_suffix('f').and_then(Function::named).map(Function::name);
    let hint = match alias.or_else(plain).or_else(|| closest(name, &functions)) {
        Some(close) => format!("; did you mean `{}`?", call_of(close)),
        None => format!("; there are {}", quoted(&functions)),
    };
    fault(key, at, format!("`{}` is no function{hint}", clip(name)))
}

pub(crate) fn arity(key: &'static str, at: Tokens, function: Function, given: usize) -> SpecError {
    let operands = function.row().operands;
    let s = if operands.len() == 1 { "" } else { "s" };
    let message = format!(
        "`{}` takes {} operand{s}, not {given}: `{}`",
        function.name(),
        operands.len(),
        call_of(function.name())
    );
    fault(key, at, message)
}

/// How an integer becomes an f32.
fn as_float(text: &str, whole: Option<i64>) -> String {
    match whole {
        Some(value) => format!("write `{value}.0`"),
        None => format!("write `f32({})`", clip(text)),
    }
}

pub(crate) fn integer_argument(
    key: &'static str,
    at: Tokens,
    function: Function,
    text: &str,
    whole: Option<i64>,
) -> SpecError {
    let message = format!(
        "`{}` takes an f32 here, and `{}` is an integer; {}",
        function.name(),
        clip(text),
        as_float(text, whole)
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
    whole: Option<i64>,
) -> SpecError {
    let message = format!(
        "`{}` stands between an f32 and the integer `{}`, and nothing is converted by itself; {}",
        op.sign(),
        clip(text),
        as_float(text, whole)
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
        "`{}` takes truth values, and this is {}; compare it, as in `x > 0.0`",
        op.sign(),
        found.name()
    );
    fault(key, at, message)
}

pub(crate) fn no_truths(key: &'static str, at: Tokens, op: Binary) -> SpecError {
    let sign = op.sign();
    let message = format!(
        "`{sign}` takes truth values, and these are numbers; compare each, as in `x > 0.0 {sign} y > 0.0`"
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
            "`!` is of a truth value, and this is {}; compare it, as in `x == 0.0`",
            found.name()
        ),
    };
    fault(key, at, message)
}

pub(crate) fn condition(key: &'static str, at: Tokens, found: Type) -> SpecError {
    let message = format!(
        "a condition is a truth value, and this is {}; compare it, as in `x > 0.0`",
        found.name()
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

pub(crate) fn wrong_result(
    env: &Environment,
    at: Tokens,
    found: Type,
    whole: Option<i64>,
) -> SpecError {
    let remedy = match (env.result, found) {
        (Type::F32, Type::Int) => match whole {
            Some(value) => format!("; write `{value}.0`"),
            None => "; write `f32(…)` around it".into(),
        },
        (Type::F32, Type::Bool) => "; write `if … { 1.0 } else { 0.0 }`".into(),
        (Type::Bool, _) => "; compare it, as in `n > 64`".into(),
        _ => String::new(),
    };
    let message =
        format!("`{}` gives {}, and this is {}{remedy}", env.key, env.result.name(), found.name());
    fault(env.key, at, message)
}

pub(crate) fn chained(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "comparisons do not chain; write `a < b && b < c`".into())
}

pub(crate) fn cast(key: &'static str, at: Tokens, ty: &str) -> SpecError {
    let message = match ty {
        "f32" => {
            "there is no `as`; an integer is converted by `f32(…)`, and an f32 needs nothing".into()
        }
        ty => format!(
            "there is no `as` and no type `{}`; the one conversion is `f32(…)`, of an integer",
            clip(ty)
        ),
    };
    fault(key, at, message)
}

pub(crate) fn method(key: &'static str, at: Tokens, method: &str) -> SpecError {
    let message = match Function::named(method) {
        Some(_) => format!("functions are not methods; write `{}`", call_of(method)),
        None => "there are no fields and methods; write a function of its operands".into(),
    };
    fault(key, at, message)
}

pub(crate) fn sign(key: &'static str, at: Tokens, sign: char) -> SpecError {
    let message = match sign {
        '=' => "`=` stands in `let` only; to compare, write `==`".into(),
        '&' => "`&` is no operator; write `&&`".into(),
        '|' => "`|` is no operator; write `||`".into(),
        '^' => "`^` is no operator; a power is written as a product, `x * x`".into(),
        '?' => "there is no `?`; write `if condition { a } else { b }`".into(),
        ',' => "`,` stands between operands of a function only; leave it out".into(),
        ';' => "`;` ends a definition inside braces only; write `{ let t = …; … }`".into(),
        '.' => "`.` belongs inside a number, with digits on both sides".into(),
        other => format!("`{other}` is no operator"),
    };
    fault(key, at, message)
}

pub(crate) fn indexed(key: &'static str, at: Tokens) -> SpecError {
    let message = "an index belongs to a parameter, between the bars; here the name stands alone";
    fault(key, at, message.into())
}

pub(crate) fn left_over(key: &'static str, at: Tokens, found: &str) -> SpecError {
    fault(key, at, format!("expected an operator or the end of the expression, found {found}"))
}

pub(crate) fn no_else(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "`if` needs `else { … }`: an expression has a value either way".into())
}

pub(crate) fn bare_block(key: &'static str, at: Tokens) -> SpecError {
    let message = "`{ … }` is the body of the closure or an arm of `if`; here write `( … )`";
    fault(key, at, message.into())
}

pub(crate) fn no_value(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "the block has no value; end it with an expression and no `;`".into())
}

pub(crate) fn semicolon(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "the last expression is the block's value; leave the `;` out".into())
}

pub(crate) fn mutable(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "a definition does not change; leave `mut` out".into())
}

pub(crate) fn annotated(key: &'static str, at: Tokens) -> SpecError {
    fault(key, at, "a definition has the type of its value; leave `: …` out".into())
}

pub(crate) fn annotated_parameter(env: &Environment, at: Tokens) -> SpecError {
    let Environment { key, example, .. } = env;
    let message = format!("a parameter is an f32 as it stands; leave `: …` out, as in `{example}`");
    fault(key, at, message)
}

pub(crate) fn assignment(key: &'static str, at: Tokens, op: Binary) -> SpecError {
    let sign = op.sign();
    let message =
        format!("`{sign}=` changes a value, and none changes here; write `{sign}` for the result");
    fault(key, at, message)
}

pub(crate) fn too_long(key: &'static str, at: Tokens, most: usize) -> SpecError {
    let message = format!("the expression has more than {most} parts; make it shorter");
    fault(key, at, message)
}

pub(crate) fn too_deep(key: &'static str, at: Tokens, most: usize) -> SpecError {
    let message =
        format!("the expression is more than {most} levels deep; use `let` for its parts");
    fault(key, at, message)
}

pub(crate) fn no_number(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("expected a number, found {text}"))
}

pub(crate) fn suffix(key: &'static str, at: Tokens, text: &str, plain: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}`: a number has no suffix; write `{plain}`"))
}

pub(crate) fn not_decimal(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is no decimal number such as `2`, `0.5` or `1e-6`"))
}

pub(crate) fn large_integer(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is too large; an integer is at most {}", i64::MAX))
}

pub(crate) fn large_float(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is too large; an f32 is at most {:e}", f32::MAX))
}

pub(crate) fn small_float(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is too small for an f32 and would be 0; write `0.0`"))
}

pub(crate) fn overflow(key: &'static str, at: Tokens) -> SpecError {
    let message = "the integer may leave 64 bits; convert its parts by `f32(…)` first";
    fault(key, at, message.into())
}

pub(crate) fn by_zero(key: &'static str, at: Tokens, op: Binary, divisor: &str) -> SpecError {
    let message = format!(
        "the right side of `{}` may be 0; write `max({}, 1)`, or convert both by `f32(…)`",
        op.sign(),
        clip(divisor)
    );
    fault(key, at, message)
}
