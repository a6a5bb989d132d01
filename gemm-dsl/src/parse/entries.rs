//! Splitting of tokens into entries at commas, colons and angle brackets.

use super::messages;
use crate::error::{Site, SpecError};
use crate::spec::KeyKind;
use crate::syntax::{Span, Token, TokenKind, Tokens};

pub(super) struct Entry<'t> {
    /// Tokens of the key. There are several if the key was written with spaces or hyphens. Of an
    /// entry without a key, the first token of the value.
    pub key: Tokens<'t>,
    /// Key of an entry that is a value alone.
    pub bare: Option<&'static str>,
    /// Tokens after the colon, if there is one.
    pub value: Option<Tokens<'t>>,
    /// True if a fault of this entry has already been reported.
    pub malformed: bool,
}

impl Entry<'_> {
    pub fn name(&self) -> String {
        self.bare.map_or_else(|| self.key.text(), str::to_owned)
    }

    pub fn value_text(&self) -> String {
        self.value.map(Tokens::text).unwrap_or_default()
    }

    /// Returns the tokens of the entry that a fault marks.
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

    /// Returns the value's tokens, or the key's tokens if the entry has no value.
    pub fn value_span(&self) -> Span {
        self.value.filter(|value| !value.is_empty()).unwrap_or(self.key).span()
    }
}

/// Entries of a spec, and faults in the tokens between the entries.
pub(super) struct EntryList<'t> {
    pub entries: Vec<Entry<'t>>,
    pub faults: Vec<(SpecError, Span)>,
}

/// Splits a spec into entries. `kind` returns the kind of value that a known key takes. `bare` is
/// the key whose expression alone may begin the spec.
pub(super) fn split<'t>(
    tokens: Tokens<'t>,
    kind: &dyn Fn(&str) -> Option<KeyKind>,
    bare: Option<&'static str>,
) -> EntryList<'t> {
    let mut splitter =
        Splitter { kind, found: EntryList { entries: Vec::new(), faults: Vec::new() } };
    let mut rest = splitter.without_angles(tokens);
    if let Some(key) = bare.filter(|_| rest.first(1).iter().any(|token| token.is('|'))) {
        let head = bars(rest);
        let value = rest.first(head + rest.after(head).until(|token| token.is(',')).len());
        let (key_at, seen) = (value.first(1), value.seen_through());
        let entry = Entry { key: key_at, bare: Some(key), value: Some(seen), malformed: false };
        splitter.found.entries.push(entry);
        if value.len() == rest.len() {
            return splitter.found;
        }
        rest = rest.after(value.len() + 1);
    }
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

/// Returns the number of tokens up to the bar that closes a closure's parameters. Commas between
/// the bars belong to the value.
fn head(tokens: Tokens<'_>) -> usize {
    match tokens.tokens() {
        [_, colon, bar, ..] if colon.is(':') && bar.is('|') => match bars(tokens.after(2)) {
            0 => 0,
            bars => bars + 2,
        },
        _ => 0,
    }
}

/// Returns the number of tokens from a bar up to the bar that closes a closure's parameters, or 0
/// if none does.
fn bars(tokens: Tokens<'_>) -> usize {
    let head = tokens.after(1).until(|token| token.is('|')).len();
    if head + 1 < tokens.len() { head + 2 } else { 0 }
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

    /// Splits the tokens between two commas into one entry, or into several if commas are missing.
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

    /// Returns the number of tokens of a key. It is more than one for `double-buffer` and
    /// `double buffer`, whose words are not keys by themselves but form a key together.
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

    /// Parses one entry and returns the tokens that follow it.
    fn entry(&mut self, key: Tokens<'t>, rest: Tokens<'t>) -> Tokens<'t> {
        let name = key.text();
        let mut entry = Entry { key, bare: None, value: None, malformed: false };
        let rest = match &rest[..] {
            [] => rest,
            [colon, more @ ..] if colon.is(':') => {
                let mut behind = rest.after(1);
                if more.first().is_some_and(|second| second.is(':')) {
                    self.fault(messages::second_colon(&name), behind.first(1));
                    behind = behind.after(1);
                }
                let (value, rest) = match (self.kind)(&name) {
                    // The parser of expressions has the best messages for a faulty expression.
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
                // After an unknown key, the following tokens would not help in a message.
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

    /// Returns true if a word that follows a key without a colon is itself a key.
    fn starts_entry(&self, key: &str, word: &Token) -> bool {
        self.is_key(&word.text) || matches!((self.kind)(key), Some(KeyKind::Flag))
    }

    /// Splits the tokens after a colon into the value and the entries that follow.
    fn value(&mut self, tokens: Tokens<'t>) -> (Tokens<'t>, Tokens<'t>) {
        let signs = tokens.iter().take_while(|token| is_sign(token)).count();
        let length = match &tokens[..] {
            // In `block: items: 4` the value is missing. `a::b` is taken as a value, although a
            // wrong one.
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
            // The remaining tokens form no entry, so all tokens belong to the value, which no kind
            // accepts.
            _ => return (tokens, tokens.after(tokens.len())),
        }
        (value.seen_through(), rest)
    }
}

/// Returns the next word of a key with several words, and true if a hyphen precedes the word.
fn next_word(tokens: Tokens<'_>) -> Option<(bool, &Token)> {
    match tokens.tokens() {
        [word, ..] if word.is_word() => Some((false, word)),
        [hyphen, word, ..] if hyphen.is('-') && word.is_word() => Some((true, word)),
        _ => None,
    }
}

/// Returns true for punctuation that can only start a value, such as `-` in `-8` or the quote of a
/// lifetime.
fn is_sign(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Punct { .. }) && !token.is(';')
}

/// Returns true if a word after a number is probably meant as further dimensions, as in `128 x128`.
fn continues_size(word: &str) -> bool {
    word.strip_prefix(['x', 'X'])
        .is_some_and(|dims| dims.bytes().all(|b| b.is_ascii_digit() || b == b'x'))
}
