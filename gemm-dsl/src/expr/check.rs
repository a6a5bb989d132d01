//! Checks of names and types. One pass finds all faults, but does not report faults that follow
//! from an earlier one.

mod operation;

use super::Closure;
use super::literal;
use super::pairs;
use super::parse::MAX_DEPTH;
use super::range::IntRange;
use super::row_results;
use super::tree::{Binary, Block, ClosureParam, Let, Node, NodeKind, NodeSpan, Unary};
use super::typing::{Float, Typing, ValueType};
use crate::error::SpecError;
use crate::expr::messages;
use crate::expr::scope::{ExprScope, KEYWORDS, WAVES};
use crate::expr::suggestion;
use crate::expr::typing::Type;
use operation::CheckedOperand;

/// Returns all faults of a parsed expression, in the order of the text. Types are checked only if
/// they are known. If the plan decides how many values the scope has, unused names are reported
/// only together with types, because a name may be a surplus value.
pub(super) fn check(closure: &Closure, typing: Option<&Typing>) -> Vec<SpecError> {
    let scope = closure.scope;
    let mut check = Checker::new(scope, typing);
    check.params(&closure.params);
    check.values(closure);
    if check.faults.is_empty() {
        let definitions = row_results::Definitions::new(closure);
        check.faults = pairs::faults(closure, |e| definitions.folds(e));
    }
    if check.faults.is_empty() {
        check.faults = row_results::faults(closure);
    }
    let unused = |known: &&Definition| !known.used && !known.name.starts_with('_');
    let unused: Vec<SpecError> = check
        .known
        .iter()
        .filter(unused)
        .map(|known| messages::unused(scope, known.at, &known.name, known.operand))
        .collect();
    // An unused name may be misspelt at its use, so unused names are reported only without other
    // faults.
    if check.faults.is_empty() && (typing.is_some() || !scope.is_counted_by_plan()) {
        check.faults = unused;
    }
    check.faults.sort_by_key(|fault| fault.tokens().map_or(0, |at| at.first));
    check.faults
}

/// Returns the smallest and the greatest value of a valid integer expression.
pub(super) fn range(closure: &Closure, typing: &Typing) -> Option<(i128, i128)> {
    let mut check = Checker::new(closure.scope, Some(typing));
    check.params(&closure.params);
    match check.block(&closure.body, 0) {
        Some(AbstractValue::Int(range)) if check.faults.is_empty() => {
            Some((range.least, range.most))
        }
        _ => None,
    }
}

/// Returns the type of a valid expression.
pub(super) fn value_type(closure: &Closure, typing: &Typing) -> Option<ValueType> {
    let mut check = Checker::new(closure.scope, Some(typing));
    check.params(&closure.params);
    match check.block(&closure.body, 0)? {
        AbstractValue::Float(float) => Some(ValueType::Float(float)),
        AbstractValue::Bool => Some(ValueType::Bool),
        AbstractValue::Int(IntRange { least, most }) => Some(ValueType::Int { least, most }),
    }
}

/// Returns true if the parameters are values of the scope followed by operands that the scope
/// allows, each with a different name. Other faults of the parameters are ignored.
pub(super) fn lists_operands(scope: &ExprScope, params: &[ClosureParam]) -> bool {
    let values = params.iter().take(scope.values.1).all(|value| value.index.is_empty());
    let (params, numbers) = scope.values_and_numbers(params);
    let are_numbers = numbers.iter().all(|number| number.index.is_empty());
    values
        && are_numbers
        && params.iter().enumerate().skip(scope.values.1).all(|(i, param)| {
            wrong_operand(scope, param).is_none()
                && params[..i].iter().all(|earlier| earlier.name != param.name)
        })
}

/// Returns the error for a parameter that the scope does not allow as an operand, if it is one.
fn wrong_operand(scope: &ExprScope, param: &ClosureParam) -> Option<SpecError> {
    let index: Vec<&str> = param.index.iter().map(String::as_str).collect();
    match scope.output {
        Some((output, by)) if param.name == output => {
            (index != by).then(|| messages::output_index(scope, param.at, output, by))
        }
        _ => {
            let is_known = scope.operands.contains(&index.as_slice());
            (!is_known).then(|| messages::wrong_index(scope, param.at, &param.name))
        }
    }
}

