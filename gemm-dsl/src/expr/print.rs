//! Canonical text of an expression. Parsing this text returns the same expression.

use super::Closure;
use super::pairs::{NEXT, PAIR};
use super::tree::{Block, ClosureParam, ClosureResult, Let, Node, NodeKind, Precedence, Unary};
use std::fmt::{Display, Formatter, Result, Write};

impl Display for ClosureParam {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(&self.name)?;
        if !self.index.is_empty() {
            write!(f, "[{}]", self.index.join(", "))?;
        }
        self.elem.map_or(Ok(()), |elem| write!(f, ": {elem}"))
    }
}

impl Display for Let {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "let {} = {};", self.name, self.value)
    }
}

/// Prints the block, without braces if it has no definitions.
impl Display for Block {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.lets.is_empty() {
            return self.value.fmt(f);
        }
        f.write_str("{ ")?;
        inside(self, f)?;
        f.write_str(" }")
    }
}

/// Writes the element types of the results, if they are stated.
pub(super) fn results(results: &[ClosureResult], f: &mut Formatter<'_>) -> Result {
    match results {
        [] => Ok(()),
        [result] => write!(f, "-> {result} "),
        results => {
            let results: Vec<String> = results.iter().map(ClosureResult::to_string).collect();
            write!(f, "-> ({}) ", results.join(", "))
        }
    }
}

impl Display for ClosureResult {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}{}", self.elem, if self.per_row { "[m]" } else { "" })
    }
}

/// Writes the definitions and the results of a closure.
pub(super) fn body(closure: &Closure, f: &mut Formatter<'_>) -> Result {
    if closure.others.is_empty() {
        return closure.body.fmt(f);
    }
    let lets = &closure.body.lets;
    f.write_str(if lets.is_empty() { "" } else { "{ " })?;
    definitions(lets, f)?;
    let values: Vec<String> = closure.values().map(Node::to_string).collect();
    write!(f, "({})", values.join(", "))?;
    f.write_str(if lets.is_empty() { "" } else { " }" })
}

/// Writes the definitions and the value of a block, without braces.
fn inside(block: &Block, f: &mut Formatter<'_>) -> Result {
    definitions(&block.lets, f)?;
    block.value.fmt(f)
}

fn definitions(lets: &[Let], f: &mut Formatter<'_>) -> Result {
    lets.iter().try_for_each(|Let { name, value, .. }| write!(f, "let {name} = {value}; "))
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match &self.kind {
            // The shortest decimal text that parses to the same number.
            NodeKind::Float(bits) => write!(f, "{:?}", f64::from_bits(*bits)),
            NodeKind::Int(value) => value.fmt(f),
            NodeKind::Name(name) => f.write_str(name),
            NodeKind::Waves(m, n) => write!(f, "waves({m}x{n})"),
            NodeKind::Unary(op, e) => {
                f.write_char(match op {
                    Unary::Neg => '-',
                    Unary::Not => '!',
                })?;
                operand(e, Precedence::Unary, f)
            }
            NodeKind::Binary(op, a, b, _) => {
                let level = op.level();
                // Comparisons do not chain.
                let left = if op.is_comparison() { level.above() } else { level };
                operand(a, left, f)?;
                write!(f, " {} ", op.sign())?;
                operand(b, level.above(), f)
            }
            NodeKind::If(cond, yes, no) => {
                f.write_str("if ")?;
                cond.fmt(f)?;
                f.write_str(" { ")?;
                inside(yes, f)?;
                f.write_str(" } else ")?;
                if no.lets.is_empty() && matches!(no.value.kind, NodeKind::If(..)) {
                    return no.value.fmt(f);
                }
                f.write_str("{ ")?;
                inside(no, f)?;
                f.write_str(" }")
            }
            NodeKind::Fold(op, e) => write!(f, "{}({e})", op.name()),
            NodeKind::Next(e) => write!(f, "{NEXT}({e})"),
            NodeKind::Pair(even, odd) => write!(f, "{PAIR}({even}, {odd})"),
            NodeKind::Call(function, args) => {
                write!(f, "{}(", function.name())?;
                for (i, arg) in args.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { ", " })?;
                    arg.fmt(f)?;
                }
                f.write_char(')')
            }
        }
    }
}

/// Writes an operand, in parentheses if its precedence is below `floor`.
fn operand(e: &Node, floor: Precedence, f: &mut Formatter<'_>) -> Result {
    let level = match &e.kind {
        NodeKind::Binary(op, ..) => op.level(),
        NodeKind::Unary(..) => Precedence::Unary,
        // An `if` at the start of an expression would look like a statement, so an operand gets
        // parentheses.
        NodeKind::If(..) => Precedence::Or,
        NodeKind::Float(_)
        | NodeKind::Int(_)
        | NodeKind::Name(_)
        | NodeKind::Call(..)
        | NodeKind::Fold(..)
        | NodeKind::Next(_)
        | NodeKind::Pair(..)
        | NodeKind::Waves(..) => Precedence::Primary,
    };
    let alone = matches!(e.kind, NodeKind::If(..)) || level < floor;
    if alone { write!(f, "({e})") } else { e.fmt(f) }
}
