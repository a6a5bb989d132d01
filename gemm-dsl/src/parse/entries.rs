//! Splitting of tokens into entries, by commas, colons and angle brackets.

use super::messages;
use crate::error::{Site, SpecError};
use crate::spec::KeyKind;
use crate::syntax::{Span, Token, TokenKind, Tokens};

pub(super) struct Entry<'t> {
    /// One token; more if the key was written with spaces or hyphens.
    pub key: Tokens<'t>,
    /// Tokens after the colon, if there is one.
    pub value: Option<Tokens<'t>>,
    /// True if a fault of the entry was reported already.
    pub malformed: bool,
}

impl Entry<'_> {
    pub fn name(&self) -> String {
        self.key.text()
    }

    pub fn value_text(&self) -> String {
        self.value.map(Tokens::text).unwrap_or_default()
    }

    /// Returns the tokens of the entry that a fault is about.
    pub fn span(&self, site: Site) -> Span {
        match (site, self.value) {
            (Site::Key, _) => self.key.span(),
            (Site::Tokens(at), Some(value)) => {
                let start = value.span().start;
                start + at.first..start + at.last + 1
            }
            (Site::Value | Site::Tokens(..), _) => self.value_span(),
        }
    }

    /// Returns the value's tokens, or the key's if the entry is a flag or lacks a value.
    pub fn value_span(&self) -> Span {
        self.value.filter(|value| !value.is_empty()).unwrap_or(self.key).span()
    }
}

/// Entries of a spec, and the faults between them.
pub(super) struct EntryList<'t> {
    pub entries: Vec<Entry<'t>>,
    pub faults: Vec<(SpecError, Span)>,
}

/// Splits a spec into entries. `kind` returns the form of a known key's value.
pub(super) fn split<'t>(
    tokens: Tokens<'t>,
    kind: &dyn Fn(&str) -> Option<KeyKind>,
) -> EntryList<'t> {
    let mut splitter =
        Splitter { kind, found: EntryList { entries: Vec::new(), faults: Vec::new() } };
    let mut rest = splitter.without_angles(tokens);
    loop {
        let head = head(rest);
        let entry = rest.first(head + rest.after(head).until(|token| token.is(',')).len());
        let comma = rest.after(entry.len()).first(1);
        if entry.is_empty() && !comma.is_empty() {
            splitter.fault(messages::empty_entry(), comma);
        }
        splitter.entries(entry);
        if comma.is_empty() {
            return splitter.found;
        }
        rest = rest.after(entry.len() + 1);
    }
}

/// Returns the number of tokens up to the closing bar of a closure's parameters, whose commas
/// belong to the value.
fn head(tokens: Tokens<'_>) -> usize {
    match tokens.tokens() {
        [_, colon, bar, ..] if colon.is(':') && bar.is('|') => {
            let head = tokens.after(3).until(|token| token.is('|')).len();
            if head + 3 < tokens.len() { head + 4 } else { 0 }
        }
        _ => 0,
    }
}

struct Splitter<'t, 'k> {
    kind: &'k dyn Fn(&str) -> Option<KeyKind>,
    found: EntryList<'t>,
}

