//! Tokens of a macro call.

use super::token::{LexError, LexResult, Token, TokenKind};
use super::{MAX_DEPTH, messages};
use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree, token_stream};

/// Returns the tokens, and the place of each in the source.
///
/// # Errors
/// Returns the fault with its place if brackets are nested too deeply.
pub(crate) fn macro_tokens(stream: TokenStream) -> LexResult<Span> {
    let mut found = TokenBuffer::default();
    // The traversal is iterative, so deep nesting cannot overflow the stack.
    let mut open = vec![OpenGroup { rest: stream.into_iter(), close: None }];
    while let Some(level) = open.last_mut() {
        match level.rest.next() {
            Some(TokenTree::Group(group)) => {
                if open.len() > MAX_DEPTH {
                    let error = messages::too_deep(MAX_DEPTH);
                    return Err(Box::new(LexError { error, place: group.span_open() }));
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

/// Group of tokens that is being read.
struct OpenGroup {
    rest: token_stream::IntoIter,
    /// Closing bracket; `None` for the whole spec, and for a single token in an invisible group.
    close: Option<(&'static str, Span)>,
}

#[derive(Default)]
struct TokenBuffer {
    tokens: Vec<Token>,
    spans: Vec<Span>,
}

impl TokenBuffer {
    fn push(&mut self, kind: TokenKind, text: String, span: Span) {
        self.tokens.push(Token { kind, text });
        self.spans.push(span);
    }

    fn open(&mut self, group: &Group) -> OpenGroup {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => ("(", ")"),
            Delimiter::Bracket => ("[", "]"),
            Delimiter::Brace => ("{", "}"),
            Delimiter::None => ("", ""),
        };
        let rest = group.stream().into_iter();
        if open.is_empty() && rest.clone().nth(1).is_none() {
            return OpenGroup { rest, close: None };
        }
        self.push(TokenKind::Open, open.into(), group.span_open());
        OpenGroup { rest, close: Some((close, group.span_close())) }
    }
}
