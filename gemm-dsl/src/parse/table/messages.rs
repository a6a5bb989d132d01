use crate::error::SpecError;
use crate::spec::Accuracy;
use crate::spec::UnknownWord;

pub(crate) fn no_arrow(when: &str, line: &str, rule: &str) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "a rule is a condition, `=>` and a spec, such as `{when} => {line}`; `{rule}` has no \
             `=>`"
        ),
    )
}

pub(crate) fn no_condition(when: &str) -> SpecError {
    SpecError::at_value(
        &[],
        format!("a rule begins with its condition, such as `{when}`, or with `else`"),
    )
}

pub(crate) fn no_else() -> SpecError {
    SpecError::at_value(
        &[],
        "a table needs a rule for problems that match no condition; add `else => …` at the end"
            .to_owned(),
    )
}

pub(crate) fn behind_else() -> SpecError {
    SpecError::at_value(
        &[],
        "a rule after `else` is never reached; move `else` to the end, or leave the rule out"
            .to_owned(),
    )
}

pub(crate) fn repeated(rule: usize) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "rule {rule} has the same condition, so this rule is never reached; leave one of the \
             two rules out"
        ),
    )
}

pub(crate) fn no_problem() -> SpecError {
    SpecError::at_value(
        &[],
        "this rule is never reached: earlier rules match all of its problems; leave this rule \
         out, or move it up"
            .to_owned(),
    )
}

pub(crate) fn constant(always: bool) -> SpecError {
    let message = match always {
        true => {
            "this condition is always true, so later rules are never reached; write `else` \
             instead, as the last rule"
        }
        false => "this condition is never true; leave the rule out",
    };
    SpecError::at_value(&[], message.to_owned())
}

pub(crate) fn other_work(key: &'static str) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "all rules of a table compute the same function, but `{key}` here differs from the \
             first rule; use one value in all rules"
        ),
    )
}

pub(crate) fn of_problem(key: &'static str, asked: &str) -> SpecError {
    SpecError::at_key(
        &[key],
        format!(
            "`{key}` follows from the matrices of a problem: each rule has kernels for all \
             layouts; leave `{key}` out, and test {asked} in the condition to restrict the rule"
        ),
    )
}

/// Reports a key in a rule that applies to the whole table.
pub(crate) fn of_table(key: &'static str, value: &str) -> SpecError {
    SpecError::at_key(
        &[key],
        format!("`{key}` applies to all rules; write `{key}: {value};` once, before the first one"),
    )
}

/// Reports a key before the rules that applies to a single rule.
pub(crate) fn not_of_table(key: &'static str, keys: &[&str]) -> SpecError {
    let keys = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    SpecError::at_key(
        &[key],
        format!("only {keys} precede the rules of a table; write `{key}` in the spec of each rule"),
    )
}

pub(crate) fn no_semicolon_after_types(types: &str, found: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `;` after `{types}`, found `{found}`"))
}

/// Reports a fault that a rule has only in some layouts.
pub(crate) fn for_layout(fault: &SpecError, so: &str) -> SpecError {
    fault.clone().with_message(format!(
        "where {so}: {}; or test the layout in the condition",
        fault.message()
    ))
}

pub(crate) fn late_word(word: &str, again: bool) -> SpecError {
    let message = match again {
        true => format!("`{word}` is given already; leave this one out"),
        false => format!("`{word}` applies to all rules; move it before the first one"),
    };
    SpecError::at_value(&[], message)
}

pub(crate) fn no_semicolon(class: &str, found: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `;` after `accuracy: {class}`, found `{found}`"))
}

pub(crate) fn no_accuracy(fault: &UnknownWord) -> SpecError {
    let UnknownWord { word, expected } = fault;
    let found = if word.is_empty() { String::new() } else { format!(", not `{word}`") };
    SpecError::at_value(&[], format!("`accuracy` is one of {expected}{found}"))
}

pub(crate) fn varies(key: &'static str, value: &str) -> SpecError {
    if key == "epilogue" {
        let message = "the epilogue folds the rows of C in parts that depend on the tile, but all \
                       rules of an `invariant` table give the same bits; leave the fold or \
                       `invariant` out, or fold C with `row_kernel!`";
        return SpecError::at_value(&[], message.to_owned());
    }
    let said = if value.is_empty() { key.to_owned() } else { format!("{key}: {value}") };
    SpecError::at_value(
        &[],
        format!(
            "`{said}` computes several partial sums per element, but rules of an `invariant` \
             table compute one sum, in ascending K; leave `{key}` or `invariant` out"
        ),
    )
}

/// Reports a rule whose rounding the table forbids; `needed` is the accuracy class that would allow
/// it.
pub(crate) fn inexact(key: &str, value: &str, needed: Option<Accuracy>) -> SpecError {
    let message = match needed {
        Some(needed) => format!(
            "`{key}: {value}` rounds differently from `f32`, so the result would depend on the \
             rule that is chosen; add `accuracy: {needed};` before the rules, or leave \
             `{key}` out"
        ),
        None => format!(
            "`{key}: {value}` rounds A and B, so the result would depend on the rule that is \
             chosen; no table allows this: leave `{key}` out, or use a separate kernel"
        ),
    };
    SpecError::at_value(&[], message)
}

pub(crate) fn too_many_rules(most: usize) -> SpecError {
    SpecError::at_value(&[], format!("a table has at most {most} rules"))
}

pub(crate) fn too_long_table(bytes: usize, most: usize) -> SpecError {
    SpecError::at_value(
        &[],
        format!("the printed table has {bytes} bytes, which is too long; use at most {most}"),
    )
}
