//! Checks of operators and functions: types of the operands, and abstract value of the result.

use super::{AbstractValue, Checker};
use crate::expr::function::{Function, Signature};
use crate::expr::messages;
use crate::expr::range::IntRange;
use crate::expr::suggestion;
use crate::expr::tree::NodeSpan;
use crate::expr::tree::{Binary, FoldOp, Node, NodeKind};
use crate::expr::typing::Float;
use crate::expr::typing::Type;

/// Operand of an operator, with its abstract value.
#[derive(Clone, Copy)]
pub(super) struct CheckedOperand<'n> {
    pub(super) node: &'n Node,
    pub(super) value: Option<AbstractValue>,
}

impl Checker<'_> {
    /// Returns an integer value, or reports that it may exceed 64 bits.
    pub(super) fn integer(&mut self, range: IntRange, at: NodeSpan) -> Option<AbstractValue> {
        if range.fits() || (self.scope.conditions.is_some() && range.fits_host()) {
            return Some(AbstractValue::Int(range));
        }
        self.fault(messages::overflow(self.scope.key, at, self.typing?));
        None
    }

    /// Returns the abstract value of an operator's result, if the operator accepts the operands.
    pub(super) fn operator(
        &mut self,
        op: Binary,
        a: CheckedOperand<'_>,
        b: CheckedOperand<'_>,
        at: NodeSpan,
    ) -> Option<AbstractValue> {
        use AbstractValue::{Bool, Int};
        let (key, typing) = (self.scope.key, self.typing?);
        let (ka, kb) = match (a.value, b.value) {
            (Some(ka), Some(kb)) => (ka, kb),
            // An unknown operand may have any type except integer.
            (only, None) | (None, only) => return only.filter(|known| known.float().is_some()),
        };
        let (a, b) = (a.node, b.node);
        let mixed = |e: &Node, found: AbstractValue, to: Float| {
            let suggestion = suggestion::converted(e, to, typing);
            messages::mixed(key, e.at, op, found.ty(), to, &e.to_string(), &suggestion)
        };
        let fault = match (op, ka, kb) {
            (Binary::And | Binary::Or, ..) => match (ka.ty(), kb.ty()) {
                (Type::Bool, Type::Bool) => return None,
                (Type::Bool, wrong) => messages::no_truth(key, b.at, op, wrong, typing),
                (wrong, Type::Bool) => messages::no_truth(key, a.at, op, wrong, typing),
                (x, y) => messages::no_truths(key, a.at.to(b.at), op, x, y, typing),
            },
            (_, Bool, other) | (_, other, Bool) => {
                let ty = if other.ty() == Type::Bool { typing.result } else { other.ty() };
                messages::truth(key, at, op, &suggestion::chosen(ty, typing))
            }
            (_, AbstractValue::Float(x), AbstractValue::Float(y)) if x == y => match op {
                Binary::Rem => messages::remainder(key, at, x),
                _ => return Some(ka),
            },
            (_, Int(x), Int(y)) if op.is_comparison() => return Some(Int(x.or(y))),
            (Binary::Div | Binary::Rem, Int(_), Int(y)) if y.has_zero() => {
                messages::by_zero(self.scope, b.at, op, &b.to_string(), y, typing)
            }
            // If the quotient exceeds 64 bits, the remainder is undefined in C as well.
            (Binary::Rem, Int(x), Int(y)) if !x.operator(Binary::Div, y).fits() => {
                messages::overflow(key, at, typing)
            }
            (_, Int(x), Int(y)) => return self.integer(x.operator(op, y), at),
            // The message suggests the lossless conversion, which is that of the integer or of the
            // narrower float.
            (_, AbstractValue::Float(to @ Float::F64), found @ AbstractValue::Float(_))
            | (_, AbstractValue::Float(to), found @ Int(_)) => mixed(b, found, to),
            (_, found, AbstractValue::Float(to)) => mixed(a, found, to),
        };
        self.fault(fault);
        None
    }

    pub(super) fn call(
        &mut self,
        function: Function,
        args: &[Node],
        at: NodeSpan,
        depth: usize,
        is_converted: bool,
    ) -> Option<AbstractValue> {
        let conversion = function.converts_to().is_some();
        let known = args.iter().map(|e| match &e.kind {
            // The suggested text already contains the conversion.
            NodeKind::Call(inner, args) if conversion && inner.is_single() => {
                self.call(*inner, args, e.at, depth + 1, true)
            }
            _ => self.node(e, depth + 1),
        });
        let known: Vec<Option<AbstractValue>> = known.collect();
        let typing = self.typing?;
        let has = |float| known.iter().flatten().any(|known| known.float() == Some(float));
        let wanted = match function.info().signature {
            Signature::Conversion => return self.conversion(function, args, &known),
            Signature::Single if has(Float::F64) => {
                let text: String = args.iter().map(Node::to_string).collect();
                let to = Some(typing.float).filter(|to| *to == Float::F64 && !is_converted);
                self.fault(messages::single_only(self.scope.key, at, function, &text, to));
                return None;
            }
            Signature::Single => Some(Float::F32),
            // Generic functions take the common type of their operands. It is a float type if one
            // operand is a float.
            _ if has(Float::F64) => Some(Float::F64),
            _ if has(Float::F32) => Some(Float::F32),
            Signature::Float | Signature::Predicate => Some(typing.float),
            Signature::Number if known.iter().any(Option::is_none) => return None,
            Signature::Number => None,
        };
        let mut ranges = Vec::new();
        for (e, known) in args.iter().zip(&known) {
            match (known, wanted) {
                (Some(AbstractValue::Int(range)), None) => ranges.push(*range),
                (Some(AbstractValue::Bool), _) => self.truth_argument(function, e, wanted),
                (Some(known), Some(wanted)) if known.float() != Some(wanted) => {
                    let suggestion = suggestion::converted(e, wanted, typing);
                    let text = e.to_string();
                    let key = self.scope.key;
                    self.fault(messages::wrong_argument(
                        key,
                        e.at,
                        function,
                        known.ty(),
                        wanted,
                        &text,
                        &suggestion,
                    ));
                }
                _ => {}
            }
        }
        match (function, ranges.as_slice(), wanted) {
            _ if function.info().signature == Signature::Predicate => Some(AbstractValue::Bool),
            (_, _, Some(float)) => Some(AbstractValue::Float(float)),
            (Function::Min, [a, b], _) => Some(AbstractValue::Int(a.min(*b))),
            (Function::Max, [a, b], _) => Some(AbstractValue::Int(a.max(*b))),
            (Function::Clamp, [x, low, high], _) => {
                Some(AbstractValue::Int(x.max(*low).min(*high)))
            }
            (Function::Abs, [x], _) => self.integer(x.abs(), at),
            (Function::Sign, [x], _) => Some(AbstractValue::Int(x.sign())),
            _ => None,
        }
    }

    /// Returns the abstract value of a fold of `value` over a row.
    pub(super) fn fold(
        &mut self,
        op: FoldOp,
        value: AbstractValue,
        of: NodeSpan,
        at: NodeSpan,
    ) -> Option<AbstractValue> {
        match value {
            AbstractValue::Float(_) => Some(value),
            AbstractValue::Int(_) if !self.scope.is_elementwise() => {
                self.fault(messages::fold_of_integer(self.scope.key, of, op));
                None
            }
            AbstractValue::Int(range) if range.fold(op).fits() => {
                Some(AbstractValue::Int(range.fold(op)))
            }
            AbstractValue::Int(_) => {
                self.fault(messages::fold_overflow(self.scope.key, at, op, self.typing?));
                None
            }
            AbstractValue::Bool => {
                let suggestion = suggestion::chosen(Type::Int, self.typing?);
                self.fault(messages::fold_of_boolean(self.scope.key, of, op, &suggestion));
                None
            }
        }
    }

    /// Reports a boolean where `wanted`, or an integer if it is `None`, is required.
    fn truth_argument(&mut self, function: Function, e: &Node, wanted: Option<Float>) {
        let Some(typing) = self.typing else { return };
        let suggestion = suggestion::chosen(wanted.map_or(Type::Int, Type::from), typing);
        self.fault(messages::truth_argument(self.scope.key, e.at, function, &suggestion));
    }

    fn conversion(
        &mut self,
        function: Function,
        args: &[Node],
        known: &[Option<AbstractValue>],
    ) -> Option<AbstractValue> {
        let to = function.converts_to()?;
        for (e, known) in args.iter().zip(known) {
            match known {
                Some(AbstractValue::Bool) => self.truth_argument(function, e, Some(to)),
                Some(AbstractValue::Float(float)) if *float == to => {
                    self.fault(messages::converted_already(self.scope, e.at, to));
                }
                _ => {}
            }
        }
        Some(AbstractValue::Float(to))
    }
}
