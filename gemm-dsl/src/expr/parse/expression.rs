//! Expressions, from the loosest operator to numbers, names and calls.

use super::{MAX_DEPTH, Parser, Read};
use crate::expr::environment::{KEYWORDS, WAVES};
use crate::expr::messages;
use crate::expr::tokens::Token;
use crate::expr::tree::{Binary, Block, Level, Node, NodeKind, Tokens, Unary};

/// How many numbers, names, operators and calls an expression may have.
const MAX_PARTS: usize = 1024;

impl Parser<'_> {
    fn part(&mut self) -> Read<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(messages::too_long(self.key(), self.here(), MAX_PARTS));
        }
        Ok(())
    }

    pub(super) fn expression(&mut self, depth: usize) -> Read<Node> {
        self.binary(Level::Or, depth)
    }

    /// Operators of this level and tighter.
    fn binary(&mut self, level: Level, depth: usize) -> Read<Node> {
        if level == Level::Unary {
            return self.unary(depth);
        }
        let mut left = self.binary(level.above(), depth)?;
        let mut compared = false;
        while let Some((op, length)) = self.operator().filter(|(op, _)| op.level() == level) {
            let at = Tokens { first: self.at, last: self.at + length - 1 };
            if let Some(Token::Sign('=', _)) = self.tokens.get(self.at + 1)
                && self.is_joint()
                && length == 1
            {
                let at = Tokens { last: at.last + 1, ..at };
                return Err(messages::assignment(self.key(), at, op));
            }
            if op.is_comparison() && compared {
                return Err(messages::chained(self.key(), at));
            }
            compared = op.is_comparison();
            self.at += length;
            self.part()?;
            let right = self.binary(level.above(), depth)?;
            let whole = left.at.to(right.at);
            let kind = NodeKind::Binary(op, Box::new(left), Box::new(right), at);
            left = Node { kind, at: whole };
        }
        Ok(left)
    }

    /// The operator that stands here, and how many tokens it takes.
    fn operator(&self) -> Option<(Binary, usize)> {
        let Some(Token::Sign(first, joint)) = self.peek() else { return None };
        if *joint && let Some(Token::Sign(second, _)) = self.tokens.get(self.at + 1) {
            let pair = String::from_iter([*first, *second]);
            if let Some(op) = Binary::ALL.iter().find(|op| op.sign() == pair) {
                return Some((*op, 2));
            }
        }
        let single = first.to_string();
        Binary::ALL.iter().find(|op| op.sign() == single).map(|op| (*op, 1))
    }

    fn unary(&mut self, depth: usize) -> Read<Node> {
        if depth > MAX_DEPTH {
            return Err(messages::too_deep(self.key(), self.here(), MAX_DEPTH));
        }
        let op = match self.peek() {
            Some(Token::Sign('-', _)) => Unary::Neg,
            Some(Token::Sign('!', _)) => Unary::Not,
            _ => return self.primary(depth),
        };
        let at = self.here();
        self.part()?;
        self.at += 1;
        let e = self.unary(depth + 1)?;
        let at = at.to(e.at);
        Ok(Node { kind: NodeKind::Unary(op, Box::new(e)), at })
    }

    fn primary(&mut self, depth: usize) -> Read<Node> {
        let at = self.here();
        self.part()?;
        let nothing =
            |p: &Self| messages::expected(p.key(), at, "a number, a name or `(`", &p.found());
        match self.peek() {
            Some(Token::Literal(text)) => {
                let kind = crate::expr::literal::read(self.env, at, text)?;
                self.at += 1;
                Ok(Node { kind, at })
            }
            Some(Token::Word(word)) if word == "if" => self.choice(depth),
            Some(Token::Word(word)) if KEYWORDS.contains(&word.as_str()) => Err(nothing(self)),
            Some(Token::Word(word)) => {
                self.at += 1;
                match self.peek() {
                    Some(Token::Open('(')) => self.call(word, at, depth),
                    Some(Token::Open('[')) => Err(messages::indexed(self.key(), self.here())),
                    _ => Ok(Node { kind: NodeKind::Name(word.clone()), at }),
                }
            }
            Some(Token::Open('(')) => {
                self.at += 1;
                let inner = self.expression(depth + 1)?;
                if !matches!(self.peek(), Some(Token::Close(')'))) {
                    return Err(self.left_over());
                }
                let at = at.to(self.close(')')?);
                Ok(Node { at, ..inner })
            }
            Some(Token::Open('{')) => Err(messages::bare_block(self.key(), at)),
            _ => Err(nothing(self)),
        }
    }

    /// `if condition { yes } else { no }`
    fn choice(&mut self, depth: usize) -> Read<Node> {
        let at = self.here();
        self.at += 1;
        let cond = self.expression(depth + 1)?;
        if !matches!(self.peek(), Some(Token::Open('{'))) && self.peek().is_some() {
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
        let end = Tokens::at(self.at.saturating_sub(1));
        Ok(Node { kind: NodeKind::If(Box::new(cond), Box::new(yes), Box::new(no)), at: at.to(end) })
    }

    fn call(&mut self, name: &str, at: Tokens, depth: usize) -> Read<Node> {
        self.at += 1;
        if name == WAVES && self.env.has_waves() {
            return self.waves(at);
        }
        // Of `wave(64x64)` the name is wrong, and not the tile.
        if self.env.has_waves() && self.env.function(name).is_none() {
            return Err(messages::unknown_function(self.env, at, name));
        }
        let mut args = Vec::new();
        while !matches!(self.peek(), Some(Token::Close(')'))) {
            args.push(self.expression(depth + 1)?);
            match self.peek() {
                Some(Token::Sign(',', _)) => self.at += 1,
                Some(Token::Close(')')) => {}
                _ => return Err(self.left_over()),
            }
        }
        let whole = at.to(self.here());
        self.at += 1;
        let Some(function) = self.env.function(name) else {
            return Err(messages::unknown_function(self.env, at, name));
        };
        let operands = function.row().operands;
        if operands.len() != args.len() {
            return Err(messages::arity(self.key(), whole, function, args.len()));
        }
        Ok(Node { kind: NodeKind::Call(function, args), at: whole })
    }

    /// The tile of `waves(128x256)`, whose bracket is open.
    fn waves(&mut self, start: Tokens) -> Read<Node> {
        let at = self.here();
        let side = |text: &str| {
            let is_plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
            text.parse().ok().filter(|_| is_plain)
        };
        let tile = match self.peek() {
            Some(Token::Literal(text)) => text.split_once('x'),
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