/// Returns the range of an integer expression, given the ranges of its names; `None` if it has a
/// fault.
#[cfg(test)]
pub(super) fn range_of(
    scope: &'static ExprScope,
    known: &[(&str, IntRange)],
    e: &Node,
) -> Option<IntRange> {
    let typing = Typing::F32;
    let mut check = Checker::new(scope, Some(&typing));
    for (name, range) in known {
        check.know(name, Some(AbstractValue::Int(*range)), e.at, false);
    }
    match check.node(e, 0) {
        Some(AbstractValue::Int(range)) if check.faults.is_empty() => Some(range),
        _ => None,
    }
}

/// Parameter or definition in scope.
struct Definition {
    name: String,
    value: Option<AbstractValue>,
    at: NodeSpan,
    used: bool,
    /// True for a parameter.
    operand: bool,
    /// True if the block that contains the definition has ended.
    gone: bool,
}

/// Abstract value: a type, and for an integer also its range.
#[derive(Clone, Copy)]
enum AbstractValue {
    Float(Float),
    Bool,
    Int(IntRange),
}

impl AbstractValue {
    fn ty(self) -> Type {
        match self {
            AbstractValue::Float(float) => float.into(),
            AbstractValue::Bool => Type::Bool,
            AbstractValue::Int(_) => Type::Int,
        }
    }

    fn float(self) -> Option<Float> {
        match self {
            AbstractValue::Float(float) => Some(float),
            AbstractValue::Bool | AbstractValue::Int(_) => None,
        }
    }
}

impl From<ValueType> for AbstractValue {
    fn from(value: ValueType) -> Self {
        match value {
            ValueType::Float(float) => AbstractValue::Float(float),
            ValueType::Int { least, most } => AbstractValue::Int(IntRange::between(least, most)),
            ValueType::Bool => AbstractValue::Bool,
        }
    }
}

struct Checker<'c> {
    scope: &'static ExprScope,
    /// Types of the names; `None` before they are known, and then all values are unknown.
    typing: Option<&'c Typing>,
    known: Vec<Definition>,
    faults: Vec<SpecError>,
    too_deep: bool,
}

impl<'c> Checker<'c> {
    fn new(scope: &'static ExprScope, typing: Option<&'c Typing>) -> Self {
        Self { scope, typing, known: Vec::new(), faults: Vec::new(), too_deep: false }
    }

    fn fault(&mut self, fault: SpecError) {
        self.faults.push(fault);
    }

    fn params(&mut self, params: &[ClosureParam]) {
        let scope = self.scope;
        let (least, most) = scope.values;
        let (params, numbers) = scope.values_and_numbers(params);
        match params {
            [] if least > 0 && !numbers.is_empty() => {
                self.fault(messages::only_numbers(scope, numbers[0].at, &numbers[0].name));
            }
            [] if least > 0 => {
                return self
                    .fault(messages::missing_parameter(scope, NodeSpan { first: 0, last: 1 }));
            }
            [first, .., last] | [first @ last] if params.len() < least => {
                self.fault(messages::few_values(scope, first.at.to(last.at), params.len()));
            }
            _ => {}
        }
        if scope.operands.is_empty()
            && let [first, .., last] | [first @ last] = params.get(most..).unwrap_or_default()
        {
            self.fault(messages::many_values(scope, first.at.to(last.at), params.len()));
        }
        for (n, param) in params.iter().enumerate() {
            let known = self.typing.map(|typing| typing.param(n).into());
            // A surplus parameter has already been reported, and renaming it would not help.
            if n >= most && scope.operands.is_empty() {
                self.know(&param.name, known, param.at, true);
                continue;
            }
            let lent = (1..most).contains(&n) && scope.lent == Some(param.name.as_str());
            if !lent {
                self.unreserved(&param.name, param.at);
            }
            self.define(&param.name, known, param.at, true);
            if n < most && !param.index.is_empty() {
                self.fault(messages::indexed_value(scope, param.at, &param.name));
            } else if n >= most {
                self.faults.extend(wrong_operand(scope, param));
            }
            if scope.numbers && param.elem.is_some() {
                self.fault(messages::early_number(scope, param.at, &param.name));
            }
        }
        for (n, param) in numbers.iter().enumerate() {
            let known = self.typing.map(|typing| typing.param(params.len() + n).into());
            self.unreserved(&param.name, param.at);
            self.define(&param.name, known, param.at, true);
            if !param.index.is_empty() {
                self.fault(messages::indexed_number(scope, param.at, &param.name));
            }
        }
    }

