//! What can be wrong with a kernel's name.

use super::{SpecError, clip};

pub(crate) fn not_an_identifier(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!(
            "`name: {name}` is no CUDA C++ identifier: only ASCII letters, digits and `_`, and no \
             digit first"
        ),
    )
}

pub(crate) fn leading_underscores(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!(
            "`name: {name}` starts with two underscores, which CUDA C++ reserves for the compiler; \
             use another name"
        ),
    )
}

pub(crate) fn taken(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!(
            "`name: {name}` already has a meaning in CUDA C++; use another name, such as `{name}_kernel`"
        ),
    )
}

pub(crate) fn used(name: &str) -> SpecError {
    let name = clip(name);
    SpecError::at_value(
        &["name"],
        format!(
            "`name: {name}` is a name that the kernel's own text uses; use another name, such as \
             `{name}_kernel`"
        ),
    )
}
