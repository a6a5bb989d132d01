//! Numbers as they are written.

use super::environment::Environment;
use super::tree::{NodeKind, Tokens};
use super::typing::Float;
use crate::error::SpecError;
use crate::expr::messages;

/// A number: a float if it has a point or an exponent, else an integer.
pub(super) fn read(env: &Environment, at: Tokens, text: &str) -> Result<NodeKind, SpecError> {
    let key = env.key;
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(messages::no_number(key, at, text));
    }
    let number = text.replace('_', "");
    if let Some(plain) = ["f32", "f64", "f16"].iter().find_map(|suffix| number.strip_suffix(suffix))
        && is_decimal(plain)
    {
        return Err(messages::suffix(key, at, text, &with_point(plain)));
    }
    if number.bytes().all(|b| b.is_ascii_digit()) {
        return match number.parse::<i64>() {
            Ok(value) => Ok(NodeKind::Int(value)),
            Err(_) => Err(messages::large_integer(key, at, text)),
        };
    }
    if !is_decimal(&number) {
        return Err(messages::not_decimal(key, at, text));
    }
    let float = env.typing.as_ref().map(|typing| typing.float);
    let (wide, narrow) = (number.parse::<f64>(), number.parse::<f32>());
    match (wide, narrow) {
        (Ok(value), _) if value.is_infinite() => {
            Err(messages::large_float(key, at, text, float.unwrap_or(Float::F64)))
        }
        (Ok(0.0), _) if number.split(['e', 'E']).next().is_some_and(has_digit) => {
            Err(messages::small_float(key, at, text, float.unwrap_or(Float::F64)))
        }
        // Where all is `f32`, numbers that are one `f32` are one number.
        (Ok(value), Ok(narrow)) if float == Some(Float::F32) && is_kept(value, narrow) => {
            Ok(NodeKind::Float(of_f32(narrow)))
        }
        (Ok(value), _) => Ok(NodeKind::Float(value.to_bits())),
        (Err(_), _) => Err(messages::not_decimal(key, at, text)),
    }
}

/// The number that is written as the `f32` is.
pub(super) fn of_f32(value: f32) -> u64 {
    format!("{value:?}").parse().unwrap_or(f64::from(value)).to_bits()
}

/// The `f32` nearest to what is written for the number; infinite or 0 where none holds it.
///
/// By way of the text: [`of_f32`] gives any `f32` back, which two roundings need not.
pub(super) fn to_f32(bits: u64) -> f32 {
    let value = f64::from_bits(bits);
    format!("{value:?}").parse().unwrap_or(value as f32)
}

/// What is wrong with a number where it is of this type: it is too large, or too small.
pub(super) fn fault(key: &'static str, at: Tokens, bits: u64, float: Float) -> Option<SpecError> {
    let value = f64::from_bits(bits);
    match (float, to_f32(bits)) {
        (Float::F64, _) => None,
        (_, narrow) if is_kept(value, narrow) => None,
        (_, 0.0) => Some(messages::small_float(key, at, &format!("{value:?}"), float)),
        _ => Some(messages::large_float(key, at, &format!("{value:?}"), float)),
    }
}

fn is_kept(value: f64, narrow: f32) -> bool {
    narrow.is_finite() && (narrow != 0.0 || value == 0.0)
}

fn has_digit(mantissa: &str) -> bool {
    mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.parse::<f64>().is_ok()
}

/// The number as a float is written.
fn with_point(number: &str) -> String {
    if number.contains(['.', 'e', 'E']) { number.to_owned() } else { format!("{number}.0") }
}
