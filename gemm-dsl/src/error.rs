//! What is wrong with a spec. Messages stand beside the checks that use them.

pub(crate) mod table;

use crate::ir::IrError;
use std::fmt;
use std::ops::Range;

/// One fault of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The keys that the fault is about, the guiltiest first; empty if it is about none.
    keys: Vec<&'static str>,
    site: Site,
    message: String,
    excerpt: Option<Box<Excerpt>>,
}

/// Which part of an entry a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The key itself: it has no business here.
    Key,
    /// The value, or a flag.
    Value,
    /// The tokens of the value from one to another, counted from 0 with every bracket.
    Tokens(usize, usize),
}

/// The place of a fault in a spec that was given as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The text of the line; of a long one what lies around the faulty token, `…` for the rest.
    pub text: String,
    /// The characters of `text` before the token.
    pub indent: usize,
    /// The width in characters of the token, as far as `text` shows it; at least 1.
    pub width: usize,
}

impl Excerpt {
    /// The most characters of a line that are shown.
    const MAX: usize = 100;

    /// The excerpt for some bytes of a text.
    pub(crate) fn of(text: &str, place: Range<usize>) -> Self {
        let before = &text[..place.start];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[place.start..].find('\n').map_or(text.len(), |more| place.start + more);
        let line = text[start..end].trim_end_matches('\r');
        let column = text[start..place.start].chars().count();
        let width = text[place.start..place.end.min(end)].chars().count().max(1);
        // A long line is shown from a quarter of the excerpt before the token on.
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

    pub(crate) fn at_tokens(
        key: &'static str,
        (first, last): (usize, usize),
        message: String,
    ) -> Self {
        Self::new(&[key], Site::Tokens(first, last), message)
    }

    fn new(keys: &[&'static str], site: Site, message: String) -> Self {
        Self { keys: keys.to_vec(), site, message, excerpt: None }
    }

    /// The key that the fault belongs to, if it is about a known key.
    pub fn key(&self) -> Option<&'static str> {
        self.keys.first().copied()
    }

    /// What is wrong, with the arithmetic and a remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it is, if the spec was given as text.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.excerpt.as_deref()
    }

    pub(crate) fn keys(&self) -> &[&'static str] {
        &self.keys
    }

    /// Whether it is that a key has nothing to act on.
    pub(crate) fn is_idle(&self, key: &str) -> bool {
        self.site == Site::Key && self.key() == Some(key)
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// The tokens inside the value that the fault is about.
    pub(crate) fn tokens(&self) -> Option<(usize, usize)> {
        match self.site {
            Site::Tokens(first, last) => Some((first, last)),
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

/// The message, and beneath it the faulty token where the spec was given as text.
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

/// All faults of a spec; at least one. `Debug` is the message, as `Display` is.
#[derive(Clone, PartialEq, Eq)]
pub struct SpecErrors(Vec<SpecError>);

impl SpecErrors {
    /// The faults, in the order of the text where there is one, else in that of the checks.
    pub fn iter(&self) -> impl Iterator<Item = &SpecError> {
        self.0.iter()
    }

    /// Faults, of which there is at least one.
    pub(crate) fn of(faults: impl IntoIterator<Item = SpecError>) -> Self {
        Self(faults.into_iter().collect())
    }

    /// Succeeds if there is no fault.
    pub(crate) fn check(faults: Vec<SpecError>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self(faults)) }
    }
}

impl From<SpecError> for SpecErrors {
    fn from(fault: SpecError) -> Self {
        Self(vec![fault])
    }
}

/// A fault of the generator itself, reported like a fault of the spec instead of a panic.
impl From<IrError> for SpecErrors {
    fn from(error: IrError) -> Self {
        SpecError::at_value(&[], error.to_string()).into()
    }
}

/// All faults, a blank line between two.
impl fmt::Display for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: Vec<String> = self.iter().map(SpecError::to_string).collect();
        f.write_str(&faults.join("\n\n"))
    }
}

/// A `main` or an `expect` that fails with them shows what is wrong and the remedy.
impl fmt::Debug for SpecErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SpecErrors {}

/// The words in backticks, separated by commas.
pub(crate) fn quoted(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// The most characters that a message quotes of what was written.
const MAX_QUOTE: usize = 60;

/// A part of what was written as a message quotes it.
pub(crate) fn clip(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
