//! One value: a word, a number or a size.

use super::text;
use crate::error::SpecError;
use crate::error::syntax as error;
use crate::spec::{Datum, Kind};
use proc_macro2::TokenTree;

/// Reads the tokens behind the colon of `key`; there is at least one.
pub(super) fn read(
    key: &'static str,
    kind: Kind,
    tokens: &[TokenTree],
) -> Result<Datum, SpecError> {
    let found = text(tokens);
    let wrong_kind = || error::wrong_kind(key, kind, &found);
    match (kind, tokens) {
        (Kind::Name, [TokenTree::Ident(word)]) => Ok(Datum::Word(word.to_string())),
        (Kind::Word(words), [TokenTree::Ident(word)]) => {
            let word = word.to_string();
            if words.contains(&word.as_str()) {
                Ok(Datum::Word(word))
            } else {
                Err(error::unknown_word(key, &word, words, closest(&word, words)))
            }
        }
        (Kind::Number | Kind::Size { .. }, [TokenTree::Punct(_), TokenTree::Literal(number)]) => {
            // The only punctuation that is read together with a literal is a minus sign.
            Err(match is_numeric(&number.to_string()) {
                true => error::negative(key, &format!("-{number}")),
                false => wrong_kind(),
            })
        }
        (Kind::Number, [TokenTree::Literal(_)]) if is_numeric(&found) => {
            if found.contains('x') {
                return Err(error::size_for_number(key, &found));
            }
            Ok(Datum::Number(number(key, &found, &found)?))
        }
        (Kind::Size { form, example, dims }, [TokenTree::Literal(_)]) if is_numeric(&found) => {
            size(key, &found, form, example, dims)
        }
        (Kind::Size { .. }, [TokenTree::Literal(_), rest @ ..])
            if !rest.is_empty() && is_size_text(&found) =>
        {
            Err(error::spaces(key, &found))
        }
        _ => Err(wrong_kind()),
    }
}

/// The word closest to what was written, if it is close at all.
pub(super) fn closest(written: &str, words: &[&'static str]) -> Option<&'static str> {
    let written = written.to_lowercase();
    words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&written, word), *word))
        .filter(|(distance, word)| *distance <= 1.max(word.len() / 3) && *distance < word.len())
        .min()
        .map(|(_, word)| word)
}

/// Whether a literal is a number of some form, not a string or a character.
fn is_numeric(literal: &str) -> bool {
    literal.starts_with(|c: char| c.is_ascii_digit())
}

fn is_size_text(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || c == 'x' || c == ' ')
}

fn size(
    key: &'static str,
    found: &str,
    form: &str,
    example: &str,
    dims: usize,
) -> Result<Datum, SpecError> {
    if found.contains('X') {
        return Err(error::capital_x(key, found));
    }
    let parts: Vec<&str> = found.split('x').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(error::missing_dimension(key, found, form));
    }
    let sizes =
        parts.iter().map(|part| number(key, found, part)).collect::<Result<Vec<u32>, _>>()?;
    if sizes.contains(&0) {
        return Err(error::zero_dimension(key, found));
    }
    if sizes.len() != dims {
        return Err(error::dimensions(key, found, (sizes.len(), dims), form, example));
    }
    Ok(Datum::Size(sizes))
}

/// The number that is `part` of the text `found`, in plain decimal digits.
fn number(key: &'static str, found: &str, part: &str) -> Result<u32, SpecError> {
    if part.bytes().all(|b| b.is_ascii_digit()) {
        part.parse().map_err(|_| error::too_large(key, found, part))
    } else if part.contains('.') {
        Err(error::fraction(key, found, part))
    } else if part.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        Err(error::underscores(key, found))
    } else {
        Err(error::not_decimal(key, found, part))
    }
}
