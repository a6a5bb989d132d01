//! Grammar of expressions: a recursive-descent parser over numbered tokens. Names and types are
//! checked later.

mod expression;

use super::Closure;
use super::tree::{Block, ClosureParam, ClosureResult, Let, Node, NodeSpan};
use crate::error::{SpecError, clip};
use crate::expr::lexeme::{CLOSE_BRACE, Lexeme, OPEN_BRACE};
use crate::expr::messages;
use crate::expr::scope::{ExprScope, KEYWORDS};
use crate::ir::{Elem, MAX_NAME};

/// Maximum nesting depth of an expression.
pub(super) const MAX_DEPTH: usize = 64;

/// Element types that parameters and results may state.
const ELEMENTS: [Elem; 10] = [
    Elem::F32,
    Elem::F64,
    Elem::F16,
    Elem::Bf16,
    Elem::I8,
    Elem::U8,
    Elem::I32,
    Elem::U32,
    Elem::I64,
    Elem::U64,
];

/// Types of the numbers that a launch passes.
const NUMBERS: [Elem; 5] = [Elem::F32, Elem::F64, Elem::I32, Elem::U32, Elem::I64];

type ParseResult<T> = Result<T, SpecError>;

/// Parameters of a closure, and the element types of its results as far as it states them.
#[derive(Default)]
pub(super) struct Head {
    pub(super) params: Vec<ClosureParam>,
    pub(super) results: Vec<ClosureResult>,
}

pub(super) struct Parser<'t> {
    scope: &'static ExprScope,
    tokens: &'t [Lexeme],
    at: usize,
    parts: usize,
}

impl<'t> Parser<'t> {
    pub(super) fn new(scope: &'static ExprScope, tokens: &'t [Lexeme]) -> Self {
        Self { scope, tokens, at: 0, parts: 0 }
    }

    /// Parses a whole value: the body, after the head if the scope has one.
    pub(super) fn closure(&mut self) -> ParseResult<Closure> {
        let Head { params, results } = self.head()?;
        let (lets, (value, others)) = match self.peek() {
            Some(Lexeme::Open(OPEN_BRACE)) => self.braced(0, Self::values)?,
            _ => (Vec::new(), self.values(0)?),
        };
        match self.peek() {
            None => {
                let body = Block { lets, value };
                Ok(Closure { scope: self.scope, params, results, body, others })
            }
            Some(_) => Err(self.left_over()),
        }
    }

    /// Parses the value of the closure, or several as a tuple: the first one and the others.
    fn values(&mut self, depth: usize) -> ParseResult<(Node, Vec<Node>)> {
        if self.scope.results == 1 || !self.is_tuple() {
            return Ok((self.expression(depth)?, Vec::new()));
        }
        let first = self.open('(')?;
        let value = self.expression(depth + 1)?;
        let mut others = Vec::new();
        while self.is_sign(',') {
            self.at += 1;
            if matches!(self.peek(), Some(Lexeme::Close(')'))) {
                break;
            }
            if others.len() + 1 == self.scope.results {
                return Err(messages::many_results(self.scope, self.here()));
            }
            others.push(self.expression(depth + 1)?);
        }
        if !matches!(self.peek(), Some(Lexeme::Close(')'))) {
            return Err(self.left_over());
        }
        let whole = first.to(self.close(')')?);
        match others.is_empty() {
            true => Err(messages::tuple_of_one(self.scope, whole)),
            false => Ok((value, others)),
        }
    }

    /// Returns true if the current bracket encloses expressions that commas separate, and nothing
    /// follows it.
    fn is_tuple(&self) -> bool {
        if !matches!(self.peek(), Some(Lexeme::Open('('))) {
            return false;
        }
        let (mut depth, mut has_comma) = (0_usize, false);
        for (at, token) in self.tokens.iter().enumerate().skip(self.at) {
            match token {
                Lexeme::Open(_) => depth += 1,
                Lexeme::Close(_) => depth -= 1,
                Lexeme::Sign(',', _) => has_comma |= depth == 1,
                _ => {}
            }
            if depth == 0 {
                let next = self.tokens.get(at + 1);
                return has_comma && matches!(next, None | Some(Lexeme::Close(_)));
            }
        }
        false
    }

    /// Parses the parameters between bars and the types of the results, if the scope has any.
    pub(super) fn head(&mut self) -> ParseResult<Head> {
        let scope = self.scope;
        if scope.values.1 == 0 && scope.operands.is_empty() {
            return match self.is_sign('|') {
                true => Err(messages::no_head(scope, self.here())),
                false => Ok(Head::default()),
            };
        }
        Ok(Head { params: self.params()?, results: self.result_types()? })
    }

