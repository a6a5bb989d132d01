//! Tokens of a spec, from a macro call or from text, their places, and the word nearest to a misspelt one.

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

/// The longest text that is read, in bytes: a hundred times what all keys need.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// The deepest nesting of brackets.
pub(crate) const MAX_DEPTH: usize = 64;
