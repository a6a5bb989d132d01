//! Messages for texts that cannot be split into tokens.

use crate::error::SpecError;

pub(crate) fn too_long(length: usize, most: usize) -> SpecError {
    SpecError::at_key(&[], format!("a spec of {length} bytes is too long; use at most {most}"))
}

pub(crate) fn too_deep(most: usize) -> SpecError {
    SpecError::at_key(
        &[],
        format!("brackets are nested more than {most} deep; a spec needs no such nesting"),
    )
}

pub(crate) fn unclosed(open: impl std::fmt::Display) -> SpecError {
    SpecError::at_key(&[], format!("`{open}` is not closed; close it, or leave it out"))
}

pub(crate) fn unopened(close: char, open: Option<char>) -> SpecError {
    SpecError::at_key(
        &[],
        match open {
            None => format!("`{close}` closes nothing; open it, or leave it out"),
            Some(open) => format!("`{close}` does not close `{open}`; pair the brackets"),
        },
    )
}

pub(crate) fn no_token(found: char) -> SpecError {
    SpecError::at_key(&[], format!("{found:?} does not start a Rust token; leave it out"))
}