impl<'t> Splitter<'t, '_> {
    fn fault(&mut self, fault: SpecError, at: Tokens<'t>) {
        self.found.faults.push((fault, at.span()));
    }

    fn without_angles(&mut self, tokens: Tokens<'t>) -> Tokens<'t> {
        match &tokens[..] {
            [open, .., close] if open.is('<') && close.is('>') => tokens.inner(),
            [open, ..] if open.is('<') => {
                self.fault(messages::open_angle(), tokens.first(1));
                tokens.after(1)
            }
            [.., close] if close.is('>') => {
                self.fault(messages::close_angle(), tokens.after(tokens.len() - 1));
                tokens.first(tokens.len() - 1)
            }
            _ => tokens,
        }
    }

    /// Splits the tokens between two commas: one entry, or several if commas are missing.
    fn entries(&mut self, mut tokens: Tokens<'t>) {
        while let Some(first) = tokens.iter().next() {
            if !first.is_word() {
                let found = tokens.first(tokens.unit());
                self.fault(messages::not_a_key(&found.text()), found);
                return;
            }
            let key = tokens.first(self.key_length(tokens));
            tokens = self.entry(key, tokens.after(key.len()));
        }
    }

    /// Returns the number of tokens of a key: more than one for `double-buffer` and
    /// `double buffer`, if the words are no keys and together are one.
    fn key_length(&self, tokens: Tokens<'t>) -> usize {
        let mut name = tokens[0].text.clone();
        if self.is_key(&name) {
            return 1;
        }
        let mut length = 1;
        while let Some((hyphen, word)) = next_word(tokens.after(length)) {
            name = name + "_" + &word.text;
            length += 1 + usize::from(hyphen);
            if self.is_key(&name) {
                return length;
            }
            if length > 8 {
                break;
            }
        }
        1
    }

    fn is_key(&self, name: &str) -> bool {
        (self.kind)(name).is_some()
    }

    /// Reads one entry and returns the tokens after it.
    fn entry(&mut self, key: Tokens<'t>, rest: Tokens<'t>) -> Tokens<'t> {
        let name = key.text();
        let mut entry = Entry { key, value: None, malformed: false };
        let rest = match &rest[..] {
            [] => rest,
            [colon, more @ ..] if colon.is(':') => {
                let mut behind = rest.after(1);
                if more.first().is_some_and(|second| second.is(':')) {
                    self.fault(messages::second_colon(&name), behind.first(1));
                    behind = behind.after(1);
                }
                let (value, rest) = match (self.kind)(&name) {
                    // The grammar of expressions gives the best messages about them.
                    Some(KeyKind::Closure(_)) => {
                        (behind.seen_through(), behind.after(behind.len()))
                    }
                    _ => self.value(behind),
                };
                entry.value = Some(value);
                rest
            }
            [word, ..] if word.is_word() && self.starts_entry(&name, word) => {
                self.fault(messages::missing_comma(&rest.first(1).text()), rest.first(1));
                rest
            }
            [..] => {
                // After an unknown key, the next tokens are not informative.
                if self.is_key(&name) {
                    let found = rest.first(rest.unit());
                    self.fault(messages::missing_colon(&name, &found.text()), found);
                }
                entry.malformed = true;
                rest.after(rest.len())
            }
        };
        self.found.entries.push(entry);
        rest
    }

    /// Returns true if a word after a key without a colon is the next key.
    fn starts_entry(&self, key: &str, word: &Token) -> bool {
        self.is_key(&word.text) || matches!((self.kind)(key), Some(KeyKind::Flag))
    }

    /// Splits the tokens after a colon into the value and the next entries.
    fn value(&mut self, tokens: Tokens<'t>) -> (Tokens<'t>, Tokens<'t>) {
        let signs = tokens.iter().take_while(|token| is_sign(token)).count();
        let length = match &tokens[..] {
            // In `block: items: 4` the value is missing. (`a::b` is a value, if a wrong one.)
            [word, colon, next, ..] if word.is_word() && colon.is(':') && !next.is(':') => 0,
            _ => signs + tokens.after(signs).unit(),
        };
        let (value, rest) = (tokens.first(length), tokens.after(length));
        match &rest[..] {
            [] => {}
            _ if length == 0 => {}
            [word, ..]
                if word.is_word() && value.text() == word.text && !self.is_key(&word.text) =>
            {
                self.fault(messages::twice(&word.text), rest.first(1));
                return (value, rest.after(1));
            }
            [word, ..] if word.is_word() && !continues_size(&word.text) => {
                self.fault(messages::missing_comma(&rest.first(1).text()), rest.first(1));
            }
            [punct, ..] if punct.is(';') => {
                self.fault(messages::not_a_comma(";"), rest.first(1));
                return (value, rest.after(1));
            }
            // The remaining tokens form no entry: all of it is the value, which fits no kind.
            _ => return (tokens, tokens.after(tokens.len())),
        }
        (value.seen_through(), rest)
    }
}

/// Returns the next word of a multi-word key, and true if a hyphen precedes it.
fn next_word(tokens: Tokens<'_>) -> Option<(bool, &Token)> {
    match tokens.tokens() {
        [word, ..] if word.is_word() => Some((false, word)),
        [hyphen, word, ..] if hyphen.is('-') && word.is_word() => Some((true, word)),
        _ => None,
    }
}

/// Returns true for punctuation that can only precede a value: `-` as in `-8`, or the quote of a
/// lifetime.
fn is_sign(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Punct { .. }) && !token.is(';')
}

/// Returns true if a word after a number is meant as more dimensions, as in `128 x128`.
fn continues_size(word: &str) -> bool {
    word.strip_prefix(['x', 'X'])
        .is_some_and(|dims| dims.bytes().all(|b| b.is_ascii_digit() || b == b'x'))
}
