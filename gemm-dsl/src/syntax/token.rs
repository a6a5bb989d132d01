//! Tokens of a spec. The grammar treats tokens of a macro call and tokens of a text alike, and
//! refers to tokens by number. Only the code that has the source can convert a number to a place.

use crate::error::{Excerpt, SpecError, SpecErrors, clip};
use std::ops::{Deref, Range};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// An identifier or a keyword.
    Word,
    /// A number, a string or a character.
    Literal,
    /// One character of punctuation.
    Punct {
        /// True if more punctuation follows without a space, as in `&&`.
        joint: bool,
    },
    /// Opening bracket. Its text is empty for an invisible group, in which a user's macro passes an
    /// expression on.
    Open,
    /// Closing bracket.
    Close,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// Text as it was written.
    pub text: String,
}

impl Token {
    /// Returns true if the token is this punctuation character.
    pub fn is(&self, punct: char) -> bool {
        matches!(self.kind, TokenKind::Punct { .. }) && self.text.starts_with(punct)
    }

    /// Returns true for an identifier or a keyword.
    pub fn is_word(&self) -> bool {
        self.kind == TokenKind::Word
    }
}

/// Tokens of a source with the place of each, or the first fault.
pub(crate) type LexResult<P> = Result<(Vec<Token>, Vec<P>), Box<LexError<P>>>;

/// Fault of a source that cannot be split into tokens.
#[derive(Debug)]
pub(crate) struct LexError<P> {
    pub error: SpecError,
    pub place: P,
}

impl LexError<Range<usize>> {
    /// Returns the fault with an excerpt of the text.
    pub fn in_text(self, text: &str) -> SpecErrors {
        self.error.with_excerpt(Some(Excerpt::new(text, self.place))).into()
    }
}

/// Range of the numbers of the tokens that a fault marks.
pub(crate) type Span = Range<usize>;

/// Consecutive tokens of a spec, with their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tokens<'t> {
    tokens: &'t [Token],
    /// Number of the first token.
    start: usize,
}

impl Deref for Tokens<'_> {
    type Target = [Token];
    fn deref(&self) -> &[Token] {
        self.tokens
    }
}

impl<'t> Tokens<'t> {
    /// All tokens of a spec. Their brackets must be balanced.
    pub fn all(tokens: &'t [Token]) -> Self {
        Self { tokens, start: 0 }
    }

    /// Returns the tokens without their numbers.
    pub fn tokens(self) -> &'t [Token] {
        self.tokens
    }

    /// Returns the numbers of these tokens.
    pub fn span(self) -> Span {
        self.start..self.start + self.tokens.len()
    }

    /// Returns the first `length` tokens, or all if there are fewer.
    pub fn first(self, length: usize) -> Self {
        Self { tokens: &self.tokens[..length.min(self.len())], start: self.start }
    }

    /// Returns the tokens after the first `length` ones.
    pub fn after(self, length: usize) -> Self {
        let length = length.min(self.len());
        Self { tokens: &self.tokens[length..], start: self.start + length }
    }

    /// Returns the tokens without the first and the last.
    pub fn inner(self) -> Self {
        self.after(1).first(self.len().saturating_sub(2))
    }

    /// Returns the number of tokens up to the bracket that closes the first token, or 1 if the
    /// first token is not an opening bracket.
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

    /// Removes the invisible groups in which a user's macro encloses an expression.
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

    /// Returns the tokens before the first token outside brackets for which `stop` is true.
    pub fn until(self, stop: impl Fn(&Token) -> bool) -> Self {
        let mut length = 0;
        while length < self.len() && !stop(&self[length]) {
            length += self.after(length).unit();
        }
        self.first(length)
    }

    /// Returns the tokens as text for a message, with only the necessary spaces, and shortened if
    /// it is long.
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
