//! The grammar of the DSL, once, for macros and for text.
//!
//! A spec is a list of entries, `key: value` or a flag, separated by commas, in any order, with an
//! optional comma at the end; the whole may stand between `<` and `>`. A size such as `128x128x8`
//! is a single Rust literal (`128` with the suffix `x128x8`), so its text is taken apart here.
//!
//! All faults of a spec are found at once. What could be read is planned even if something could
//! not, but a fault of the plan that involves a key which was misread is left out: it would vanish
//! with the first one.

mod entries;
#[cfg(test)]
mod tests;
mod value;

use crate::error::syntax::{self as error, Meant};
use crate::error::{Excerpt, Site, SpecError, SpecErrors};
use crate::spec::{Datum, Family, Key, Kind, ReduceSpec, SgemmSpec};
use entries::{Entry, Found};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::HashMap;

/// The spec that the tokens of a macro call describe, checked as by [`ReduceSpec::plan`].
///
/// # Errors
/// All faults, each at its own tokens.
pub fn reduce(tokens: TokenStream) -> syn::Result<ReduceSpec> {
    from_tokens(tokens)
}

/// The spec that the tokens of a macro call describe, checked as by [`SgemmSpec::plan`].
///
/// # Errors
/// All faults, each at its own tokens.
pub fn sgemm(tokens: TokenStream) -> syn::Result<SgemmSpec> {
    from_tokens(tokens)
}

fn from_tokens<S: Family>(tokens: TokenStream) -> syn::Result<S> {
    let (spec, faults) = checked::<S>(tokens);
    let error = |(fault, place): (SpecError, Place)| syn::Error::new_spanned(place, fault);
    match faults.into_iter().map(error).reduce(|mut all, next| {
        all.combine(next);
        all
    }) {
        None => Ok(spec),
        Some(all) => Err(all),
    }
}

/// The spec that a text describes, checked like one in a macro call.
pub(crate) fn from_text<S: Family>(text: &str) -> Result<S, SpecErrors> {
    let (spec, faults) = match text.parse::<TokenStream>() {
        Ok(tokens) => checked::<S>(tokens),
        Err(lex) => {
            let excerpt = excerpt(text, lex.span(), lex.span());
            return Err(error::not_tokens(lex).with_excerpt(excerpt).into());
        }
    };
    SpecErrors::check(faults.into_iter().map(|f| located(text, f)).collect())?;
    Ok(spec)
}

/// The tokens that a fault is about; none stands for the whole spec.
type Place = TokenStream;

fn located(text: &str, (fault, place): (SpecError, Place)) -> SpecError {
    let mut tokens = place.into_iter();
    let excerpt = tokens.next().and_then(|first| {
        let last = tokens.last().map_or(first.span(), |last| last.span());
        excerpt(text, first.span(), last)
    });
    fault.with_excerpt(excerpt)
}

fn excerpt(text: &str, first: proc_macro2::Span, last: proc_macro2::Span) -> Option<Excerpt> {
    let (start, end) = (first.start(), last.end());
    let line = text.lines().nth(start.line.checked_sub(1)?)?;
    let length = line.chars().count();
    let until = if end.line == start.line { end.column } else { length };
    Some(Excerpt {
        line: start.line,
        column: start.column + 1,
        width: until.saturating_sub(start.column).max(1),
        text: line.to_owned(),
    })
}

fn checked<S: Family>(tokens: TokenStream) -> (S, Vec<(SpecError, Place)>) {
    let mut reader = Reader::<S>::read(tokens);
    if let Err(errors) = reader.spec.check() {
        reader.add_plan_faults(&errors);
    }
    reader.faults.sort_by_key(|(_, place)| position(place));
    (reader.spec, reader.faults)
}

/// Line and column of the first token.
fn position(place: &Place) -> (usize, usize) {
    let first = place.clone().into_iter().next();
    let start = first.map(|token| token.span().start());
    start.map_or((0, 0), |start| (start.line, start.column))
}

/// What has been read of a spec.
struct Reader<S> {
    spec: S,
    faults: Vec<(SpecError, Place)>,
    /// Keys whose value is not what was meant.
    misread: Vec<&'static str>,
    /// Keys that a misspelt one may have been meant as.
    meant: Vec<&'static str>,
    given: HashMap<&'static str, Entry>,
}

