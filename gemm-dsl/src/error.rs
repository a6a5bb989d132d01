//! What is wrong with a spec. Every message of the grammar and of the plans is worded here.

pub(crate) mod name;
pub(crate) mod reduce;
pub(crate) mod resources;
pub(crate) mod sgemm;
pub(crate) mod syntax;

use crate::ir::IrError;
use std::fmt;

/// One fault of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// The keys that the fault is about, the guiltiest first; empty if it is about none.
    keys: Vec<&'static str>,
    site: Site,
    message: String,
    excerpt: Option<Excerpt>,
}

/// Which part of an entry a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// The key itself: it has no business here.
    Key,
    /// The value, or a flag.
    Value,
}

/// The place of a fault in a spec that was given as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The width of the faulty token in characters, at least 1.
    pub width: usize,
    /// The text of the line.
    pub text: String,
}

impl SpecError {
    pub(crate) fn at_value(keys: &[&'static str], message: String) -> Self {
        Self::new(keys, Site::Value, message)
    }

    pub(crate) fn at_key(keys: &[&'static str], message: String) -> Self {
        Self::new(keys, Site::Key, message)
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
        self.excerpt.as_ref()
    }

    pub(crate) fn keys(&self) -> &[&'static str] {
        &self.keys
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    pub(crate) fn with_excerpt(mut self, excerpt: Option<Excerpt>) -> Self {
        self.excerpt = excerpt;
        self
    }
}

/// The message, and beneath it the faulty token where the spec was given as text.
impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let Some(Excerpt { line, column, width, text }) = &self.excerpt else {
            return Ok(());
        };
        let margin = " ".repeat(line.to_string().len());
        let indent = " ".repeat(column - 1);
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
