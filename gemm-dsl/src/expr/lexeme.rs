//! Tokens of a value in the form that the expression parser reads, numbered from 0.

use crate::syntax::{Token, TokenKind};

/// Brackets of blocks.
pub(super) const OPEN_BRACE: char = '{';
pub(super) const CLOSE_BRACE: char = '}';

#[derive(Clone, Debug)]
pub(super) enum Lexeme {
    Word(String),
    Literal(String),
    /// A punctuation character, and true if the next one follows without a space.
    Sign(char, bool),
    Open(char),
    Close(char),
}

impl Lexeme {
    /// Returns the token as the user wrote it.
    pub(super) fn text(&self) -> String {
        match self {
            Lexeme::Word(text) | Lexeme::Literal(text) => text.clone(),
            Lexeme::Sign(sign, _) | Lexeme::Open(sign) | Lexeme::Close(sign) => sign.to_string(),
        }
    }
}

/// Converts the tokens of a spec. A fragment that a user's own macro passes as one operand is
/// enclosed in parentheses.
pub(super) fn lexemes(tokens: &[Token]) -> Vec<Lexeme> {
    let token = |token: &Token| {
        let sign = |otherwise| token.text.chars().next().unwrap_or(otherwise);
        match token.kind {
            TokenKind::Word => Lexeme::Word(token.text.clone()),
            TokenKind::Literal => Lexeme::Literal(token.text.clone()),
            TokenKind::Punct { joint } => Lexeme::Sign(sign(' '), joint),
            TokenKind::Open => Lexeme::Open(sign('(')),
            TokenKind::Close => Lexeme::Close(sign(')')),
        }
    };
    tokens.iter().map(token).collect()
}
