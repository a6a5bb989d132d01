use crate::error::SpecError;
use crate::spec::Accuracy;
use crate::spec::UnknownWord;

pub(crate) fn no_arrow(when: &str, line: &str, row: &str) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "a row is a condition, `=>` and a line, such as `{when} => {line}`; `{row}` has no `=>`"
        ),
    )
}

pub(crate) fn no_condition(when: &str) -> SpecError {
    SpecError::at_value(
        &[],
        format!("a row begins with its condition, such as `{when}`, or with `else`"),
    )
}

pub(crate) fn no_else() -> SpecError {
    SpecError::at_value(
        &[],
        "a table needs a row for what no condition holds of; add `else => …` at the end".to_owned(),
    )
}

pub(crate) fn behind_else() -> SpecError {
    SpecError::at_value(
        &[],
        "no problem comes to a row behind `else`; move `else` to the end, or leave the row out"
            .to_owned(),
    )
}

pub(crate) fn repeated(row: usize) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "row {row} has this condition, so that no problem comes here; leave one of them out"
        ),
    )
}

pub(crate) fn no_problem() -> SpecError {
    SpecError::at_value(
        &[],
        "no problem comes here: the rows before are for all of which this holds; leave the row out, or move it up"
            .to_owned(),
    )
}

pub(crate) fn constant(always: bool) -> SpecError {
    let message = match always {
        true => {
            "this holds of every problem, so that none comes to the rows behind; write `else`, at the end"
        }
        false => "this holds of no problem; leave the row out",
    };
    SpecError::at_value(&[], message.to_owned())
}

pub(crate) fn other_work(key: &'static str) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "all rows of a table compute the same, and `{key}` here is not as in the first row; rows differ in \
             how it is computed"
        ),
    )
}

pub(crate) fn of_problem(key: &'static str, asked: &str) -> SpecError {
    SpecError::at_key(
        &[key],
        format!(
            "`{key}` follows from the matrices of a problem: a row has a kernel for each way in which they may lie; \
             leave it out, and ask {asked} in the condition where the row is for some alone"
        ),
    )
}

/// A fault that a rule has only for some layouts.
pub(crate) fn where_they_lie(fault: &SpecError, so: &str) -> SpecError {
    fault.clone().with_message(format!(
        "where {so}: {}; or ask in the condition how matrices lie",
        fault.message()
    ))
}

pub(crate) fn late_word(word: &str, again: bool) -> SpecError {
    let message = match again {
        true => format!("`{word}` is said already; leave this one out"),
        false => format!("`{word}` is about all rows; move it before the first one"),
    };
    SpecError::at_value(&[], message)
}

pub(crate) fn no_semicolon(class: &str, found: &str) -> SpecError {
    SpecError::at_key(&[], format!("expected `;` behind `accuracy: {class}`, found `{found}`"))
}

pub(crate) fn no_accuracy(fault: &UnknownWord) -> SpecError {
    let UnknownWord { word, expected } = fault;
    let found = if word.is_empty() { String::new() } else { format!(", not `{word}`") };
    SpecError::at_value(&[], format!("`accuracy` is one of {expected}{found}"))
}

pub(crate) fn varies(key: &'static str, value: &str) -> SpecError {
    let said = if value.is_empty() { key.to_owned() } else { format!("{key}: {value}") };
    SpecError::at_value(
        &[],
        format!(
            "`{said}` makes several sums of an element, and rows of an `invariant` table make one, in \
             ascending K; leave `{key}` out, or `invariant`"
        ),
    )
}

/// A rule whose rounding the table does not permit; `needed` is the class that would.
pub(crate) fn inexact(key: &str, value: &str, needed: Option<Accuracy>) -> SpecError {
    let message = match needed {
        Some(needed) => format!(
            "`{key}: {value}` rounds otherwise than `f32` does, and which row a problem comes to would be seen in its \
             result; grant it by `accuracy: {needed};` before the rows, or leave it out"
        ),
        None => format!(
            "`{key}: {value}` rounds A and B, which no table grants: which row a problem comes to would be seen in its \
             result; leave it out, or make it a kernel of its own"
        ),
    };
    SpecError::at_value(&[], message)
}

pub(crate) fn too_many_rows(most: usize) -> SpecError {
    SpecError::at_value(&[], format!("a table has {most} rows at most"))
}

pub(crate) fn too_long_table(bytes: usize, most: usize) -> SpecError {
    SpecError::at_value(
        &[],
        format!(
            "a table of {bytes} bytes, as it is printed, is too long to be meant; use at most {most}"
        ),
    )
}