impl<S: Family> Reader<S> {
    fn read(tokens: TokenStream) -> Self {
        let kind = |name: &str| key::<S>(name).map(|key| key.kind);
        let Found { entries, faults } = entries::split(tokens, &kind);
        let mut reader = Self {
            spec: S::default(),
            faults,
            misread: Vec::new(),
            meant: Vec::new(),
            given: HashMap::new(),
        };
        for entry in entries {
            reader.entry(entry);
        }
        reader
    }

    fn fault(&mut self, fault: SpecError, place: impl Into<Place>) {
        self.misread.extend(fault.keys());
        self.faults.push((fault, place.into()));
    }

    fn entry(&mut self, entry: Entry) {
        let Some(key) = key::<S>(&entry.name()) else {
            self.unknown(&entry);
            return;
        };
        if let Some(first) = self.given.get(key.name) {
            let fault = error::duplicate(key.name, &first.value_text());
            self.fault(fault, entry.key_place());
            return;
        }
        if entry.malformed {
            self.misread.push(key.name);
        } else {
            match datum(key, &entry) {
                Ok(datum) => {
                    if !(key.set)(&mut self.spec, &datum) {
                        let fault = error::wrong_kind(key.name, key.kind, &entry.value_text());
                        self.fault(fault, entry.value_place());
                    }
                }
                Err(fault) if fault.site() == Site::Key => self.fault(fault, entry.key_place()),
                Err(fault) => self.fault(fault, entry.value_place()),
            }
        }
        self.given.insert(key.name, entry);
    }

    fn unknown(&mut self, entry: &Entry) {
        let name = entry.name();
        let keys: Vec<&'static str> = S::KEYS.iter().map(|key| key.name).collect();
        let meant = if let Some(other) = other_macro::<S>(&name) {
            Meant::Macro(other)
        } else if let Some((key, word)) = flagged_word::<S>(entry) {
            Meant::Word(key, word)
        } else {
            value::closest(&name, &keys).map_or(Meant::Unclear, Meant::Key)
        };
        if let Meant::Key(key) | Meant::Word(key, _) = meant {
            self.meant.push(key);
        }
        self.fault(error::unknown_key(&name, &meant, S::MACRO, &keys), entry.key_place());
    }

    fn add_plan_faults(&mut self, errors: &SpecErrors) {
        let absent = |key: &&'static str| !self.given.contains_key(key);
        self.misread.extend(self.meant.iter().copied().filter(absent));
        for fault in errors.iter() {
            if fault.keys().iter().any(|key| self.misread.contains(key)) {
                continue;
            }
            // A default cannot be wrong by itself: the first key that was written is to blame.
            let entry = fault.keys().iter().find_map(|key| self.given.get(key));
            let place = entry.map(|entry| match fault.site() {
                Site::Key => entry.key_place(),
                Site::Value => entry.value_place(),
            });
            self.faults.push((fault.clone(), place.unwrap_or_default()));
        }
    }
}

fn key<S: Family>(name: &str) -> Option<&'static Key<S>> {
    S::KEYS.iter().find(|key| key.name == name)
}

fn datum<S>(key: &Key<S>, entry: &Entry) -> Result<Datum, SpecError> {
    match (key.kind, entry.value.as_deref()) {
        (Kind::Flag, None) => Ok(Datum::Flag),
        (Kind::Flag, Some(_)) => Err(error::flag_with_value(key.name)),
        (kind, None | Some([])) => Err(error::missing_value(key.name, kind)),
        (kind, Some(tokens)) => value::read(key.name, kind, tokens),
    }
}

/// The other macro that has this key.
fn other_macro<S: Family>(name: &str) -> Option<&'static str> {
    fn has<S: Family>(name: &str) -> Option<&'static str> {
        key::<S>(name).map(|_| S::MACRO)
    }
    has::<ReduceSpec>(name).or_else(|| has::<SgemmSpec>(name)).filter(|other| *other != S::MACRO)
}

/// The key and the word where a value was written as if it were a flag.
fn flagged_word<S: Family>(entry: &Entry) -> Option<(&'static str, &'static str)> {
    let name = entry.name();
    S::KEYS.iter().find_map(|key| match (key.kind, &entry.value) {
        (Kind::Word(words), None) => {
            let word = words.iter().find(|word| **word == name && word.len() > 1)?;
            Some((key.name, *word))
        }
        _ => None,
    })
}

/// The text of some tokens, close to how they were written.
fn text(tokens: &[TokenTree]) -> String {
    tokens.iter().cloned().collect::<TokenStream>().to_string()
}
