use super::names::{call_of, not_finite};
use crate::error::{SpecError, clip};
use crate::expr::tree::NodeSpan;
use crate::expr::{Binary, ExprScope, Function, Type};
use crate::ir::Elem;

pub(crate) fn no_closure(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, meaning, .. } = scope;
    let names = match scope.values.1 {
        1 => "whose first parameter is",
        _ => "with these parameters:",
    };
    let message = format!("`{key}` takes a closure {names} {meaning}, as in `{key}: {example}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn no_head(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, .. } = scope;
    let subject = match scope.conditions {
        Some(_) => "a condition".to_owned(),
        None => format!("`{key}`"),
    };
    let message =
        format!("{subject} takes no parameters; write the expression alone, as in `{example}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn open_head(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, .. } = scope;
    let message = format!("`|` is not closed; write `|` after the names, as in `{example}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn expected(key: &'static str, at: NodeSpan, what: &str, found: &str) -> SpecError {
    SpecError::at_tokens(key, at, format!("expected {what}, found {found}"))
}

pub(crate) fn not_ascii(key: &'static str, at: NodeSpan, word: &str) -> SpecError {
    let word = clip(word);
    let message = format!(
        "`{word}` is not a valid name: use only ASCII letters, digits and `_`, and no `r#`"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn long_name(key: &'static str, at: NodeSpan, word: &str, most: usize) -> SpecError {
    let (length, word) = (word.len(), clip(word));
    SpecError::at_tokens(key, at, format!("`{word}` has {length} characters; use at most {most}"))
}

pub(crate) fn chained(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(key, at, "comparisons do not chain; write `a < b && b < c`".into())
}

pub(crate) fn cast(scope: &ExprScope, at: NodeSpan, ty: &str) -> SpecError {
    let has_f64 = scope.functions().any(|function| function == Function::ToF64);
    let message = match ty {
        "f32" | "f64" if has_f64 => {
            format!("`as` is not supported; convert a number by `{ty}(…)`")
        }
        "f32" => "`as` is not supported; convert an integer by `f32(…)`, and leave an f32 as it is"
            .into(),
        ty if has_f64 => format!(
            "`as` and the type `{}` are not supported; the conversions are `f32(…)` and `f64(…)`",
            clip(ty)
        ),
        ty => format!(
            "`as` and the type `{}` are not supported; the only conversion is `f32(…)`, of an \
             integer",
            clip(ty)
        ),
    };
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn method(scope: &ExprScope, at: NodeSpan, method: &str) -> SpecError {
    let message = match scope.function(method) {
        Some(function) => format!("functions are not methods; write `{}`", call_of(function)),
        None => "fields and methods are not supported; call a function instead".into(),
    };
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn path(scope: &ExprScope, at: NodeSpan, last: &str) -> SpecError {
    let message = match scope.function(last) {
        Some(function) => format!("paths are not supported; write `{}`", call_of(function)),
        None => match not_finite(last) {
            Some((words, value)) => {
                format!("paths with `::` are not supported; write {words} as `{value}`")
            }
            None => {
                "paths with `::` are not supported; write a number, or a name without `::`".into()
            }
        },
    };
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn sign(key: &'static str, at: NodeSpan, sign: char) -> SpecError {
    let message = match sign {
        '=' => "`=` is only for `let`; to compare, write `==`".into(),
        '&' => "`&` is not an operator; write `&&`".into(),
        '|' => "`|` is not an operator; write `||`".into(),
        '^' => "`^` is not an operator; a power is written as a product, `x * x`".into(),
        '?' => "`?` is not supported; write `if condition { a } else { b }`".into(),
        ',' => "`,` only separates the operands of a function; leave it out".into(),
        ';' => "`;` only ends a definition inside braces; write `{ let t = …; … }`".into(),
        '.' => "`.` belongs inside a number, with digits on both sides".into(),
        other => format!("`{other}` is not an operator"),
    };
    SpecError::at_tokens(key, at, message)
}

/// Example of an expression with several values.
fn tuple(scope: &ExprScope) -> String {
    match scope.is_elementwise() {
        true => "`|x[m, n]| (relu(x), x)`".to_owned(),
        false => format!("`{}: |acc| (relu(acc), acc)`", scope.key),
    }
}

pub(crate) fn many_results(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, results: most, .. } = scope;
    let message = format!("`{key}` returns at most {most} values; leave out this one and the rest");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn tuple_of_one(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let message = format!(
        "this tuple has one value; leave out the `,`, or add a value, as in {}",
        tuple(scope)
    );
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn misplaced_tuple(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let message = format!(
        "`,` separates the operands of a function, and the values of a tuple at the end of the \
         closure, as in {}; leave it out",
        tuple(scope)
    );
    SpecError::at_tokens(scope.key, at, message)
}

pub(crate) fn indexed(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "an index belongs to a parameter, between the bars; here write the name alone";
    SpecError::at_tokens(key, at, message.into())
}

pub(crate) fn left_over(key: &'static str, at: NodeSpan, found: &str) -> SpecError {
    SpecError::at_tokens(
        key,
        at,
        format!("expected an operator or the end of the expression, found {found}"),
    )
}

pub(crate) fn no_else(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(
        key,
        at,
        "`if` needs `else { … }`: the expression must have a value in both cases".into(),
    )
}

pub(crate) fn bare_block(key: &'static str, at: NodeSpan) -> SpecError {
    let message = "`{ … }` is the body of the closure or an arm of `if`; here write `( … )`";
    SpecError::at_tokens(key, at, message.into())
}

pub(crate) fn no_value(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(
        key,
        at,
        "the block has no value; end it with an expression and no `;`".into(),
    )
}

pub(crate) fn semicolon(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(
        key,
        at,
        "the last expression is the block's value; leave the `;` out".into(),
    )
}

pub(crate) fn mutable(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(key, at, "a definition does not change; leave `mut` out".into())
}

pub(crate) fn annotated(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(key, at, "a definition has the type of its value; leave `: …` out".into())
}

pub(crate) fn annotated_parameter(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, .. } = scope;
    let has = match &scope.typing {
        Some(typing) => format!("is {} already", Type::from(typing.float).name()),
        None => "has the type of its argument".to_owned(),
    };
    let message = format!("a parameter {has}; leave `: …` out, as in `{example}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn result_index(key: &'static str, at: NodeSpan, elem: Elem) -> SpecError {
    let message = format!(
        "a result has an element at each row and column, as `{elem}` or `{elem}[m, n]`, or one for \
         each row, as `{elem}[m]`"
    );
    SpecError::at_tokens(key, at, message)
}

/// Reports a number of a type that no launch passes.
pub(crate) fn number_type(key: &'static str, at: NodeSpan, elem: Elem) -> SpecError {
    let wide = if elem.is_float() { "f32" } else { "i32" };
    let message = format!(
        "a parameter with a type is a number that the launch passes, and no number has the type \
         `{elem}`; write `{wide}`, or leave `: {elem}` out for an array, whose element type is \
         that of `type`"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn element_type(key: &'static str, at: NodeSpan, found: &str) -> SpecError {
    let message = format!(
        "expected an element type, found {found}; write `f32`, `f64`, `f16`, `bf16`, `i8`, `u8`, \
         `i32`, `u32` or `i64`"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn bracketed_parameter(scope: &ExprScope, at: NodeSpan) -> SpecError {
    let ExprScope { key, example, .. } = scope;
    let message =
        format!("a parameter is a name alone; leave the parentheses out, as in `{example}`");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn mutable_parameter(key: &'static str, at: NodeSpan) -> SpecError {
    SpecError::at_tokens(key, at, "a parameter does not change; leave `mut` out".into())
}

pub(crate) fn assignment(key: &'static str, at: NodeSpan, op: Binary) -> SpecError {
    let sign = op.sign();
    let message = format!(
        "`{sign}=` changes a value, and values here are immutable; write `{sign}` for the result"
    );
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn too_long(key: &'static str, at: NodeSpan, most: usize) -> SpecError {
    let message = format!("the expression has more than {most} parts; make it shorter");
    SpecError::at_tokens(key, at, message)
}

pub(crate) fn too_deep(key: &'static str, at: NodeSpan, most: usize) -> SpecError {
    let message =
        format!("the expression is more than {most} levels deep; use `let` for its parts");
    SpecError::at_tokens(key, at, message)
}
