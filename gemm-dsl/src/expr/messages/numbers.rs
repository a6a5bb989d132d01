//! Numbers as they are written.

use super::fault;
use crate::error::{SpecError, clip};
use crate::expr::{Float, Tokens};

pub(crate) fn no_number(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("expected a number, found {text}"))
}

pub(crate) fn suffix(key: &'static str, at: Tokens, text: &str, plain: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}`: a number has no suffix; write `{plain}`"))
}

pub(crate) fn not_decimal(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is no decimal number such as `2`, `0.5` or `1e-6`"))
}

pub(crate) fn large_integer(key: &'static str, at: Tokens, text: &str) -> SpecError {
    let text = clip(text);
    fault(key, at, format!("`{text}` is too large; an integer is at most {}", i64::MAX))
}

pub(crate) fn large_float(key: &'static str, at: Tokens, text: &str, float: Float) -> SpecError {
    let (text, name) = (clip(text), float.name());
    let most = match float {
        Float::F32 => format!("{:e}", f32::MAX),
        Float::F64 => format!("{:e}", f64::MAX),
    };
    fault(key, at, format!("`{text}` is too large; an {name} is at most {most}"))
}

pub(crate) fn small_float(key: &'static str, at: Tokens, text: &str, float: Float) -> SpecError {
    let (text, name) = (clip(text), float.name());
    fault(key, at, format!("`{text}` is too small for an {name} and would be 0; write `0.0`"))
}
