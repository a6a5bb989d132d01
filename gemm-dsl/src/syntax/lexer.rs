//! Lexer of texts. It returns the same tokens as Rust's own lexer, but needs no compiler.
//!
//! Comments are skipped, including doc comments. The lexer does not check the contents of strings
//! and numbers. The grammar checks them with better messages.

use super::messages;
use super::token::{LexError, LexResult, Token, TokenKind};
use super::{MAX_DEPTH, MAX_TEXT};
use crate::error::SpecError;
use std::ops::Range;

/// Returns the tokens, and the range of bytes of each.
///
/// # Errors
/// Returns the first fault with its place: a character or bracket that is not valid in Rust, or a
/// text longer than [`MAX_TEXT`].
pub(crate) fn lex(text: &str) -> LexResult<Range<usize>> {
    if text.len() > MAX_TEXT {
        return Err(Box::new(LexError {
            error: messages::too_long(text.len(), MAX_TEXT),
            place: 0..0,
        }));
    }
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new(), places: Vec::new(), open: Vec::new() };
    while lexer.token()? {}
    match lexer.open.last() {
        Some((bracket, at)) => {
            let error = messages::unclosed(*bracket);
            Err(Box::new(LexError { error, place: *at..*at + 1 }))
        }
        None => Ok((lexer.tokens, lexer.places)),
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
    places: Vec<Range<usize>>,
    /// Open brackets, each with its place.
    open: Vec<(char, usize)>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Reads one token, comment or stretch of white space. Returns false at the end of the text.
    fn token(&mut self) -> Result<bool, Box<LexError<Range<usize>>>> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(false);
        };
        if first.is_whitespace() {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            self.at += comment(rest).ok_or_else(|| self.fault(messages::unclosed("/*"), 2))?;
        } else if let Some(start) = quoted_start(rest) {
            let length =
                start.length(rest).ok_or_else(|| self.fault(messages::unclosed(first), 1))?;
            self.push(TokenKind::Literal, length + word(&rest[length..]));
        } else if first.is_ascii_digit() {
            self.push(TokenKind::Literal, number(rest));
        } else if is_word_start(first) {
            let raw = if rest.starts_with("r#") { 2 } else { 0 };
            let length = word(&rest[raw..]);
            self.push(TokenKind::Word, if length == 0 { 1 } else { raw + length });
        } else if let '(' | '[' | '{' = first {
            if self.open.len() >= MAX_DEPTH {
                return Err(self.fault(messages::too_deep(MAX_DEPTH), 1));
            }
            self.open.push((first, self.at));
            self.push(TokenKind::Open, 1);
        } else if let ')' | ']' | '}' = first {
            match self.open.pop() {
                Some(('(', _)) if first == ')' => {}
                Some(('[', _)) if first == ']' => {}
                Some(('{', _)) if first == '}' => {}
                open => return Err(self.fault(messages::unopened(first, open.map(|o| o.0)), 1)),
            }
            self.push(TokenKind::Close, 1);
        } else if first == '\'' && !rest[1..].starts_with(is_word_start) {
            return Err(self.fault(messages::unclosed(first), 1));
        } else if PUNCTUATION.contains(first) {
            let joint = rest[1..].starts_with(|c| PUNCTUATION.contains(c)) || first == '\'';
            // A comment between two tokens separates them like a space.
            let joint = joint && !["//", "/*"].iter().any(|comment| rest[1..].starts_with(comment));
            self.push(TokenKind::Punct { joint }, 1);
        } else {
            return Err(self.fault(messages::no_token(first), first.len_utf8()));
        }
        Ok(true)
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let place = self.at..self.at + length;
        self.tokens.push(Token { kind, text: self.text[place.clone()].to_owned() });
        self.at = place.end;
        self.places.push(place);
    }

    fn fault(&self, error: SpecError, length: usize) -> Box<LexError<Range<usize>>> {
        Box::new(LexError { error, place: self.at..self.at + length })
    }
}

const PUNCTUATION: &str = "~!@#$%^&*-=+|;:,<.>/?'";

fn is_word_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Returns the length of the word at the start of a text; 0 if it starts with no word.
fn word(text: &str) -> usize {
    let end = text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len());
    if text.starts_with(is_word_start) { end } else { 0 }
}

/// Returns the length of the comment at the start of a text, including nested comments.
fn comment(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    loop {
        let mark = at + text[at..].find(['/', '*'])?;
        at = match text.get(mark..mark + 2) {
            Some("/*") => {
                depth += 1;
                mark + 2
            }
            Some("*/") if depth == 1 => return Some(mark + 2),
            Some("*/") => {
                depth -= 1;
                mark + 2
            }
            _ => mark + 1,
        };
    }
}

/// Start of a string or character literal.
struct Quoted {
    /// Number of bytes up to and including the opening quote.
    start: usize,
    /// Number of `#` around a raw literal; `None` for a literal with backslash escapes.
    hashes: Option<usize>,
    quote: char,
}

fn quoted_start(text: &str) -> Option<Quoted> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let behind = text.strip_prefix(prefix).unwrap_or_default();
        match *prefix {
            "br" | "cr" | "r" => behind.trim_start_matches('#').starts_with('"'),
            "b" => behind.starts_with(['"', '\'']),
            _ => behind.starts_with('"'),
        }
    });
    let Some(prefix) = prefix else {
        return is_character(text).then_some(Quoted { start: 1, hashes: None, quote: '\'' });
    };
    let behind = &text[prefix.len()..];
    let hashes = behind.len() - behind.trim_start_matches('#').len();
    Some(Quoted {
        start: prefix.len() + hashes + 1,
        hashes: prefix.ends_with('r').then_some(hashes),
        quote: if behind.starts_with('\'') { '\'' } else { '"' },
    })
}

/// Returns true if a text starts with a character literal, and false if it starts with a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('\''), Some('\\'), _) => true,
        (Some('\''), Some(c), Some('\'')) => c != '\'',
        _ => false,
    }
}

impl Quoted {
    /// Returns the length of the whole literal, if it has a closing quote.
    fn length(&self, text: &str) -> Option<usize> {
        let inner = &text[self.start..];
        let Some(hashes) = self.hashes else {
            let mut escaped = false;
            let end = inner.find(|c| {
                let ends = c == self.quote && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            })?;
            return Some(self.start + end + 1);
        };
        let close = format!("\"{}", "#".repeat(hashes));
        Some(self.start + inner.find(&close)? + close.len())
    }
}

/// Returns the length of the number at the start of a text, including its suffix. `128x128x8` is
/// one number with a suffix.
fn number(text: &str) -> usize {
    let digits =
        |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let mut length = digits(text);
    if let Some(behind) = text[length..].strip_prefix('.')
        && !behind.starts_with(|c| c == '.' || is_word_start(c))
    {
        length += 1 + digits(behind);
    }
    if let Some(behind) = text[length..].strip_prefix(['e', 'E']) {
        let exponent = behind.strip_prefix(['+', '-']).unwrap_or(behind);
        if exponent.trim_start_matches('_').starts_with(|c: char| c.is_ascii_digit()) {
            length = text.len() - exponent.len() + digits(exponent);
        }
    }
    length + word(&text[length..])
}
