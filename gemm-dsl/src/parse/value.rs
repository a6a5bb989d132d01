//! Parsing of one value: a word, a number or a size.

use super::messages;
use crate::error::{SpecError, clip};
use crate::expr::Closure;
use crate::spec::{Datum, KeyKind};
use crate::syntax::{Token, TokenKind, Tokens, closest};

/// Parses the value of `key` from the tokens after the colon, which must not be empty.
pub(super) fn read(
    key: &'static str,
    kind: KeyKind,
    tokens: Tokens<'_>,
) -> Result<Datum, Vec<SpecError>> {
    match kind {
        KeyKind::Closure(scope) => Closure::read(scope, tokens.tokens()).map(Datum::Closure),
        _ => plain(key, kind, tokens).map_err(|fault| vec![fault]),
    }
}

/// Parses a value, and stops at its first fault.
fn plain(key: &'static str, kind: KeyKind, tokens: Tokens<'_>) -> Result<Datum, SpecError> {
    let wrong_kind = || messages::wrong_kind(key, kind, &tokens.text());
    match (kind, &tokens[..]) {
        (KeyKind::Name, [word]) if word.is_word() => Ok(Datum::Word(word.text.clone())),
        (KeyKind::Word(words), [word]) if word.is_word() => {
            let word = &word.text;
            if words.contains(&word.as_str()) {
                Ok(Datum::Word(word.clone()))
            } else {
                Err(messages::unknown_word(key, &clip(word), words, closest(word, words)))
            }
        }
        (KeyKind::NumberOr(word), [found]) if found.is_word() && found.text == word => {
            Ok(Datum::Word(word.to_owned()))
        }
        (KeyKind::Number | KeyKind::NumberOr(_) | KeyKind::Size { .. }, [minus, number])
            if minus.is('-') && is_numeric(number) =>
        {
            Err(messages::negative(key, kind, &tokens.text()))
        }
        (KeyKind::Number | KeyKind::NumberOr(_), [found]) if is_numeric(found) => {
            one_number(key, kind, &found.text)
        }
        (KeyKind::Size { dims, .. }, [found]) if is_numeric(found) => {
            size(key, kind, dims, &found.text, &found.text)
        }
        (KeyKind::Size { dims, .. }, [number, _, ..]) if number.kind == TokenKind::Literal => {
            let found = tokens.text();
            if !is_size_text(&found) {
                return Err(wrong_kind());
            }
            let joined: String = found.split_whitespace().collect();
            // The message suggests the joined size, which must be valid.
            size(key, kind, dims, &joined, &found)?;
            Err(messages::spaces(key, &found, &joined))
        }
        _ => Err(wrong_kind()),
    }
}

/// Returns true for a number in any notation; other literals are strings and characters.
fn is_numeric(token: &Token) -> bool {
    token.kind == TokenKind::Literal && token.text.starts_with(|c: char| c.is_ascii_digit())
}

fn is_size_text(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == 'x' || c == ' ')
}

fn one_number(key: &'static str, kind: KeyKind, found: &str) -> Result<Datum, SpecError> {
    if let Some(value) = hexadecimal(found) {
        return Err(messages::hexadecimal(key, found, value));
    }
    if found.contains('x') {
        return Err(messages::size_for_number(key, &clip(found)));
    }
    let value = number(key, kind, found, found)?;
    if found.contains('_') {
        return Err(messages::underscores(key, &clip(found), &value.to_string()));
    }
    Ok(Datum::Number(value))
}

/// Returns the value of a hexadecimal number such as `0x100`, which the user may have meant as a
/// size.
fn hexadecimal(found: &str) -> Option<u32> {
    u32::from_str_radix(found.strip_prefix("0x")?, 16).ok()
}

/// Parses `text` as a size of `dims` dimensions. Messages quote `found`, the tokens of the spec.
/// Faults of the notation come last, because their messages suggest a size, which must be valid.
fn size(
    key: &'static str,
    kind: KeyKind,
    dims: usize,
    text: &str,
    found: &str,
) -> Result<Datum, SpecError> {
    let quote = &clip(found);
    let parts: Vec<&str> = text.split(['x', 'X']).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(messages::missing_dimension(key, kind, quote));
    }
    if text.starts_with("0x") && parts.len() != dims {
        return Err(messages::hexadecimal_size(key, kind, quote));
    }
    if parts.len() != dims {
        return Err(messages::dimensions(key, kind, quote, parts.len()));
    }
    let sizes =
        parts.iter().map(|part| number(key, kind, found, part)).collect::<Result<Vec<u32>, _>>()?;
    if sizes.contains(&0) {
        return Err(crate::error::table::zero_dimension(key, quote));
    }
    let plain = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join("x");
    if text.contains('X') {
        return Err(messages::capital_x(key, quote, &plain));
    }
    if text.contains('_') {
        return Err(messages::underscores(key, quote, &plain));
    }
    Ok(Datum::Size(sizes))
}

/// Parses `part`, a part of `found`, as a number in decimal digits. Underscores are skipped.
fn number(key: &'static str, kind: KeyKind, found: &str, part: &str) -> Result<u32, SpecError> {
    let (quote, quoted_part) = (&clip(found), &clip(part));
    let digits = part.replace('_', "");
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        digits.parse().map_err(|_| messages::too_large(key, quote, quoted_part))
    } else if part.contains('.') {
        Err(messages::fraction(key, kind, quote, quoted_part))
    } else {
        Err(messages::not_decimal(key, kind, quote, quoted_part))
    }
}
