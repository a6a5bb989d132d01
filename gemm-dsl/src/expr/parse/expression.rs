//! Parsing of expressions, from the loosest operator to numbers, names and calls.

use super::{MAX_DEPTH, ParseResult, Parser};
use crate::expr::lexeme::{Lexeme, OPEN_BRACE};
use crate::expr::messages;
use crate::expr::pairs::{NEXT, PAIR};
use crate::expr::scope::{KEYWORDS, WAVES};
use crate::expr::tree::NodeSpan;
use crate::expr::tree::{Binary, Block, FoldOp, Node, NodeKind, Precedence, Unary};

/// Maximum number of literals, names, operators and calls of an expression.
const MAX_PARTS: usize = 1024;

impl Parser<'_> {
    fn part(&mut self) -> ParseResult<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(messages::too_long(self.key(), self.here(), MAX_PARTS));
        }
        Ok(())
    }

    pub(super) fn expression(&mut self, depth: usize) -> ParseResult<Node> {
        self.binary(Precedence::Or, depth)
    }

    /// Parses a chain of operators of at least this precedence.
    fn binary(&mut self, level: Precedence, depth: usize) -> ParseResult<Node> {
        if level == Precedence::Unary {
            return self.unary(depth);
        }
        let mut left = self.binary(level.above(), depth)?;
        let mut compared = false;
        while let Some((op, length)) = self.operator().filter(|(op, _)| op.level() == level) {
            let at = NodeSpan { first: self.at, last: self.at + length - 1 };
            if let Some(Lexeme::Sign('=', _)) = self.tokens.get(self.at + 1)
                && self.is_joint()
                && length == 1
            {
                let at = NodeSpan { last: at.last + 1, ..at };
                return Err(messages::assignment(self.key(), at, op));
            }
            if op.is_comparison() && compared {
                return Err(messages::chained(self.key(), at));
            }
            compared = op.is_comparison();
            self.at += length;
            self.part()?;
            self.operand_after(op.sign())?;
            let right = self.binary(level.above(), depth)?;
            let whole = left.at.to(right.at);
            let kind = NodeKind::Binary(op, Box::new(left), Box::new(right), at);
            left = Node { kind, at: whole };
        }
        Ok(left)
    }

    /// Returns the operator at the current token, and its number of tokens.
    fn operator(&self) -> Option<(Binary, usize)> {
        let Some(Lexeme::Sign(first, joint)) = self.peek() else { return None };
        if *joint && let Some(Lexeme::Sign(second, _)) = self.tokens.get(self.at + 1) {
            let pair = String::from_iter([*first, *second]);
            if let Some(op) = Binary::ALL.iter().find(|op| op.sign() == pair) {
                return Some((*op, 2));
            }
        }
        let single = first.to_string();
        Binary::ALL.iter().find(|op| op.sign() == single).map(|op| (*op, 1))
    }

    fn unary(&mut self, depth: usize) -> ParseResult<Node> {
        if depth > MAX_DEPTH {
            return Err(messages::too_deep(self.key(), self.here(), MAX_DEPTH));
        }
        let (op, sign) = match self.peek() {
            Some(Lexeme::Sign('-', _)) => (Unary::Neg, "-"),
            Some(Lexeme::Sign('!', _)) => (Unary::Not, "!"),
            _ => return self.primary(depth),
        };
        let at = self.here();
        self.part()?;
        self.at += 1;
        self.operand_after(sign)?;
        let e = self.unary(depth + 1)?;
        let at = at.to(e.at);
        Ok(Node { kind: NodeKind::Unary(op, Box::new(e)), at })
    }

    /// Returns an error if no operand begins at the current token. `sign` is the operator before
    /// the token.
    fn operand_after(&self, sign: &str) -> ParseResult<()> {
        let begins = match self.peek() {
            Some(Lexeme::Literal(_) | Lexeme::Open(_)) => true,
            Some(Lexeme::Word(word)) => word == "if" || !KEYWORDS.contains(&word.as_str()),
            Some(Lexeme::Sign(sign, _)) => matches!(sign, '-' | '!'),
            Some(Lexeme::Close(_)) | None => false,
        };
        if begins {
            return Ok(());
        }
        let what = format!("an operand after `{sign}`");
        Err(messages::expected(self.key(), self.here(), &what, &self.found()))
    }

    fn primary(&mut self, depth: usize) -> ParseResult<Node> {
        let at = self.here();
        self.part()?;
        let nothing =
            |p: &Self| messages::expected(p.key(), at, "a number, a name or `(`", &p.found());
        match self.peek() {
            Some(Lexeme::Literal(text)) => {
                let kind = crate::expr::literal::read(self.scope, at, text)?;
                self.at += 1;
                Ok(Node { kind, at })
            }
            Some(Lexeme::Word(word)) if word == "if" => self.choice(depth),
            Some(Lexeme::Word(word)) if KEYWORDS.contains(&word.as_str()) => Err(nothing(self)),
            Some(Lexeme::Word(word)) => {
                self.at += 1;
                match self.peek() {
                    Some(Lexeme::Open('(')) => self.call(word, at, depth),
                    Some(Lexeme::Open('[')) => Err(messages::indexed(self.key(), self.here())),
                    _ => Ok(Node { kind: NodeKind::Name(word.clone()), at }),
                }
            }
            Some(Lexeme::Open('(')) => {
                self.at += 1;
                let inner = self.expression(depth + 1)?;
                if !matches!(self.peek(), Some(Lexeme::Close(')'))) {
                    return Err(self.left_over());
                }
                let at = at.to(self.close(')')?);
                Ok(Node { at, ..inner })
            }
            Some(Lexeme::Open(OPEN_BRACE)) => Err(messages::bare_block(self.key(), at)),
            _ => Err(nothing(self)),
        }
    }

    /// Parses `if condition { yes } else { no }`.
    fn choice(&mut self, depth: usize) -> ParseResult<Node> {
        let at = self.here();
        self.at += 1;
        let cond = self.expression(depth + 1)?;
        if !matches!(self.peek(), Some(Lexeme::Open(OPEN_BRACE))) && self.peek().is_some() {
            return Err(self.left_over());
        }
        let yes = self.braces(depth + 1)?;
        if !self.is_word("else") {
            return Err(messages::no_else(self.key(), at));
        }
        self.at += 1;
        let no = if self.is_word("if") {
            if depth >= MAX_DEPTH {
                return Err(messages::too_deep(self.key(), self.here(), MAX_DEPTH));
            }
            self.part()?;
            Block { lets: Vec::new(), value: self.choice(depth + 1)? }
        } else {
            self.braces(depth + 1)?
        };
        let end = NodeSpan::at(self.at.saturating_sub(1));
        Ok(Node { kind: NodeKind::If(Box::new(cond), Box::new(yes), Box::new(no)), at: at.to(end) })
    }

    fn call(&mut self, name: &str, at: NodeSpan, depth: usize) -> ParseResult<Node> {
        self.at += 1;
        if name == WAVES && self.scope.has_waves() {
            return self.waves(at);
        }
        // In `wave(64x64)` the name is misspelt, but the tile is valid.
        if self.scope.has_waves() && self.scope.function(name).is_none() {
            return Err(messages::unknown_function(self.scope, at, name));
        }
        let mut args = Vec::new();
        while !matches!(self.peek(), Some(Lexeme::Close(')'))) {
            args.push(self.expression(depth + 1)?);
            match self.peek() {
                Some(Lexeme::Sign(',', _)) => self.at += 1,
                Some(Lexeme::Close(')')) => {}
                _ => return Err(self.left_over()),
            }
        }
        let whole = at.to(self.here());
        self.at += 1;
        if self.scope.pairs && matches!(name, NEXT | PAIR) {
            return self.column(name, args, whole);
        }
        let fold = FoldOp::named(name).filter(|op| !op.is_function() || args.len() == 1);
        if let Some(op) = fold.filter(|_| self.scope.conditions.is_none()) {
            return self.fold(op, args, whole);
        }
        let Some(function) = self.scope.function(name) else {
            return Err(messages::unknown_function(self.scope, at, name));
        };
        let operands = function.info().operands;
        if operands.len() != args.len() {
            return Err(messages::arity(self.key(), whole, function, args.len()));
        }
        Ok(Node { kind: NodeKind::Call(function, args), at: whole })
    }

    /// Returns the fold of an argument over a row.
    fn fold(&self, op: FoldOp, args: Vec<Node>, at: NodeSpan) -> ParseResult<Node> {
        if !self.scope.folds {
            return Err(messages::no_folds(self.scope, at, op));
        }
        let count = args.len();
        match args.into_iter().next().filter(|_| count == 1) {
            Some(e) => Ok(Node { kind: NodeKind::Fold(op, Box::new(e)), at }),
            None => Err(messages::fold_arity(self.key(), at, op, count)),
        }
    }

    /// Returns `next(x)` or `pair(x, y)`.
    fn column(&self, name: &str, args: Vec<Node>, at: NodeSpan) -> ParseResult<Node> {
        let count = args.len();
        let mut args = args.into_iter().map(Box::new);
        let kind = match (name, count, args.next(), args.next()) {
            (NEXT, 1, Some(of), _) => NodeKind::Next(of),
            (PAIR, 2, Some(even), Some(odd)) => NodeKind::Pair(even, odd),
            _ => return Err(messages::pair_arity(self.key(), at, name, count)),
        };
        Ok(Node { kind, at })
    }

    /// Parses the tile of `waves(128x256)`, after the opening bracket.
    fn waves(&mut self, start: NodeSpan) -> ParseResult<Node> {
        let at = self.here();
        let side = |text: &str| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
            text.parse().ok().filter(|_| is_plain)
        };
        let tile = match self.peek() {
            Some(Lexeme::Literal(text)) => text.split_once('x'),
            _ => None,
        };
        let tile = tile.and_then(|(m, n)| Some((side(m)?, side(n)?)));
        let Some((m, n)) = tile else {
            return Err(messages::waves(self.key(), at, &self.found()));
        };
        self.at += 1;
        let at = start.to(self.close(')')?);
        Ok(Node { kind: NodeKind::Waves(m, n), at })
    }
}
