//! The tokens of a macro call.

use super::MAX_DEPTH;
use super::token::{Read, Token, TokenKind};
use crate::parse::messages;
use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree, token_stream};

/// The tokens, and for each of them its place in the source.
///
/// # Errors
/// A fault and its place where brackets are nested too deeply.
pub(super) fn tokens(stream: TokenStream) -> Read<Span> {
    let mut found = Found::default();
    // No recursion, so no nesting is too deep for the stack.
    let mut open = vec![Level { rest: stream.into_iter(), close: None }];
    while let Some(level) = open.last_mut() {
        match level.rest.next() {
            Some(TokenTree::Group(group)) => {
                if open.len() > MAX_DEPTH {
                    return Err(Box::new((messages::too_deep(MAX_DEPTH), group.span_open())));
                }
                open.push(found.open(&group));
            }
            Some(TokenTree::Ident(word)) => {
                found.push(TokenKind::Word, word.to_string(), word.span());
            }
            Some(TokenTree::Literal(literal)) => {
                found.push(TokenKind::Literal, literal.to_string(), literal.span());
            }
            Some(TokenTree::Punct(punct)) => {
                let joint = punct.spacing() == Spacing::Joint;
                found.push(TokenKind::Punct { joint }, punct.as_char().into(), punct.span());
            }
            None => {
                if let Some((bracket, span)) = open.pop().and_then(|level| level.close) {
                    found.push(TokenKind::Close, bracket.into(), span);
                }
            }
        }
    }
    Ok((found.tokens, found.spans))
}

/// A group whose tokens are being read.
struct Level {
    rest: token_stream::IntoIter,
    /// What ends it; nothing for the whole spec, and for a single token in an invisible group.
    close: Option<(&'static str, Span)>,
}

#[derive(Default)]
struct Found {
    tokens: Vec<Token>,
    spans: Vec<Span>,
}

impl Found {
    fn push(&mut self, kind: TokenKind, text: String, span: Span) {
        self.tokens.push(Token { kind, text });
        self.spans.push(span);
    }

    fn open(&mut self, group: &Group) -> Level {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        let rest = group.stream().into_iter();
        if open.is_empty() && rest.clone().nth(1).is_none() {
            return Level { rest, close: None };
        }
        self.push(TokenKind::Open, open.into(), group.span_open());
        Level { rest, close: Some((close, group.span_close())) }
    }
}
