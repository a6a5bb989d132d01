//! Messages of the checks that a family's key table defines.

use super::SpecError;

pub(crate) fn zero_dimension(key: &'static str, size: &str) -> SpecError {
    SpecError::at_value(
        &[key],
        format!("`{key}: {size}` has a dimension of 0; every dimension must be at least 1"),
    )
}

pub(crate) fn below(key: &'static str, number: u32, least: u32, why: &str) -> SpecError {
    SpecError::at_value(&[key], format!("`{key}: {number}`: {why}; use {least} or more"))
}

/// Reports that the first of `keys` has no effect; the other keys are the cause.
pub(crate) fn nothing_to_act_on(keys: &[&'static str], because: &str, remedy: &str) -> SpecError {
    let key = keys.first().copied().unwrap_or_default();
    SpecError::at_key(keys, format!("`{key}` has no effect: {because}; {remedy}"))
}
