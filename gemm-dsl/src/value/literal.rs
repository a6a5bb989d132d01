//! Numbers as they are written.

use super::tree::{NodeKind, Tokens};
use crate::error::SpecError;
use crate::error::value as error;

/// A number: an `f32` if it has a point or an exponent, else an integer.
pub(super) fn read(key: &'static str, at: Tokens, text: &str) -> Result<NodeKind, SpecError> {
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(error::no_number(key, at, text));
    }
    let number = text.replace('_', "");
    if let Some(plain) = ["f32", "f64", "f16"].iter().find_map(|suffix| number.strip_suffix(suffix))
        && is_decimal(plain)
    {
        return Err(error::suffix(key, at, text, &with_point(plain)));
    }
    if number.bytes().all(|b| b.is_ascii_digit()) {
        return match number.parse::<i64>() {
            Ok(value) => Ok(NodeKind::Int(value)),
            Err(_) => Err(error::large_integer(key, at, text)),
        };
    }
    if !is_decimal(&number) {
        return Err(error::not_decimal(key, at, text));
    }
    match number.parse::<f32>() {
        Ok(value) if value.is_infinite() => Err(error::large_float(key, at, text)),
        Ok(0.0) if number.split(['e', 'E']).next().is_some_and(has_digit) => {
            Err(error::small_float(key, at, text))
        }
        Ok(value) => Ok(NodeKind::Float(value.to_bits())),
        Err(_) => Err(error::not_decimal(key, at, text)),
    }
}

fn has_digit(mantissa: &str) -> bool {
    mantissa.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

fn is_decimal(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
        && text.parse::<f64>().is_ok()
}

/// The number as an `f32` is written.
fn with_point(number: &str) -> String {
    if number.contains(['.', 'e', 'E']) { number.to_owned() } else { format!("{number}.0") }
}
