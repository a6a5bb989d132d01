//! Faults of a spec. Each check has its messages in a module beside it.

pub(crate) mod table;

use std::fmt;
use std::ops::Range;

/// Number with its noun in the singular or plural, such as `1 element`.
pub fn counted(number: impl Into<i128>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// Fault of a spec: a message with a remedy, the keys that the message names, and its place in the
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Keys that the fault concerns, the main one first; empty if it concerns no key.
    keys: Vec<&'static str>,
    site: Site,
    message: String,
    excerpt: Option<Box<Excerpt>>,
}

/// Part of an entry that a fault marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The key itself, because the spec must not give it.
    Key,
    /// The value; for a flag, the flag itself.
    Value,
    Tokens(TokenSpan),
}

/// Range of tokens in a value. Tokens are numbered from 0, and each bracket counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenSpan {
    pub first: usize,
    /// Last token, inclusive.
    pub last: usize,
}

/// Place of a fault in a spec that was given as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line. A long line is cut around the faulty token, with `…` for the rest.
    pub text: String,
    /// Number of characters of `text` before the faulty token.
    pub indent: usize,
    /// Width of the visible part of the faulty token, in characters; at least 1.
    pub width: usize,
}

impl Excerpt {
    /// Maximum number of characters shown of a line.
    const MAX: usize = 100;

    /// Returns the excerpt for a range of bytes of `text`.
    pub(crate) fn new(text: &str, place: Range<usize>) -> Self {
        let before = &text[..place.start];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[place.start..].find('\n').map_or(text.len(), |more| place.start + more);
        let line = text[start..end].trim_end_matches('\r');
        let column = text[start..place.start].chars().count();
        let width = text[place.start..place.end.min(end)].chars().count().max(1);
        // If a line is too long, its excerpt starts a quarter of [`Self::MAX`] before the token.
        let length = line.chars().count();
        let skipped = match length <= Self::MAX {
            true => 0,
            false => column.saturating_sub(Self::MAX / 4).min(length - Self::MAX),
        };
        let mut shown: String = line.chars().skip(skipped).take(Self::MAX).collect();
        let mut indent = column - skipped;
        let width = width.min((Self::MAX - indent).max(1));
        if skipped + Self::MAX < length {
            shown.push('…');
        }
        if skipped > 0 {
            shown.insert(0, '…');
            indent += 1;
        }
        let line = before.matches('\n').count() + 1;
        Self { line, column: column + 1, text: shown, indent, width }
    }
}

impl SpecError {
    pub(crate) fn at_value(keys: &[&'static str], message: String) -> Self {
        Self::new(keys, Site::Value, message)
    }

    pub(crate) fn at_key(keys: &[&'static str], message: String) -> Self {
        Self::new(keys, Site::Key, message)
    }

    pub(crate) fn at_tokens(key: &'static str, at: impl Into<TokenSpan>, message: String) -> Self {
        Self::new(&[key], Site::Tokens(at.into()), message)
    }

    fn new(keys: &[&'static str], site: Site, message: String) -> Self {
        Self { keys: keys.to_vec(), site, message, excerpt: None }
    }

    /// Returns the main key that the fault concerns, if there is one.
    pub fn key(&self) -> Option<&'static str> {
        self.keys.first().copied()
    }

    /// Returns the message: what is wrong, with the arithmetic and a remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the place in the text, if the spec was given as text.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.excerpt.as_deref()
    }

    pub(crate) fn keys(&self) -> &[&'static str] {
        &self.keys
    }

    /// Returns true if the fault is that `key` has no effect.
    pub(crate) fn is_idle(&self, key: &str) -> bool {
        self.site == Site::Key && self.key() == Some(key)
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// Returns the marked tokens of the value, if the fault marks only a part of it.
    pub(crate) fn tokens(&self) -> Option<TokenSpan> {
        match self.site {
            Site::Tokens(at) => Some(at),
            Site::Key | Site::Value => None,
        }
    }

    pub(crate) fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    pub(crate) fn with_excerpt(mut self, excerpt: Option<Excerpt>) -> Self {
        self.excerpt = excerpt.map(Box::new);
        self
    }
}

/// The message and, for a spec given as text, the marked token below it.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let Some(Excerpt { line, text, indent, width, .. }) = self.excerpt() else {
            return Ok(());
        };
        let margin = " ".repeat(line.to_string().len());
        let indent = " ".repeat(*indent);
        let carets = "^".repeat(*width);
        write!(f, "\n{margin} |\n{line} | {text}\n{margin} | {indent}{carets}")
    }
}

impl std::error::Error for SpecError {}

/// All faults of a spec, at least one. `Debug` prints the messages, as `Display` does.
#[derive(Clone, PartialEq, Eq)]
pub struct SpecErrors(Vec<SpecError>);

impl SpecErrors {
    /// Iterates over the faults: in the order of the text, or of the checks if the spec was not
    /// given as text.
    pub fn iter(&self) -> impl Iterator<Item = &SpecError> {
        self.0.iter()
    }

    /// Collects faults; the caller must pass at least one.
    pub(crate) fn new(faults: impl IntoIterator<Item = SpecError>) -> Self {
        Self(faults.into_iter().collect())
    }

    /// Returns the faults as an error, or `Ok` if there is none.
    pub(crate) fn check(faults: Vec<SpecError>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self(faults)) }
    }
}

impl From<SpecError> for SpecErrors {
    fn from(fault: SpecError) -> Self {
        Self(vec![fault])
    }
}

/// All faults, separated by blank lines.
impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.iter().map(SpecError::to_string).collect();
        f.write_str(&faults.join("\n\n"))
    }
}

/// Prints the messages, so that a failing `main` or `expect` shows the fault and its remedy.
impl fmt::Debug for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SpecErrors {}

/// Returns the words in backticks, separated by commas.
pub(crate) fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// Maximum number of characters of the user's text that a message quotes.
const MAX_QUOTE: usize = 60;

/// Returns the start of the user's text, at most [`MAX_QUOTE`] characters, for a message to quote.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
