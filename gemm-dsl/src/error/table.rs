//! What the tables of the specs refuse.

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

pub(crate) fn nothing_to_act_on(
    key: &'static str,
    decider: &'static str,
    because: &str,
    remedy: &str,
) -> SpecError {
    SpecError::at_key(
        &[key, decider],
        format!("`{key}` has nothing to act on: {because}; {remedy}"),
    )
}
