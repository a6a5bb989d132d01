//! Tokens of a spec and their places, from a macro call or from text, and the correction of
//! misspelt words.

mod lexer;
mod macro_tokens;
mod messages;
mod nearest;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use lexer::lex;
pub(crate) use macro_tokens::macro_tokens;
pub(crate) use nearest::closest;
pub(crate) use token::{Span, Token, TokenKind, Tokens};

/// Maximum length of a text in bytes. It is a hundred times the length of all keys.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// Maximum nesting depth of brackets.
pub(crate) const MAX_DEPTH: usize = 64;
