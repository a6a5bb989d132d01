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
            Err(messages::negative(key, &tokens.text()))
        }
        (KeyKind::Number | KeyKind::NumberOr(_), [found]) if is_numeric(found) => {
            one_number(key, &found.text)
        }
        (KeyKind::Size { form, example, dims }, [found]) if is_numeric(found) => {
            size(key, &found.text, form, example, dims)
        }
        (KeyKind::Size { .. }, [number, _, ..]) if number.kind == TokenKind::Literal => {
            let found = tokens.text();
            match is_size_text(&found) {
                true => Err(messages::spaces(key, &found)),
                false => Err(wrong_kind()),
            }
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

fn one_number(key: &'static str, found: &str) -> Result<Datum, SpecError> {
    if let Some(value) = hexadecimal(found) {
        return Err(messages::hexadecimal(key, found, value));
    }
    if found.contains('x') {
        return Err(messages::size_for_number(key, &clip(found)));
    }
    Ok(Datum::Number(number(key, found, found)?))
}

/// Returns the value of a hexadecimal number such as `0x100`, which the user may have meant as a
/// size.
fn hexadecimal(found: &str) -> Option<u32> {
    u32::from_str_radix(found.strip_prefix("0x")?, 16).ok()
}

fn size(
    key: &'static str,
    found: &str,
    form: &str,
    example: &str,
    dims: usize,
) -> Result<Datum, SpecError> {
    let quote = &clip(found);
    if found.contains('X') {
        return Err(messages::capital_x(key, quote));
    }
    let parts: Vec<&str> = found.split('x').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(messages::missing_dimension(key, quote, form));
    }
    if found.starts_with("0x") && parts.len() != dims {
        return Err(messages::hexadecimal_size(key, quote, form, example));
    }
    let sizes =
        parts.iter().map(|part| number(key, found, part)).collect::<Result<Vec<u32>, _>>()?;
    if sizes.contains(&0) {
        return Err(crate::error::table::zero_dimension(key, quote));
    }
    if sizes.len() != dims {
        return Err(messages::dimensions(key, quote, sizes.len(), dims, form, example));
    }
    Ok(Datum::Size(sizes))
}

/// Parses `part`, a part of `found`, as a number in plain decimal digits.
fn number(key: &'static str, found: &str, part: &str) -> Result<u32, SpecError> {
    let (quote, quoted_part) = (&clip(found), &clip(part));
    if part.bytes().all(|b| b.is_ascii_digit()) {
        part.parse().map_err(|_| messages::too_large(key, quote, quoted_part))
    } else if part.contains('.') {
        Err(messages::fraction(key, quote, quoted_part))
    } else if part.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        Err(messages::underscores(key, quote))
    } else {
        Err(messages::not_decimal(key, quote, quoted_part))
    }
}
