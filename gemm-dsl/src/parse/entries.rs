//! Tokens into entries: commas, colons and angle brackets.

use super::token::{Span, Token, TokenKind, Tokens};
use crate::error::{Site, SpecError};
use crate::parse::messages;
use crate::spec::Kind;

/// A key and what follows it.
pub(super) struct Entry<'t> {
    /// One token; more where a key was written with spaces or hyphens.
    pub key: Tokens<'t>,
    /// The tokens after the colon, if there is one.
    pub value: Option<Tokens<'t>>,
    /// Whether a fault of the entry has been reported already.
    pub malformed: bool,
}

impl Entry<'_> {
    pub fn name(&self) -> String {
        self.key.text()
    }

    pub fn value_text(&self) -> String {
        self.value.map(Tokens::text).unwrap_or_default()
    }

    /// The part of the entry that a fault is about.
    pub fn span(&self, site: Site) -> Span {
        match (site, self.value) {
            (Site::Key, _) => self.key.span(),
            (Site::Tokens(first, last), Some(value)) => {
                let start = value.span().start;
                start + first..start + last + 1
            }
            (Site::Value | Site::Tokens(..), _) => self.value_span(),
        }
    }

    /// The value; of a flag, or where a value is missing, the key.
    pub fn value_span(&self) -> Span {
        self.value.filter(|value| !value.is_empty()).unwrap_or(self.key).span()
    }
}

/// The entries of a spec, and the faults between them.
pub(super) struct Found<'t> {
    pub entries: Vec<Entry<'t>>,
    pub faults: Vec<(SpecError, Span)>,
}

/// Takes a spec apart. `kind` tells what may follow a known key.
pub(super) fn split<'t>(tokens: Tokens<'t>, kind: &dyn Fn(&str) -> Option<Kind>) -> Found<'t> {
    let mut splitter = Splitter { kind, found: Found { entries: Vec::new(), faults: Vec::new() } };
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

/// How many tokens an entry has up to the bars of a closure, whose commas belong to its value.
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
    kind: &'k dyn Fn(&str) -> Option<Kind>,
    found: Found<'t>,
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

    /// The entries between two commas: one, or more where a comma is missing.
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

    /// How many tokens a key has: more than one for `double-buffer` and `double buffer`, where the
    /// words are no keys and all together are one.
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
                    // Where an expression goes wrong, its own grammar knows best.
                    Some(Kind::Closure(_)) => (behind.seen_through(), behind.after(behind.len())),
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
                // What follows an unknown key tells nothing.
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

    /// Whether a word behind a key without a colon is the next key.
    fn starts_entry(&self, key: &str, word: &Token) -> bool {
        self.is_key(&word.text) || matches!((self.kind)(key), Some(Kind::Flag))
    }

    /// Splits what follows a colon into the value and the tokens of the next entries.
    fn value(&mut self, tokens: Tokens<'t>) -> (Tokens<'t>, Tokens<'t>) {
        let signs = tokens.iter().take_while(|token| is_sign(token)).count();
        let length = match &tokens[..] {
            // `block: items: 4`: the value is missing. (`a::b` is a value, if a wrong one.)
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
            // What is left makes no entry: let the whole be the value, which is of no kind.
            _ => return (tokens, tokens.after(tokens.len())),
        }
        (value.seen_through(), rest)
    }
}

/// The word that continues a key, and whether a hyphen joins it.
fn next_word(tokens: Tokens<'_>) -> Option<(bool, &Token)> {
    match tokens.tokens() {
        [word, ..] if word.is_word() => Some((false, word)),
        [hyphen, word, ..] if hyphen.is('-') && word.is_word() => Some((true, word)),
        _ => None,
    }
}

/// Whether it can only stand before a value: `-` as in `-8`, or the quote of a lifetime.
fn is_sign(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Punct { .. }) && !token.is(';')
}

/// Whether a word behind a number is meant as more dimensions, as in `128 x128`.
fn continues_size(word: &str) -> bool {
    word.strip_prefix(['x', 'X'])
        .is_some_and(|dims| dims.bytes().all(|b| b.is_ascii_digit() || b == b'x'))
}
