//! Error messages for invalid kernel names, and parts of messages.

use crate::error::{SpecError, clip};

pub(crate) fn not_an_identifier(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!(
            "`name: {name}` is not a CUDA C++ identifier: use only ASCII letters, digits and `_`, \
             and no digit first"
        ),
    )
}

pub(crate) fn no_letter(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!("`name: {name}` has no letter; use a name with a letter, or leave `name` out"),
    )
}

pub(crate) fn too_long(name: &str, most: usize) -> SpecError {
    let (length, name) = (name.len(), clip(name));
    SpecError::at_value(
        &["name"],
        format!("`name: {name}` has {length} characters; use at most {most}"),
    )
}

/// Names two numbers, or one if they are equal.
pub(crate) fn of_both(m: u32, n: u32) -> String {
    if m == n { m.to_string() } else { format!("{m} and {n}") }
}

/// Lists the divisions that leave a remainder, for example `30 rows mod 4 = 2`.
pub(crate) fn remainders(axes: [(&str, u32, u32); 2]) -> String {
    let parts: Vec<String> = axes
        .into_iter()
        .filter_map(|(axis, whole, part)| {
            let rest = whole.checked_rem(part)?;
            (rest != 0).then(|| format!("{whole} {axis} mod {part} = {rest}"))
        })
        .collect();
    parts.join(", ")
}
