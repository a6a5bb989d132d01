//! Names, and functions by theirs.

use super::fault;
use crate::error::{SpecError, clip, quoted};
use crate::parse::closest;
use crate::value::{Environment, Function, Tokens};

pub(crate) fn missing_parameter(env: &Environment, at: Tokens) -> SpecError {
    let Environment { key, example, meaning, .. } = env;
    fault(key, at, format!("the closure names nothing; name {meaning} first, as in `{example}`"))
}

pub(crate) fn indexed_value(env: &Environment, at: Tokens, name: &str) -> SpecError {
    let Environment { key, meaning, .. } = env;
    let message = format!(
        "`{name}` is {meaning}, and no array; write `{name}` alone, or name {meaning} before it"
    );
    fault(key, at, message)
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

pub(crate) fn output_index(env: &Environment, at: Tokens, name: &str, by: &[&str]) -> SpecError {
    let message = format!(
        "`{name}` is what the kernel writes, as it was before: write `{name}[{}]`, or use another name",
        by.join(", ")
    );
    fault(env.key, at, message)
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

pub(crate) fn unused(env: &Environment, at: Tokens, name: &str, parameter: bool) -> SpecError {
    let is_output = env.output.is_some_and(|(output, _)| output == name);
    let name = clip(name);
    let message = match parameter {
        // By another name it would be another operand.
        true if is_output => format!("`{name}` is never read; read it, or leave it out"),
        true => format!("`{name}` is never read; read it, or write `_{name}` if that is meant"),
        false => format!("`{name}` is never read; leave the definition out"),
    };
    fault(env.key, at, message)
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

pub(super) fn call_of(name: &str) -> String {
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
