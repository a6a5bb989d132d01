//! Messages about names and function calls.

use crate::error::{SpecError, clip, counted, quoted};
use crate::expr::tree::NodeSpan;
use crate::expr::{ExprScope, Function, WAVES};
use crate::syntax::closest;

/// Returns a number of parameters as text, such as `2 parameters`.
fn parameters(count: usize) -> String {
    counted(count as u64, "parameter")
}

pub(crate) fn missing_parameter(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, meaning, .. } = scope;
    let first = if scope.values.1 == 1 { " first" } else { "" };
    SpecError::at_tokens(
        key,
        at,
        format!("the closure has no parameters; name {meaning}{first}, as in `{example}`"),
    )
}

pub(crate) fn few_values(scope: &ExprScope, at: NodeSpan, given: usize) -> SpecError {
    let ExprScope { key, example, meaning, values: (least, _), .. } = scope;
    let message = format!(
        "the closure has {}, and `{key}` takes {least}: {meaning}, as in `{example}`",
        parameters(given)
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn many_values(scope: &ExprScope, at: NodeSpan, given: usize) -> SpecError {
    let ExprScope { key, example, meaning, values: (least, most), .. } = scope;
    let has = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let message = format!(
        "the closure has {}, and `{key}` takes {has}: {meaning}, as in `{example}`; leave {} out",
        parameters(given),
        if given - most == 1 {
            "the last".to_owned()
        } else {
            format!("the last {}", given - most)
        }
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn indexed_number(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let message = format!(
        "`{name}` has a type, so it is a number, not an array; write `{name}` without the index"
    );
    SpecError::at_tokens(scope.key, at, message)
}

/// Reports a number before a value.
pub(crate) fn early_number(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let ExprScope { key, meaning, .. } = scope;
    let message = format!(
        "`{name}` has a type, so it is a number that the launch passes, and numbers come after \
         the other parameters ({meaning}); move `{name}` to the end, or leave its type out"
    );
    SpecError::at_tokens(key, at, message)
}

/// Reports a closure whose parameters are all numbers.
pub(crate) fn only_numbers(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let ExprScope { key, example, meaning, .. } = scope;
    let message = format!(
        "`{name}` has a type, so it is a number that the launch passes, and no parameter is \
         left: name {meaning} before it, as in `{example}`, or leave the type of `{name}` out"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn indexed_value(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let ExprScope { key, meaning, .. } = scope;
    let message = match scope.operands {
        [] if scope.values.1 > 2 => format!(
            "`{key}` names values, not arrays; write `{name}` alone, for an input of the same \
             shape as the others"
        ),
        [] => format!("`{key}` names values, not arrays; write `{name}` alone"),
        _ => format!(
            "`{name}` is {meaning}, not an array; write `{name}` alone, or name {meaning} before \
             `{name}`"
        ),
    };
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn wrong_index(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let forms: Vec<String> = scope
        .operands
        .iter()
        .map(|index| match index {
            [] => format!("`{name}`"),
            index => format!("`{name}[{}]`", index.join(", ")),
        })
        .collect();
    SpecError::at_tokens(scope.key, at, format!("an operand is one of {}", forms.join(", ")))
}

pub(crate) fn output_index(scope: &ExprScope, at: NodeSpan, name: &str, by: &[&str]) -> SpecError {
    let message = format!(
        "`{name}` is the output before the launch: write `{name}[{}]`, or use another name",
        by.join(", ")
    );
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn reserved(key: &'static str, at: NodeSpan, name: &str) -> SpecError {
    let message = format!("`{name}` is reserved; use another name, such as `{name}_value`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn function_name(key: &'static str, at: NodeSpan, name: &str) -> SpecError {
    let message = format!("`{name}` is a function; use another name, such as `{name}_value`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn duplicate(key: &'static str, at: NodeSpan, name: &str) -> SpecError {
    SpecError::at_tokens(key, at, format!("`{}` is defined already; use another name", clip(name)))
}

pub(crate) fn unused(scope: &ExprScope, at: NodeSpan, name: &str, parameter: bool) -> SpecError {
    let is_output = scope.output.is_some_and(|(output, _)| output == name);
    let name = clip(name);
    let message = match parameter {
        // No prefixed name is suggested, because it would name another operand.
        true if is_output => format!("`{name}` is never read; read it, or leave it out"),
        true => format!("`{name}` is never read; read it, or write `_{name}` to ignore it"),
        false => format!("`{name}` is never read; leave the definition out"),
    };
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn unknown_name(
    scope: &ExprScope,
    at: NodeSpan,
    name: &str,
    names: &[&str],
    gone: bool,
) -> SpecError {
    let hint = if gone {
        ": its block has ended; define it outside the block".into()
    } else if let Some(function) = scope.function(name) {
        format!("; it is a function: `{}`", call_of(function))
    } else if name == WAVES && scope.has_waves() {
        "; it is a function: `waves(128x256)`".into()
    } else if matches!(name, "true" | "false") {
        match (scope.values, scope.conditions) {
            ((0, 0), None) => {
                format!(
                    "; `{}` takes a number, such as `{}`, or `0` for integers",
                    scope.key, scope.example
                )
            }
            (_, Some(_)) => format!("; write a comparison, such as `{}`", scope.example),
            (_, None) => "; write a comparison, such as `a > b`".into(),
        }
    } else if let Some((_, value)) = not_finite(name).filter(|_| scope.conditions.is_none()) {
        format!("; write `{value}`")
    } else if let Some((_, index)) = scope.output.filter(|(output, _)| *output == name) {
        let index = index.join(", ");
        format!("; to read the output before the launch, add the parameter `{name}[{index}]`")
    } else if let Some(close) = closest(name, names) {
        format!("; did you mean `{close}`?")
    } else if names.is_empty() {
        "; only numbers and functions are allowed".into()
    } else {
        let known = if names.len() == 1 { "the only known name is" } else { "the known names are" };
        format!("; {known} {}{}", quoted(names), of_rust(scope, name, names))
    };
    SpecError::at_tokens(scope.key, at, format!("`{}` is not a known name{hint}", clip(name)))
}

/// Returns a value without a literal, in words and as an expression, if the name stands for it.
pub(super) fn not_finite(name: &str) -> Option<(&'static str, &'static str)> {
    match name.to_lowercase().as_str() {
        "inf" | "infinity" => Some(("infinity", "1.0 / 0.0")),
        "ninf" | "neg_inf" | "neg_infinity" => Some(("minus infinity", "-1.0 / 0.0")),
        "nan" => Some(("NaN", "0.0 / 0.0")),
        _ => None,
    }
}

/// Hint for an unknown name that may be a variable or a constant of Rust.
fn of_rust(scope: &ExprScope, name: &str, names: &[&str]) -> String {
    let is_constant = name.len() > 1 && !name.contains(|c: char| c.is_lowercase());
    match (scope.operands, names.first()) {
        ([_, ..], Some(first)) if !is_taken(scope, name) => {
            format!(
                "; to pass a value, make it a parameter: `|{first}, {0}|`, or `|{first}, {0}[n]|` \
                 for a vector",
                clip(name)
            )
        }
        ([], _) if is_constant => "; write the value of a Rust constant as a number".to_owned(),
        _ => String::new(),
    }
}

/// Returns true for names that no operand may have: those of the matrices, and reserved names.
fn is_taken(scope: &ExprScope, name: &str) -> bool {
    matches!(name, "a" | "b") || scope.reserved.contains(&name)
}

pub(super) fn call_of(function: Function) -> String {
    let row = function.info();
    format!("{}({})", row.name, row.operands.join(", "))
}

/// Names that users may write for functions, with the names in this DSL. The third entry tells how
/// the result differs; it is empty if the results are the same.
const ALIASES: &[(&str, &str, &str)] = &[
    ("fmax", "max", NAN_WINS),
    ("fmaxf", "max", NAN_WINS),
    ("maximum", "max", ""),
    ("fmin", "min", NAN_WINS),
    ("fminf", "min", NAN_WINS),
    ("minimum", "min", ""),
    ("fabs", "abs", ""),
    ("fabsf", "abs", ""),
    ("ln", "log", ""),
    ("swish", "silu", ""),
    ("mul_add", "fma", ""),
    ("fmaf", "fma", ""),
    ("powf", "pow", ""),
    ("powi", "pow", ""),
    ("exp_m1", "expm1", ""),
    ("ln_1p", "log1p", ""),
    ("is_nan", "isnan", ""),
    ("signum", "sign", " It gives ±0 for ±0"),
    ("sgn", "sign", ""),
    ("rint", "round", ""),
    ("rintf", "round", ""),
    ("roundf", "round", " It rounds ties to even, not away from zero"),
    ("round_ties_even", "round", ""),
    ("float", "f32", ""),
    ("double", "f64", ""),
];

const NAN_WINS: &str = " It gives NaN if an operand is NaN";

pub(crate) fn unknown_function(scope: &ExprScope, at: NodeSpan, name: &str) -> SpecError {
    let waves = scope.has_waves().then_some(WAVES);
    let functions: Vec<&'static str> = scope.functions().map(Function::name).chain(waves).collect();
    let alias = ALIASES.iter().find(|(alias, ..)| *alias == name);
    let meant = alias.map(|(_, meant, _)| *meant).or(name.strip_suffix('f'));
    let named = meant.and_then(|name| scope.function(name));
    let differs = alias.map_or("", |(.., differs)| differs);
    let close = closest(name, &functions);
    let hint = match named.or_else(|| scope.function(close?)) {
        Some(close) => format!("; did you mean `{}`?{differs}", call_of(close)),
        None if close == Some(WAVES) => "; did you mean `waves(128x256)`?".to_owned(),
        None => format!("; the known functions are {}", quoted(&functions)),
    };
    SpecError::at_tokens(scope.key, at, format!("`{}` is not a function{hint}", clip(name)))
}

pub(crate) fn waves(key: &'static str, at: NodeSpan, found: &str) -> SpecError {
    let message = format!(
        "`waves` takes a tile, as in `waves(128x256)`, but found {}; rows and columns must be from \
         1 to {}",
        clip(found),
        u32::MAX
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn arity(
    key: &'static str,
    at: NodeSpan,
    function: Function,
    given: usize,
) -> SpecError {
    let operands = function.info().operands;
    let s = if operands.len() == 1 { "" } else { "s" };
    let message = format!(
        "`{}` takes {} operand{s}, not {given}: `{}`",
        function.name(),
        operands.len(),
        call_of(function)
    );
    SpecError::at_tokens(key, at, message)
}
