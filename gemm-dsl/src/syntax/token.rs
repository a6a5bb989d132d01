//! The tokens of a spec. Those of a macro call and those of a text are the same to the grammar,
//! which names them by their numbers; only whoever has the source turns a number into a place.

use crate::error::{Excerpt, SpecError, SpecErrors, clip};
use std::ops::{Deref, Range};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword.
    Word,
    /// A number, a string or a character.
    Literal,
    /// One character of punctuation.
    Punct {
        /// Whether more punctuation follows without a space, as in `&&`.
        joint: bool,
    },
    /// An opening bracket; its text is empty for a group without brackets, which is what a macro of
    /// the user passes on for an expression.
    Open,
    /// The closing bracket that belongs to an opening one.
    Close,
}

/// A token of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// As it was written.
    pub text: String,
}

impl Token {
    /// Whether it is this character of punctuation.
    pub fn is(&self, punct: char) -> bool {
        matches!(self.kind, TokenKind::Punct { .. }) && self.text.starts_with(punct)
    }

    /// Whether it is an identifier or a keyword.
    pub fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }
}

/// All tokens of a source and the place of each; else the first fault.
pub(crate) type LexResult<P> = Result<(Vec<Token>, Vec<P>), Box<LexError<P>>>;

/// A fault of a source that is no list of tokens.
#[derive(Debug)]
pub(crate) struct LexError<P> {
    /// What is wrong.
    pub error: SpecError,
    /// Where.
    pub place: P,
}

impl LexError<Range<usize>> {
    /// The fault with its line of the text.
    pub fn in_text(self, text: &str) -> SpecErrors {
        self.error.with_excerpt(Some(Excerpt::new(text, self.place))).into()
    }
}

/// The numbers of the tokens that a fault is about.
pub(crate) type Span = Range<usize>;

/// Some consecutive tokens of a spec.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'t> {
    tokens: &'t [Token],
    /// The number of the first one.
    start: usize,
}

impl Deref for Tokens<'_> {
    type Target = [Token];
    fn deref(&self) -> &[Token] {
        self.tokens
    }
}

impl<'t> Tokens<'t> {
    /// All tokens of a spec. Brackets are balanced.
    pub fn all(tokens: &'t [Token]) -> Self {
        Self { tokens, start: 0 }
    }

    /// They themselves.
    pub fn tokens(self) -> &'t [Token] {
        self.tokens
    }

    /// The numbers of these tokens.
    pub fn span(self) -> Span {
        self.start..self.start + self.tokens.len()
    }

    /// The first `length` tokens, or all.
    pub fn first(self, length: usize) -> Self {
        Self { tokens: &self.tokens[..length.min(self.len())], start: self.start }
    }

    /// The tokens behind the first `length` ones.
    pub fn after(self, length: usize) -> Self {
        let length = length.min(self.len());
        Self { tokens: &self.tokens[length..], start: self.start + length }
    }

    /// The tokens between the first one and the last.
    pub fn inner(self) -> Self {
        self.after(1).first(self.len().saturating_sub(2))
    }

    /// How many tokens belong to the first one: all up to its closing bracket, or itself.
    pub fn unit(self) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.iter().enumerate() {
            match token.kind {
                TokenKind::Open => depth += 1,
                TokenKind::Close => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return i + 1;
            }
        }
        self.len()
    }

    /// What a user's own macros pass on as one expression, without the groups that this makes of it.
    pub fn seen_through(mut self) -> Self {
        while let [open, ..] = self.tokens
            && open.kind == TokenKind::Open
            && open.text.is_empty()
            && self.unit() == self.len()
        {
            self = self.inner();
        }
        self
    }

    /// The tokens before the first one outside brackets for which this holds.
    pub fn until(self, stop: impl Fn(&Token) -> bool) -> Self {
        let mut length = 0;
        while length < self.len() && !stop(&self[length]) {
            length += self.after(length).unit();
        }
        self.first(length)
    }

    /// The tokens as a message quotes them: with spaces only where they need one, and not too long.
    pub fn text(self) -> String {
        let mut text = String::new();
        let mut glued = true;
        for token in self.iter() {
            let word = matches!(token.kind, TokenKind::Word | TokenKind::Literal);
            if word && !glued {
                text.push(' ');
            }
            text.push_str(&token.text);
            glued = !word;
            if token.is(',') {
                text.push(' ');
            }
            if text.len() > 1024 {
                break;
            }
        }
        clip(text.trim_end())
    }
}