    /// Reports a name that is reserved or the name of a function.
    fn unreserved(&mut self, name: &str, at: NodeSpan) {
        let key = self.scope.key;
        let lent = self.scope.names().any(|known| known == name);
        let is_waves = name == WAVES && self.scope.has_waves();
        if lent || self.scope.reserved.contains(&name) || KEYWORDS.contains(&name) {
            self.fault(messages::reserved(key, at, name));
        } else if is_waves || self.scope.function(name).is_some() {
            self.fault(messages::function_name(key, at, name));
        }
    }

    /// Adds a name, and reports a duplicate.
    fn define(&mut self, name: &str, value: Option<AbstractValue>, at: NodeSpan, operand: bool) {
        if self.known.iter().any(|known| !known.gone && known.name == name) {
            self.fault(messages::duplicate(self.scope.key, at, name));
        }
        self.know(name, value, at, operand);
    }

    fn know(&mut self, name: &str, value: Option<AbstractValue>, at: NodeSpan, operand: bool) {
        let name = name.to_owned();
        self.known.push(Definition { name, value, at, used: false, operand, gone: false });
    }

    /// Checks the values of a closure, and their types if they are known.
    fn values(&mut self, closure: &Closure) {
        let outer = self.known.len();
        self.lets(&closure.body.lets, 0);
        for (nth, value) in closure.values().enumerate() {
            match &value.kind {
                NodeKind::Pair(even, odd) => {
                    self.value(nth, even, 2);
                    self.value(nth, odd, 2);
                }
                _ => self.value(nth, value, 1),
            }
        }
        self.known[outer..].iter_mut().for_each(|known| known.gone = true);
    }

    /// Checks the n-th value of a closure, or the value of one of its columns.
    fn value(&mut self, nth: usize, value: &Node, depth: usize) {
        let found = self.node(value, depth).map(AbstractValue::ty);
        let Some((typing, found)) = self.typing.zip(found) else { return };
        let wanted = match nth.checked_sub(1) {
            None => typing.result,
            Some(nth) => typing.more.get(nth).copied().unwrap_or(typing.result),
        };
        if found != wanted {
            self.fault(messages::wrong_result(self.scope, typing, value, wanted, found));
        }
    }

    fn lets(&mut self, lets: &[Let], depth: usize) {
        for Let { name, value, at } in lets {
            let value = self.node(value, depth + 1);
            self.unreserved(name, *at);
            self.define(name, value, *at, false);
        }
    }

    fn block(&mut self, block: &Block, depth: usize) -> Option<AbstractValue> {
        let outer = self.known.len();
        self.lets(&block.lets, depth);
        let value = self.node(&block.value, depth + 1);
        self.known[outer..].iter_mut().for_each(|known| known.gone = true);
        value
    }

