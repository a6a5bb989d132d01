//! The grammar: recursive descent over numbered tokens. What the parts mean is checked afterwards.

mod expression;

use super::environment::{Environment, KEYWORDS};
use super::tokens::Token;
use super::tree::{Block, Let, Param, Tokens};
use crate::error::{SpecError, clip};
use crate::expr::messages;
use crate::ir::MAX_NAME;

/// How deep an expression may be.
pub(super) const MAX_DEPTH: usize = 64;

type Read<T> = Result<T, SpecError>;

pub(super) struct Parser<'t> {
    env: &'static Environment,
    tokens: &'t [Token],
    at: usize,
    parts: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(env: &'static Environment, tokens: &'t [Token]) -> Self {
        Self { env, tokens, at: 0, parts: 0 }
    }

    /// A whole value: the parameters between bars, if the environment has any, and the body.
    pub(super) fn closure(&mut self) -> Read<(Vec<Param>, Block)> {
        let params = self.params()?;
        let body = match self.peek() {
            Some(Token::Open('{')) => self.braces(0)?,
            _ => Block { lets: Vec::new(), value: self.expression(0)? },
        };
        match self.peek() {
            None => Ok((params, body)),
            Some(_) => Err(self.left_over()),
        }
    }

    /// The parameters between bars, if the environment has any.
    pub(super) fn params(&mut self) -> Read<Vec<Param>> {
        match self.env.values.1 {
            0 if self.is_sign('|') => Err(messages::no_head(self.env, self.here())),
            0 => Ok(Vec::new()),
            _ => self.head(),
        }
    }

    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn key(&self) -> &'static str {
        self.env.key
    }

    /// This token; past the end, the last one.
    fn here(&self) -> Tokens {
        Tokens::at(self.at.min(self.tokens.len().saturating_sub(1)))
    }

    fn found(&self) -> String {
        self.peek().map_or("the end".into(), |token| format!("`{}`", clip(&token.text())))
    }

    fn is_sign(&self, sign: char) -> bool {
        matches!(self.peek(), Some(Token::Sign(c, _)) if *c == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(w)) if w == word)
    }

    /// Whether the sign that stands here and the next one are written as one.
    fn is_joint(&self) -> bool {
        matches!(self.peek(), Some(Token::Sign(_, true)))
    }

    fn expect(&mut self, what: &str, is: impl Fn(&Token) -> bool) -> Read<Tokens> {
        let at = self.here();
        if self.peek().is_some_and(is) {
            self.at += 1;
            Ok(at)
        } else {
            Err(messages::expected(self.key(), at, what, &self.found()))
        }
    }

    fn sign(&mut self, sign: char) -> Read<Tokens> {
        self.expect(&format!("`{sign}`"), |t| matches!(t, Token::Sign(c, _) if *c == sign))
    }

    fn open(&mut self, bracket: char) -> Read<Tokens> {
        self.expect(&format!("`{bracket}`"), |t| matches!(t, Token::Open(c) if *c == bracket))
    }

    fn close(&mut self, bracket: char) -> Read<Tokens> {
        self.expect(&format!("`{bracket}`"), |t| matches!(t, Token::Close(c) if *c == bracket))
    }

    /// A name that the user gives.
    fn name(&mut self, what: &str) -> Read<(String, Tokens)> {
        let at = self.here();
        match self.peek() {
            Some(Token::Word(word)) if !KEYWORDS.contains(&word.as_str()) => {
                if !word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                    return Err(messages::not_ascii(self.key(), at, word));
                }
                if word.len() > MAX_NAME {
                    return Err(messages::long_name(self.key(), at, word, MAX_NAME));
                }
                self.at += 1;
                Ok((word.clone(), at))
            }
            _ => Err(messages::expected(self.key(), at, what, &self.found())),
        }
    }

    /// `|acc, bias[n]|`
    fn head(&mut self) -> Read<Vec<Param>> {
        if !self.is_sign('|') {
            return Err(messages::no_closure(self.env, self.here()));
        }
        self.at += 1;
        let mut params = Vec::new();
        while !self.is_sign('|') {
            if self.peek().is_none() {
                return Err(messages::open_head(self.env, Tokens::at(0)));
            }
            params.push(self.param()?);
            if self.is_sign(',') {
                self.at += 1;
            } else if self.is_sign(':') {
                return Err(messages::annotated_parameter(self.env, self.here()));
            } else if !self.is_sign('|') {
                return Err(messages::expected(
                    self.key(),
                    self.here(),
                    "`,` or `|`",
                    &self.found(),
                ));
            }
        }
        self.at += 1;
        Ok(params)
    }

    fn param(&mut self) -> Read<Param> {
        if self.is_word("mut") && matches!(self.tokens.get(self.at + 1), Some(Token::Word(_))) {
            return Err(messages::mutable_parameter(self.key(), self.here()));
        }
        if matches!(self.peek(), Some(Token::Open('('))) {
            return Err(messages::bracketed_parameter(self.env, self.here()));
        }
        let (name, mut at) = self.name("the name of a parameter")?;
        let mut index = Vec::new();
        if matches!(self.peek(), Some(Token::Open('['))) {
            self.at += 1;
            loop {
                index.push(self.name("an index such as `n`")?.0);
                if !self.is_sign(',') {
                    break;
                }
                self.at += 1;
            }
            at = at.to(self.close(']')?);
        }
        Ok(Param { name, index, at })
    }

    /// `{ let t = …; value }`
    fn braces(&mut self, depth: usize) -> Read<Block> {
        self.open('{')?;
        let mut lets = Vec::new();
        while self.is_word("let") {
            self.at += 1;
            if self.is_word("mut") {
                return Err(messages::mutable(self.key(), self.here()));
            }
            let (name, at) = self.name("a name after `let`")?;
            if self.is_sign(':') {
                return Err(messages::annotated(self.key(), self.here()));
            }
            self.sign('=')?;
            let value = self.expression(depth + 1)?;
            self.terminated()?;
            lets.push(Let { name, value, at });
        }
        if matches!(self.peek(), Some(Token::Close('}'))) {
            return Err(messages::no_value(self.key(), self.here()));
        }
        let value = self.expression(depth + 1)?;
        if self.is_sign(';') {
            return Err(messages::semicolon(self.key(), self.here()));
        }
        if !matches!(self.peek(), Some(Token::Close('}'))) {
            return Err(self.left_over());
        }
        self.at += 1;
        Ok(Block { lets, value })
    }

    /// The semicolon behind a definition.
    fn terminated(&mut self) -> Read<()> {
        if self.is_sign(';') {
            self.at += 1;
            return Ok(());
        }
        match self.peek() {
            Some(Token::Word(word)) if word == "let" || !KEYWORDS.contains(&word.as_str()) => {
                Err(messages::expected(self.key(), self.here(), "`;`", &self.found()))
            }
            Some(Token::Close(_)) | None => {
                Err(messages::expected(self.key(), self.here(), "`;`", &self.found()))
            }
            Some(_) => Err(self.left_over()),
        }
    }

    /// What follows a whole expression and continues none.
    fn left_over(&self) -> SpecError {
        let at = self.here();
        match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Token::Word(word)), Some(Token::Word(ty))) if word == "as" => {
                messages::cast(self.env, at, ty)
            }
            (Some(Token::Sign('.', _)), Some(Token::Word(method))) => {
                messages::method(self.env, at, method)
            }
            (Some(Token::Sign(':', true)), Some(Token::Sign(':', _))) => {
                let at = Tokens { last: at.last + 1, ..at };
                let last = self.tokens.get(self.at + 2).map(Token::text).unwrap_or_default();
                messages::path(self.env, at, &last)
            }
            (Some(Token::Sign(sign, _)), _) => messages::sign(self.key(), at, *sign),
            (Some(Token::Open('[')), _) => messages::indexed(self.key(), at),
            _ => messages::left_over(self.key(), at, &self.found()),
        }
    }
}
