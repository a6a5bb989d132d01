use super::tree::{NodeKind, NodeSpan};
use super::typing::Float;
use crate::error::{SpecError, clip};
use crate::expr::scope::ExprScope;

/// Parses a number. It is a float if it has a point or an exponent, else an integer.
pub(super) fn read(scope: &ExprScope, at: NodeSpan, text: &str) -> Result<NodeKind, SpecError> {
    let key = scope.key;
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(no_number(key, at, text));
    }
    let number = text.replace('_', "");
    if let Some(plain) = ["f32", "f64", "f16"].iter().find_map(|suffix| number.strip_suffix(suffix))
        && is_decimal(plain)
    {
        return Err(suffix(key, at, text, &with_point(plain)));
    }
    if number.bytes().all(|b| b.is_ascii_digit()) {
        return match number.parse::<i64>() {
            Ok(value) => Ok(NodeKind::Int(value)),
            Err(_) => Err(large_integer(key, at, text)),
        };
    }
    if !is_decimal(&number) {
        return Err(not_decimal(key, at, text));
    }
    let float = scope.typing.as_ref().map(|typing| typing.float);
    let (wide, narrow) = (number.parse::<f64>(), number.parse::<f32>());
    match (wide, narrow) {
        (Ok(value), _) if value.is_infinite() => {
            Err(large_float(key, at, text, float.unwrap_or(Float::F64)))
        }
        (Ok(0.0), _) if number.split(['e', 'E']).next().is_some_and(has_digit) => {
            Err(small_float(key, at, text, float.unwrap_or(Float::F64)))
        }
        // If the scope has only `f32`, literals that round to the same `f32` are the same number.
        (Ok(value), Ok(narrow)) if float == Some(Float::F32) && is_kept(value, narrow) => {
            Ok(NodeKind::Float(of_f32(narrow)))
        }
        (Ok(value), _) => Ok(NodeKind::Float(value.to_bits())),
        (Err(_), _) => Err(not_decimal(key, at, text)),
    }
}

/// Returns the bits of the `f64` whose shortest text is that of the `f32`.
pub(super) fn of_f32(value: f32) -> u64 {
    format!("{value:?}").parse().unwrap_or(f64::from(value)).to_bits()
}

/// Returns the `f32` nearest to the shortest text of a number; infinite or 0 if it is out of range.
///
/// It parses the text because [`of_f32`] must be invertible for every `f32`, and rounding twice may
/// not return the same number.
pub(super) fn to_f32(bits: u64) -> f32 {
    let value = f64::from_bits(bits);
    format!("{value:?}").parse().unwrap_or(value as f32)
}

/// Returns the error for a number that is too large or too small for its type, if it is either.
pub(super) fn fault(key: &'static str, at: NodeSpan, bits: u64, float: Float) -> Option<SpecError> {
    let value = f64::from_bits(bits);
    match (float, to_f32(bits)) {
        (Float::F64, _) => None,
        (_, narrow) if is_kept(value, narrow) => None,
        (_, 0.0) => Some(small_float(key, at, &format!("{value:?}"), float)),
        _ => Some(large_float(key, at, &format!("{value:?}"), float)),
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

/// Returns the text of the number, with a point added if it has none.
fn with_point(number: &str) -> String {
    if number.contains(['.', 'e', 'E']) { number.to_owned() } else { format!("{number}.0") }
}

fn no_number(key: &'static str, at: NodeSpan, text: &str) -> SpecError {
    let text = clip(text);
    SpecError::at_tokens(key, at, format!("expected a number, found {text}"))
}

fn suffix(key: &'static str, at: NodeSpan, text: &str, plain: &str) -> SpecError {
    let text = clip(text);
    SpecError::at_tokens(key, at, format!("`{text}`: a number has no suffix; write `{plain}`"))
}

fn not_decimal(key: &'static str, at: NodeSpan, text: &str) -> SpecError {
    let text = clip(text);
    SpecError::at_tokens(
        key,
        at,
        format!("`{text}` is not a decimal number such as `2`, `0.5` or `1e-6`"),
    )
}

fn large_integer(key: &'static str, at: NodeSpan, text: &str) -> SpecError {
    let text = clip(text);
    SpecError::at_tokens(
        key,
        at,
        format!("`{text}` is too large; an integer is at most {}", i64::MAX),
    )
}

fn large_float(key: &'static str, at: NodeSpan, text: &str, float: Float) -> SpecError {
    let (text, name) = (clip(text), float.name());
    let most = match float {
        Float::F32 => format!("{:e}", f32::MAX),
        Float::F64 => format!("{:e}", f64::MAX),
    };
    let message = format!(
        "`{text}` is too large; an {name} is at most {most}; write infinity as `1.0 / 0.0`"
    );
    SpecError::at_tokens(key, at, message)
}

fn small_float(key: &'static str, at: NodeSpan, text: &str, float: Float) -> SpecError {
    let (text, name) = (clip(text), float.name());
    SpecError::at_tokens(
        key,
        at,
        format!("`{text}` is too small for an {name} and would be 0; write `0.0`"),
    )
}
