//! The tokens of a value, numbered from 0, as the grammar of expressions looks at them.

use crate::parse;

/// One token.
#[derive(Clone, Debug)]
pub(super) enum Token {
    Word(String),
    Literal(String),
    /// A sign, and whether the next one follows without a space.
    Sign(char, bool),
    Open(char),
    Close(char),
}

impl Token {
    /// As it is written.
    pub(super) fn text(&self) -> String {
        match self {
            Token::Word(text) | Token::Literal(text) => text.clone(),
            Token::Sign(sign, _) | Token::Open(sign) | Token::Close(sign) => sign.to_string(),
        }
    }
}

/// The tokens of a spec as those of an expression. What a user's own macro passes on as one operand
/// is as if it stood in parentheses.
pub(super) fn of(tokens: &[parse::Token]) -> Vec<Token> {
    let token = |token: &parse::Token| {
        let sign = |otherwise| token.text.chars().next().unwrap_or(otherwise);
        match token.kind {
            parse::TokenKind::Word => Token::Word(token.text.clone()),
            parse::TokenKind::Literal => Token::Literal(token.text.clone()),
            parse::TokenKind::Punct { joint } => Token::Sign(sign(' '), joint),
            parse::TokenKind::Open => Token::Open(sign('(')),
            parse::TokenKind::Close => Token::Close(sign(')')),
        }
    };
    tokens.iter().map(token).collect()
}