    /// Parses `-> f32` or `-> (f32[m], bf16)`, if it is there.
    fn result_types(&mut self) -> ParseResult<Vec<ClosureResult>> {
        let is_arrow = self.is_sign('-')
            && self.is_joint()
            && matches!(self.tokens.get(self.at + 1), Some(Lexeme::Sign('>', _)));
        if !is_arrow || !self.scope.is_typed {
            return Ok(Vec::new());
        }
        self.at += 2;
        if !matches!(self.peek(), Some(Lexeme::Open('('))) {
            return Ok(vec![self.result_type()?]);
        }
        self.at += 1;
        let mut types = vec![self.result_type()?];
        while self.is_sign(',') {
            self.at += 1;
            if matches!(self.peek(), Some(Lexeme::Close(')'))) {
                break;
            }
            types.push(self.result_type()?);
        }
        self.close(')')?;
        Ok(types)
    }

    /// Parses `f32`, or `f32[m]` for one value for each row.
    fn result_type(&mut self) -> ParseResult<ClosureResult> {
        let elem = self.element_type()?;
        if !matches!(self.peek(), Some(Lexeme::Open('['))) {
            return Ok(ClosureResult { elem, per_row: false });
        }
        let first = self.here();
        self.at += 1;
        let index = self.index()?;
        let at = first.to(self.close(']')?);
        let index: Vec<&str> = index.iter().map(String::as_str).collect();
        match index.as_slice() {
            ["m"] => Ok(ClosureResult { elem, per_row: true }),
            ["m", "n"] => Ok(ClosureResult { elem, per_row: false }),
            _ => Err(messages::result_index(self.key(), at, elem)),
        }
    }

    /// Parses the name of an element type.
    fn element_type(&mut self) -> ParseResult<Elem> {
        let at = self.here();
        let found = match self.peek() {
            Some(Lexeme::Word(word)) => ELEMENTS.iter().find(|elem| elem.name() == word),
            _ => None,
        };
        let Some(elem) = found else {
            return Err(messages::element_type(self.key(), at, &self.found()));
        };
        self.at += 1;
        Ok(*elem)
    }

