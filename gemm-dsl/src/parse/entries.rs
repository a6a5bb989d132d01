//! Tokens into entries: commas, colons and angle brackets.

use super::{Place, text};
use crate::error::SpecError;
use crate::error::syntax as error;
use crate::spec::Kind;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

/// A key and what follows it.
pub(super) struct Entry {
    key: Ident,
    /// The tokens after the colon, if there is one.
    pub value: Option<Vec<TokenTree>>,
    /// Whether a fault of the entry has been reported already.
    pub malformed: bool,
}

impl Entry {
    pub fn name(&self) -> String {
        self.key.to_string()
    }

    pub fn value_text(&self) -> String {
        text(self.value.as_deref().unwrap_or_default())
    }

    pub fn key_place(&self) -> Place {
        TokenTree::from(self.key.clone()).into()
    }

    /// The value; of a flag, or where a value is missing, the key.
    pub fn value_place(&self) -> Place {
        match self.value.as_deref() {
            None | Some([]) => self.key_place(),
            Some(tokens) => tokens.iter().cloned().collect(),
        }
    }
}

/// The entries of a spec, and the faults between them.
pub(super) struct Found {
    pub entries: Vec<Entry>,
    pub faults: Vec<(SpecError, Place)>,
}

/// Takes a spec apart. `kind` tells what may follow a known key.
pub(super) fn split(tokens: TokenStream, kind: &dyn Fn(&str) -> Option<Kind>) -> Found {
    let mut all = Vec::new();
    flatten(tokens, &mut all);
    let mut splitter = Splitter { kind, found: Found { entries: Vec::new(), faults: Vec::new() } };
    let mut rest = splitter.without_angles(&all);
    while let Some(comma) = rest.iter().position(|token| is_punct(token, ',')) {
        let (entry, tail) = rest.split_at(comma);
        if let ([], [comma, ..]) = (entry, tail) {
            splitter.fault(error::empty_entry(), std::slice::from_ref(comma));
        }
        splitter.entries(entry);
        rest = tail.get(1..).unwrap_or_default();
    }
    splitter.entries(rest);
    splitter.found
}

/// Invisible groups, which a user's own macro puts around its arguments, are opened.
fn flatten(tokens: TokenStream, into: &mut Vec<TokenTree>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                flatten(group.stream(), into);
            }
            token => into.push(token),
        }
    }
}

fn is_punct(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == char)
}

struct Splitter<'k> {
    kind: &'k dyn Fn(&str) -> Option<Kind>,
    found: Found,
}

impl Splitter<'_> {
    fn fault(&mut self, fault: SpecError, at: &[TokenTree]) {
        self.found.faults.push((fault, at.iter().cloned().collect()));
    }

    fn without_angles<'t>(&mut self, tokens: &'t [TokenTree]) -> &'t [TokenTree] {
        match tokens {
            [open, inner @ .., close] if is_punct(open, '<') && is_punct(close, '>') => inner,
            [open, inner @ ..] if is_punct(open, '<') => {
                self.fault(error::open_angle(), std::slice::from_ref(open));
                inner
            }
            [inner @ .., close] if is_punct(close, '>') => {
                self.fault(error::close_angle(), std::slice::from_ref(close));
                inner
            }
            all => all,
        }
    }

    /// The entries between two commas: one, or more where a comma is missing.
    fn entries(&mut self, mut tokens: &[TokenTree]) {
        while let [first, rest @ ..] = tokens {
            let TokenTree::Ident(key) = first else {
                self.fault(error::not_a_key(&text(&tokens[..1])), &tokens[..1]);
                return;
            };
            tokens = self.entry(key, rest);
        }
    }

    /// Reads one entry and returns the tokens after it.
    fn entry<'t>(&mut self, key: &Ident, rest: &'t [TokenTree]) -> &'t [TokenTree] {
        let name = key.to_string();
        let mut entry = Entry { key: key.clone(), value: None, malformed: false };
        let rest = match rest {
            [] => rest,
            [colon, rest @ ..] if is_punct(colon, ':') => {
                let (value, rest) = self.value(rest);
                entry.value = Some(value.to_vec());
                rest
            }
            [next @ TokenTree::Ident(word), ..] if self.starts_entry(&name, &word.to_string()) => {
                self.fault(error::missing_comma(&word.to_string()), std::slice::from_ref(next));
                rest
            }
            [found, ..] => {
                let fault = error::missing_colon(&name, &text(&rest[..1]));
                self.fault(fault, std::slice::from_ref(found));
                entry.malformed = true;
                &[]
            }
        };
        self.found.entries.push(entry);
        rest
    }

    /// Whether a word behind a key without a colon is the next key.
    fn starts_entry(&self, key: &str, word: &str) -> bool {
        (self.kind)(word).is_some() || matches!((self.kind)(key), Some(Kind::Flag))
    }

    /// Splits what follows a colon into the value and the tokens of the next entries.
    fn value<'t>(&mut self, tokens: &'t [TokenTree]) -> (&'t [TokenTree], &'t [TokenTree]) {
        let length = match tokens {
            [] => 0,
            // `block: items: 4`: the value is missing. (`a::b` is a value, if a wrong one.)
            [TokenTree::Ident(_), colon, next, ..]
                if is_punct(colon, ':') && !is_punct(next, ':') =>
            {
                0
            }
            [sign, TokenTree::Literal(_) | TokenTree::Ident(_), ..] if is_punct(sign, '-') => 2,
            _ => 1,
        };
        let (value, rest) = tokens.split_at(length);
        match rest {
            [] => {}
            _ if length == 0 => {}
            [TokenTree::Ident(word), ..] if !continues_size(&word.to_string()) => {
                self.fault(error::missing_comma(&word.to_string()), &rest[..1]);
            }
            [punct, tail @ ..] if is_punct(punct, ';') => {
                self.fault(error::not_a_comma(";"), &rest[..1]);
                return (value, tail);
            }
            // What is left makes no entry: let the whole be the value, which is of no kind.
            _ => return (tokens, &[]),
        }
        (value, rest)
    }
}

/// Whether a word behind a number is meant as more dimensions, as in `128 x128`.
fn continues_size(word: &str) -> bool {
    word.strip_prefix(['x', 'X'])
        .is_some_and(|dims| dims.bytes().all(|b| b.is_ascii_digit() || b == b'x'))
}