    fn node(&mut self, e: &Node, depth: usize) -> Option<AbstractValue> {
        let key = self.scope.key;
        if depth > MAX_DEPTH {
            if !std::mem::replace(&mut self.too_deep, true) {
                self.fault(messages::too_deep(key, e.at, MAX_DEPTH));
            }
            return None;
        }
        match &e.kind {
            NodeKind::Float(_) if !self.scope.has_floats() => {
                self.fault(messages::no_floats(key, e.at, &e.to_string()));
                None
            }
            NodeKind::Float(bits) => {
                let float = self.typing?.float;
                self.faults.extend(literal::fault(key, e.at, *bits, float));
                Some(AbstractValue::Float(float))
            }
            NodeKind::Int(value) => {
                self.typing.map(|_| AbstractValue::Int(IntRange::constant(*value)))
            }
            NodeKind::Name(name) => self.name(name, e.at),
            NodeKind::Waves(..) => self.typing.map(|typing| AbstractValue::Float(typing.float)),
            NodeKind::Unary(op, operand) => {
                let (known, typing) = (self.node(operand, depth + 1)?, self.typing?);
                match (op, known) {
                    (Unary::Neg, AbstractValue::Int(range)) => self.integer(range.neg(), e.at),
                    (Unary::Neg, AbstractValue::Float(_)) | (Unary::Not, AbstractValue::Bool) => {
                        Some(known)
                    }
                    (op, wrong) => {
                        self.fault(messages::wrong_sign(key, e.at, *op, wrong.ty(), typing));
                        None
                    }
                }
            }
            NodeKind::Binary(op, a, b, at) => {
                let a = CheckedOperand { node: a, value: self.node(a, depth + 1) };
                let b = CheckedOperand { node: b, value: self.node(b, depth + 1) };
                let before = self.faults.len();
                let result = self.operator(*op, a, b, *at);
                // If an operand of `&&` or `||` is faulty, the user may have meant an operator on
                // numbers.
                let joined = matches!(op, Binary::And | Binary::Or) && self.faults.len() == before;
                let truth = joined || op.is_comparison();
                if truth { self.typing.map(|_| AbstractValue::Bool) } else { result }
            }
            NodeKind::If(cond, yes, no) => self.choice(cond, yes, no, depth),
            NodeKind::Call(function, args) => self.call(*function, args, e.at, depth, false),
            NodeKind::Fold(op, of) => {
                let value = self.node(of, depth + 1)?;
                self.fold(*op, value, of.at, e.at)
            }
            NodeKind::Next(of) => self.node(of, depth + 1),
            NodeKind::Pair(even, odd) => {
                for of in [even, odd] {
                    self.node(of, depth + 1);
                }
                self.fault(messages::pair_inside(key, e.at));
                None
            }
        }
    }

    fn choice(
        &mut self,
        cond: &Node,
        yes: &Block,
        no: &Block,
        depth: usize,
    ) -> Option<AbstractValue> {
        let key = self.scope.key;
        let condition = self.node(cond, depth + 1);
        if let (Some(typing), Some(wrong @ (AbstractValue::Float(_) | AbstractValue::Int(_)))) =
            (self.typing, condition)
        {
            self.fault(messages::condition(key, cond.at, wrong.ty(), typing));
        }
        let arms = (self.block(yes, depth + 1), self.block(no, depth + 1));
        let typing = self.typing?;
        match arms {
            (Some(AbstractValue::Int(a)), Some(AbstractValue::Int(b))) => {
                Some(AbstractValue::Int(a.or(b)))
            }
            (Some(a), Some(b)) if a.ty() != b.ty() => {
                // The message suggests converting the integer, or the narrower float.
                let is_whole = |e: &Node| matches!(e.kind, NodeKind::Int(_));
                let (wrong, other) = match (a, b) {
                    (AbstractValue::Float(Float::F32), AbstractValue::Float(_)) => (&yes.value, b),
                    (AbstractValue::Float(_), AbstractValue::Float(_)) => (&no.value, a),
                    _ if is_whole(&yes.value) => (&yes.value, b),
                    _ => (&no.value, a),
                };
                let both = a.float().is_some() && b.float().is_some();
                let to = other.float().filter(|_| both || is_whole(wrong));
                let suggestion = to.map(|to| suggestion::converted(wrong, to, typing));
                self.fault(messages::arms(key, wrong.at, a.ty(), b.ty(), suggestion));
                None
            }
            (a, b) => a.or(b),
        }
    }

    fn name(&mut self, name: &str, at: NodeSpan) -> Option<AbstractValue> {
        if let Some(known) = self.known.iter_mut().rev().find(|k| !k.gone && k.name == name) {
            known.used = true;
            return match known.value {
                Some(AbstractValue::Int(range)) => self.integer(range, at),
                value => value,
            };
        }
        if let Some(range) = self.scope.integer(name) {
            return self.typing.map(|_| AbstractValue::Int(range));
        }
        if self.scope.truths().contains(&name) {
            return self.typing.map(|_| AbstractValue::Bool);
        }
        let names = self.known.iter().filter(|known| !known.gone).map(|known| known.name.as_str());
        let lent: Vec<&'static str> = self.scope.names().collect();
        let names: Vec<&str> = names.chain(lent).collect();
        let gone = self.known.iter().any(|known| known.gone && known.name == name);
        self.faults.push(messages::unknown_name(self.scope, at, name, &names, gone));
        None
    }
}