    fn peek(&self) -> Option<&'t Lexeme> {
        self.tokens.get(self.at)
    }

    fn key(&self) -> &'static str {
        self.scope.key
    }

    /// Returns the position of the current token, or of the last token at the end.
    fn here(&self) -> NodeSpan {
        NodeSpan::at(self.at.min(self.tokens.len().saturating_sub(1)))
    }

    fn found(&self) -> String {
        let end = || "the end of the expression".to_owned();
        self.peek().map_or_else(end, |token| format!("`{}`", clip(&token.text())))
    }

    fn is_sign(&self, sign: char) -> bool {
        matches!(self.peek(), Some(Lexeme::Sign(c, _)) if *c == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Lexeme::Word(w)) if w == word)
    }

    /// Returns true if no space separates the current sign from the next.
    fn is_joint(&self) -> bool {
        matches!(self.peek(), Some(Lexeme::Sign(_, true)))
    }

    fn expect(&mut self, what: &str, is: impl Fn(&Lexeme) -> bool) -> ParseResult<NodeSpan> {
        let at = self.here();
        if self.peek().is_some_and(is) {
            self.at += 1;
            Ok(at)
        } else {
            Err(messages::expected(self.key(), at, what, &self.found()))
        }
    }

    fn sign(&mut self, sign: char) -> ParseResult<NodeSpan> {
        self.expect(&format!("`{sign}`"), |t| matches!(t, Lexeme::Sign(c, _) if *c == sign))
    }

    fn open(&mut self, bracket: char) -> ParseResult<NodeSpan> {
        self.expect(&format!("`{bracket}`"), |t| matches!(t, Lexeme::Open(c) if *c == bracket))
    }

    fn close(&mut self, bracket: char) -> ParseResult<NodeSpan> {
        self.expect(&format!("`{bracket}`"), |t| matches!(t, Lexeme::Close(c) if *c == bracket))
    }

    /// Parses a name that the user chooses.
    fn name(&mut self, what: &str) -> ParseResult<(String, NodeSpan)> {
        let at = self.here();
        match self.peek() {
            Some(Lexeme::Word(word)) if !KEYWORDS.contains(&word.as_str()) => {
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

    /// Parses `|acc, bias[n]|`.
    fn params(&mut self) -> ParseResult<Vec<ClosureParam>> {
        if !self.is_sign('|') {
            return Err(messages::no_closure(self.scope, self.here()));
        }
        self.at += 1;
        let mut params = Vec::new();
        while !self.is_sign('|') {
            if self.peek().is_none() {
                return Err(messages::open_head(self.scope, NodeSpan::at(0)));
            }
            params.push(self.param()?);
            if self.is_sign(',') {
                self.at += 1;
            } else if self.is_sign(':') {
                return Err(messages::annotated_parameter(self.scope, self.here()));
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

    fn param(&mut self) -> ParseResult<ClosureParam> {
        if self.is_word("mut") && matches!(self.tokens.get(self.at + 1), Some(Lexeme::Word(_))) {
            return Err(messages::mutable_parameter(self.key(), self.here()));
        }
        if matches!(self.peek(), Some(Lexeme::Open('('))) {
            return Err(messages::bracketed_parameter(self.scope, self.here()));
        }
        let (name, mut at) = self.name("the name of a parameter")?;
        let mut index = Vec::new();
        if matches!(self.peek(), Some(Lexeme::Open('['))) {
            self.at += 1;
            index = self.index()?;
            at = at.to(self.close(']')?);
        }
        let mut elem = None;
        if (self.scope.is_typed || self.scope.numbers) && self.is_sign(':') {
            self.at += 1;
            at = at.to(self.here());
            let stated = self.element_type()?;
            if self.scope.numbers && !NUMBERS.contains(&stated) {
                return Err(messages::number_type(self.key(), at, stated));
            }
            elem = Some(stated);
        }
        Ok(ClosureParam { name, index, elem, at })
    }

    /// Parses the names of an index, such as `m, n`.
    fn index(&mut self) -> ParseResult<Vec<String>> {
        let mut index = Vec::new();
        loop {
            index.push(self.name("an index such as `n`")?.0);
            if !self.is_sign(',') {
                return Ok(index);
            }
            self.at += 1;
        }
    }

    /// Parses `{ let t = …; value }`.
    fn braces(&mut self, depth: usize) -> ParseResult<Block> {
        let (lets, value) = self.braced(depth, Self::expression)?;
        Ok(Block { lets, value })
    }

    /// Parses definitions in braces, and what follows them.
    fn braced<V>(
        &mut self,
        depth: usize,
        value: impl FnOnce(&mut Self, usize) -> ParseResult<V>,
    ) -> ParseResult<(Vec<Let>, V)> {
        self.open(OPEN_BRACE)?;
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
        if matches!(self.peek(), Some(Lexeme::Close(CLOSE_BRACE))) {
            return Err(messages::no_value(self.key(), self.here()));
        }
        let value = value(self, depth + 1)?;
        if self.is_sign(';') {
            return Err(messages::semicolon(self.key(), self.here()));
        }
        if !matches!(self.peek(), Some(Lexeme::Close(CLOSE_BRACE))) {
            return Err(self.left_over());
        }
        self.at += 1;
        Ok((lets, value))
    }

    /// Parses the semicolon after a definition.
    fn terminated(&mut self) -> ParseResult<()> {
        if self.is_sign(';') {
            self.at += 1;
            return Ok(());
        }
        match self.peek() {
            Some(Lexeme::Word(word)) if word == "let" || !KEYWORDS.contains(&word.as_str()) => {
                Err(messages::expected(self.key(), self.here(), "`;`", &self.found()))
            }
            Some(Lexeme::Close(_)) | None => {
                Err(messages::expected(self.key(), self.here(), "`;`", &self.found()))
            }
            Some(_) => Err(self.left_over()),
        }
    }

    /// Returns the error for tokens after a complete expression.
    fn left_over(&self) -> SpecError {
        let at = self.here();
        match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Lexeme::Word(word)), Some(Lexeme::Word(ty))) if word == "as" => {
                messages::cast(self.scope, at, ty)
            }
            (Some(Lexeme::Sign('.', _)), Some(Lexeme::Word(method))) => {
                messages::method(self.scope, at, method)
            }
            (Some(Lexeme::Sign(':', true)), Some(Lexeme::Sign(':', _))) => {
                let at = NodeSpan { last: at.last + 1, ..at };
                let last = self.tokens.get(self.at + 2).map(Lexeme::text).unwrap_or_default();
                messages::path(self.scope, at, &last)
            }
            (Some(Lexeme::Sign(',', _)), _) if self.scope.results > 1 => {
                messages::misplaced_tuple(self.scope, at)
            }
            (Some(Lexeme::Sign(sign, _)), _) => messages::sign(self.key(), at, *sign),
            (Some(Lexeme::Open('[')), _) => messages::indexed(self.key(), at),
            _ => messages::left_over(self.key(), at, &self.found()),
        }
    }
}
