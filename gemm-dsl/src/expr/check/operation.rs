//! Operators and functions: which operands they take, and what is known of their values.

use super::{Check, Known};
use crate::expr::function::{Function, Signature};
use crate::expr::messages;
use crate::expr::range::Range;
use crate::expr::remedy;
use crate::expr::tree::{Binary, Node, NodeKind, Tokens, Type};
use crate::expr::typing::Float;

impl Check<'_> {
    /// An integer, if 64 bits hold it.
    pub(super) fn integer(&mut self, range: Range, at: Tokens) -> Option<Known> {
        if range.fits() || (self.env.host.is_some() && range.fits_host()) {
            return Some(Known::Int(range));
        }
        self.fault(messages::overflow(self.env.key, at, self.typing?));
        None
    }

    /// What is known of the result, where the operands fit the operator.
    pub(super) fn operator(
        &mut self,
        op: Binary,
        (a, b): (&Node, &Node),
        known: (Option<Known>, Option<Known>),
        at: Tokens,
    ) -> Option<Known> {
        use Known::{Bool, Int};
        let (key, typing) = (self.env.key, self.typing?);
        let (ka, kb) = match known {
            (Some(a), Some(b)) => (a, b),
            // What is unknown may have been meant as anything but a whole number.
            (only, None) | (None, only) => return only.filter(|known| known.float().is_some()),
        };
        let mixed = |e: &Node, found: Known, to: Float| {
            let remedy = remedy::converted(e, to, typing);
            messages::mixed(key, e.at, op, (found.ty(), to), &e.to_string(), &remedy)
        };
        let fault = match (op, ka, kb) {
            (Binary::And | Binary::Or, ..) => match (ka.ty(), kb.ty()) {
                (Type::Bool, Type::Bool) => return None,
                (Type::Bool, wrong) => messages::no_truth(key, b.at, op, wrong, typing),
                (wrong, Type::Bool) => messages::no_truth(key, a.at, op, wrong, typing),
                types => messages::no_truths(key, a.at.to(b.at), op, types, typing),
            },
            (_, Bool, other) | (_, other, Bool) => {
                let ty = if other.ty() == Type::Bool { typing.result } else { other.ty() };
                messages::truth(key, at, op, &remedy::chosen(ty, typing))
            }
            (_, Known::Float(x), Known::Float(y)) if x == y => match op {
                Binary::Rem => messages::remainder(key, at, x),
                _ => return Some(ka),
            },
            (_, Int(x), Int(y)) if op.is_comparison() => return Some(Int(x.or(y))),
            (Binary::Div | Binary::Rem, Int(_), Int(y)) if y.has_zero() => {
                messages::by_zero(self.env, b.at, op, &b.to_string(), (y.least, y.most), typing)
            }
            // Where the quotient leaves 64 bits, C says nothing of the remainder either.
            (Binary::Rem, Int(x), Int(y)) if !x.operator(Binary::Div, y).fits() => {
                messages::overflow(key, at, typing)
            }
            (_, Int(x), Int(y)) => return self.integer(x.operator(op, y), at),
            // What loses nothing is to be converted: the integer, or the narrow float.
            (_, Known::Float(to @ Float::F64), found @ Known::Float(_))
            | (_, Known::Float(to), found @ Int(_)) => mixed(b, found, to),
            (_, found, Known::Float(to)) => mixed(a, found, to),
        };
        self.fault(fault);
        None
    }

    pub(super) fn call(
        &mut self,
        function: Function,
        args: &[Node],
        at: Tokens,
        (depth, is_converted): (usize, bool),
    ) -> Option<Known> {
        let conversion = function.converts_to().is_some();
        let known = args.iter().map(|e| match &e.kind {
            // What it is told to write is converted already.
            NodeKind::Call(inner, args) if conversion && inner.is_single() => {
                self.call(*inner, args, e.at, (depth + 1, true))
            }
            _ => self.node(e, depth + 1),
        });
        let known: Vec<Option<Known>> = known.collect();
        let typing = self.typing?;
        let has = |float| known.iter().flatten().any(|known| known.float() == Some(float));
        let wanted = match function.row().signature {
            Signature::Conversion => return self.conversion(function, args, &known),
            Signature::Single if has(Float::F64) => {
                let text: String = args.iter().map(Node::to_string).collect();
                let to = Some(typing.float).filter(|to| *to == Float::F64 && !is_converted);
                self.fault(messages::single_only(self.env.key, at, function, &text, to));
                return None;
            }
            Signature::Single => Some(Float::F32),
            // What takes several types takes that of its operands, which is a float if one is.
            Signature::Float | Signature::Number if has(Float::F64) => Some(Float::F64),
            Signature::Float | Signature::Number if has(Float::F32) => Some(Float::F32),
            Signature::Float => Some(typing.float),
            Signature::Number if known.iter().any(Option::is_none) => return None,
            Signature::Number => None,
        };
        let mut ranges = Vec::new();
        for (e, known) in args.iter().zip(&known) {
            match (known, wanted) {
                (Some(Known::Int(range)), None) => ranges.push(*range),
                (Some(Known::Bool), _) => self.truth_argument(function, e, wanted),
                (Some(known), Some(wanted)) if known.float() != Some(wanted) => {
                    let remedy = remedy::converted(e, wanted, typing);
                    let types = (known.ty(), wanted);
                    let text = e.to_string();
                    let key = self.env.key;
                    self.fault(messages::wrong_argument(
                        key, e.at, function, types, &text, &remedy,
                    ));
                }
                _ => {}
            }
        }
        match (function, ranges.as_slice(), wanted) {
            (_, _, Some(float)) => Some(Known::Float(float)),
            (Function::Min, [a, b], _) => Some(Known::Int(a.min(*b))),
            (Function::Max, [a, b], _) => Some(Known::Int(a.max(*b))),
            (Function::Clamp, [x, low, high], _) => Some(Known::Int(x.max(*low).min(*high))),
            (Function::Abs, [x], _) => self.integer(x.abs(), at),
            _ => None,
        }
    }

    /// A truth value where a number is wanted: an integer, or a float.
    fn truth_argument(&mut self, function: Function, e: &Node, wanted: Option<Float>) {
        let Some(typing) = self.typing else { return };
        let remedy = remedy::chosen(wanted.map_or(Type::Int, Type::from), typing);
        self.fault(messages::truth_argument(self.env.key, e.at, function, &remedy));
    }

    fn conversion(
        &mut self,
        function: Function,
        args: &[Node],
        known: &[Option<Known>],
    ) -> Option<Known> {
        let to = function.converts_to()?;
        for (e, known) in args.iter().zip(known) {
            match known {
                Some(Known::Bool) => self.truth_argument(function, e, Some(to)),
                Some(Known::Float(float)) if *float == to => {
                    self.fault(messages::converted_already(self.env, e.at, to));
                }
                _ => {}
            }
        }
        Some(Known::Float(to))
    }
}
