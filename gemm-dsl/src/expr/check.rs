//! The rules of names and types. All faults are found at once; what follows from one is not reported again.

mod operation;

use super::environment::{Environment, KEYWORDS, RESERVED, WAVES};
use super::parse::MAX_DEPTH;
use super::range::Range;
use super::tree::{Binary, Block, Let, Node, NodeKind, Param, Tokens, Type, Unary};
use super::typing::{Float, Typing, ValueType};
use super::{literal, remedy};
use crate::error::SpecError;
use crate::expr::messages;

/// All faults of what has been read, in the order of the text; of types only if they are known. Where a plan says how
/// many values there are, it knows the types too: before, a name that is never read may be one too many.
pub(super) fn check(
    env: &'static Environment,
    typing: Option<&Typing>,
    params: &[Param],
    body: &Block,
) -> Vec<SpecError> {
    let mut check = Check::new(env, typing);
    check.params(params);
    let found = check.block(body, 0);
    if let (Some(typing), Some(found)) = (typing, found.map(Known::ty))
        && found != typing.result
    {
        check.fault(messages::wrong_result(env, typing, &body.value, found));
    }
    let unused = |known: &&Definition| !known.used && !known.name.starts_with('_');
    let unused: Vec<SpecError> = check
        .known
        .iter()
        .filter(unused)
        .map(|known| messages::unused(env, known.at, &known.name, known.operand))
        .collect();
    // A name may be unused because it was misspelt where it was used.
    if check.faults.is_empty() && (typing.is_some() || !env.is_counted_by_plan()) {
        check.faults = unused;
    }
    check.faults.sort_by_key(|fault| fault.tokens().map_or(0, |(first, _)| first));
    check.faults
}

/// The least and the greatest value of a sound expression that gives an integer.
pub(super) fn range(
    env: &'static Environment,
    typing: &Typing,
    params: &[Param],
    body: &Block,
) -> Option<(i128, i128)> {
    let mut check = Check::new(env, Some(typing));
    check.params(params);
    match check.block(body, 0) {
        Some(Known::Int(range)) if check.faults.is_empty() => Some((range.least, range.most)),
        _ => None,
    }
}

/// Whether parameters name values at hand, and then operands that the environment has, each once, whatever
/// else is wrong with them.
pub(super) fn lists_operands(env: &Environment, params: &[Param]) -> bool {
    let values = params.iter().take(env.values.1).all(|value| value.index.is_empty());
    values
        && params.iter().enumerate().skip(env.values.1).all(|(i, param)| {
            wrong_operand(env, param).is_none()
                && params[..i].iter().all(|earlier| earlier.name != param.name)
        })
}

/// What is wrong with a parameter as an operand, if the environment has any.
fn wrong_operand(env: &Environment, param: &Param) -> Option<SpecError> {
    let index: Vec<&str> = param.index.iter().map(String::as_str).collect();
    match env.output {
        Some((output, by)) if param.name == output => {
            (index != by).then(|| messages::output_index(env, param.at, output, by))
        }
        _ => {
            let is_known = env.operands.contains(&index.as_slice());
            (!is_known).then(|| messages::wrong_index(env, param.at, &param.name))
        }
    }
}

/// The range of an integer whose names have these, unless something is wrong with it.
#[cfg(test)]
pub(super) fn range_of(
    env: &'static Environment,
    known: &[(&str, Range)],
    e: &Node,
) -> Option<Range> {
    let typing = Typing::F32;
    let mut check = Check::new(env, Some(&typing));
    for (name, range) in known {
        check.know(name, Some(Known::Int(*range)), e.at, false);
    }
    match check.node(e, 0) {
        Some(Known::Int(range)) if check.faults.is_empty() => Some(range),
        _ => None,
    }
}

/// A parameter or a definition.
struct Definition {
    name: String,
    value: Option<Known>,
    at: Tokens,
    used: bool,
    /// Whether it is a parameter.
    operand: bool,
    /// Whether the block that defines it is closed.
    gone: bool,
}

/// What is known of a value.
#[derive(Clone, Copy)]
enum Known {
    Float(Float),
    Bool,
    Int(Range),
}

impl Known {
    fn ty(self) -> Type {
        match self {
            Known::Float(float) => float.into(),
            Known::Bool => Type::Bool,
            Known::Int(_) => Type::Int,
        }
    }

    fn float(self) -> Option<Float> {
        match self {
            Known::Float(float) => Some(float),
            Known::Bool | Known::Int(_) => None,
        }
    }
}

impl From<ValueType> for Known {
    fn from(value: ValueType) -> Self {
        match value {
            ValueType::Float(float) => Known::Float(float),
            ValueType::Int { least, most } => Known::Int(Range::between(least, most)),
            ValueType::Bool => Known::Bool,
        }
    }
}

struct Check<'c> {
    env: &'static Environment,
    /// None where types are not looked at yet: then nothing is known of any value.
    typing: Option<&'c Typing>,
    known: Vec<Definition>,
    faults: Vec<SpecError>,
    too_deep: bool,
}

impl<'c> Check<'c> {
    fn new(env: &'static Environment, typing: Option<&'c Typing>) -> Self {
        Self { env, typing, known: Vec::new(), faults: Vec::new(), too_deep: false }
    }

    fn fault(&mut self, fault: SpecError) {
        self.faults.push(fault);
    }

    fn params(&mut self, params: &[Param]) {
        let env = self.env;
        let (least, most) = env.values;
        match params {
            [] if least > 0 => {
                return self.fault(messages::missing_parameter(env, Tokens { first: 0, last: 1 }));
            }
            [first, .., last] | [first @ last] if params.len() < least => {
                self.fault(messages::few_values(env, first.at.to(last.at), params.len()));
            }
            _ => {}
        }
        if env.operands.is_empty()
            && let [first, .., last] | [first @ last] = params.get(most..).unwrap_or_default()
        {
            self.fault(messages::many_values(env, first.at.to(last.at), params.len()));
        }
        for (n, param) in params.iter().enumerate() {
            let known = self.typing.map(|typing| typing.param(n).into());
            // Another name would not do for what has no place at all.
            if n >= most && env.operands.is_empty() {
                self.know(&param.name, known, param.at, true);
                continue;
            }
            let lent = (1..most).contains(&n) && env.lent == Some(param.name.as_str());
            if !lent {
                self.unreserved(&param.name, param.at);
            }
            self.define(&param.name, known, param.at, true);
            if n < most && !param.index.is_empty() {
                self.fault(messages::indexed_value(env, param.at, &param.name));
            } else if n >= most {
                self.faults.extend(wrong_operand(env, param));
            }
        }
    }

    /// That a name means nothing by itself.
    fn unreserved(&mut self, name: &str, at: Tokens) {
        let key = self.env.key;
        let lent = self.env.names().any(|known| known == name);
        let is_waves = name == WAVES && self.env.has_waves();
        if lent || RESERVED.contains(&name) || KEYWORDS.contains(&name) {
            self.fault(messages::reserved(key, at, name));
        } else if is_waves || self.env.function(name).is_some() {
            self.fault(messages::function_name(key, at, name));
        }
    }

    /// Makes a name known, unless it is already.
    fn define(&mut self, name: &str, value: Option<Known>, at: Tokens, operand: bool) {
        if self.known.iter().any(|known| !known.gone && known.name == name) {
            self.fault(messages::duplicate(self.env.key, at, name));
        }
        self.know(name, value, at, operand);
    }

    fn know(&mut self, name: &str, value: Option<Known>, at: Tokens, operand: bool) {
        let name = name.to_owned();
        self.known.push(Definition { name, value, at, used: false, operand, gone: false });
    }

    fn block(&mut self, block: &Block, depth: usize) -> Option<Known> {
        let outer = self.known.len();
        for Let { name, value, at } in &block.lets {
            let value = self.node(value, depth + 1);
            self.unreserved(name, *at);
            self.define(name, value, *at, false);
        }
        let value = self.node(&block.value, depth + 1);
        self.known[outer..].iter_mut().for_each(|known| known.gone = true);
        value
    }

    fn node(&mut self, e: &Node, depth: usize) -> Option<Known> {
        let key = self.env.key;
        if depth > MAX_DEPTH {
            if !std::mem::replace(&mut self.too_deep, true) {
                self.fault(messages::too_deep(key, e.at, MAX_DEPTH));
            }
            return None;
        }
        match &e.kind {
            NodeKind::Float(_) if !self.env.has_floats() => {
                self.fault(messages::no_floats(key, e.at, &e.to_string()));
                None
            }
            NodeKind::Float(bits) => {
                let float = self.typing?.float;
                self.faults.extend(literal::fault(key, e.at, *bits, float));
                Some(Known::Float(float))
            }
            NodeKind::Int(value) => self.typing.map(|_| Known::Int(Range::of(*value))),
            NodeKind::Name(name) => self.name(name, e.at),
            NodeKind::Waves(..) => self.typing.map(|typing| Known::Float(typing.float)),
            NodeKind::Unary(op, operand) => {
                let (known, typing) = (self.node(operand, depth + 1)?, self.typing?);
                match (op, known) {
                    (Unary::Neg, Known::Int(range)) => self.integer(range.neg(), e.at),
                    (Unary::Neg, Known::Float(_)) | (Unary::Not, Known::Bool) => Some(known),
                    (op, wrong) => {
                        self.fault(messages::wrong_sign(key, e.at, *op, wrong.ty(), typing));
                        None
                    }
                }
            }
            NodeKind::Binary(op, a, b, at) => {
                let known = (self.node(a, depth + 1), self.node(b, depth + 1));
                let before = self.faults.len();
                let result = self.operator(*op, (a, b), known, *at);
                // What was meant where no truth values are joined may have been no truth value.
                let joined = matches!(op, Binary::And | Binary::Or) && self.faults.len() == before;
                let truth = joined || op.is_comparison();
                if truth { self.typing.map(|_| Known::Bool) } else { result }
            }
            NodeKind::If(cond, yes, no) => self.choice(cond, yes, no, depth),
            NodeKind::Call(function, args) => self.call(*function, args, e.at, (depth, false)),
        }
    }

    fn choice(&mut self, cond: &Node, yes: &Block, no: &Block, depth: usize) -> Option<Known> {
        let key = self.env.key;
        let condition = self.node(cond, depth + 1);
        if let (Some(typing), Some(wrong @ (Known::Float(_) | Known::Int(_)))) =
            (self.typing, condition)
        {
            self.fault(messages::condition(key, cond.at, wrong.ty(), typing));
        }
        let arms = (self.block(yes, depth + 1), self.block(no, depth + 1));
        let typing = self.typing?;
        match arms {
            (Some(Known::Int(a)), Some(Known::Int(b))) => Some(Known::Int(a.or(b))),
            (Some(a), Some(b)) if a.ty() != b.ty() => {
                // The whole number is the one to change, and of floats the narrow one.
                let is_whole = |e: &Node| matches!(e.kind, NodeKind::Int(_));
                let (wrong, other) = match (a, b) {
                    (Known::Float(Float::F32), Known::Float(_)) => (&yes.value, b),
                    (Known::Float(_), Known::Float(_)) => (&no.value, a),
                    _ if is_whole(&yes.value) => (&yes.value, b),
                    _ => (&no.value, a),
                };
                let both = a.float().is_some() && b.float().is_some();
                let to = other.float().filter(|_| both || is_whole(wrong));
                let remedy = to.map(|to| remedy::converted(wrong, to, typing));
                self.fault(messages::arms(key, wrong.at, (a.ty(), b.ty()), remedy));
                None
            }
            (a, b) => a.or(b),
        }
    }

    fn name(&mut self, name: &str, at: Tokens) -> Option<Known> {
        if let Some(known) = self.known.iter_mut().rev().find(|k| !k.gone && k.name == name) {
            known.used = true;
            return match known.value {
                Some(Known::Int(range)) => self.integer(range, at),
                value => value,
            };
        }
        if let Some(range) = self.env.integer(name) {
            return self.typing.map(|_| Known::Int(range));
        }
        if self.env.truths().contains(&name) {
            return self.typing.map(|_| Known::Bool);
        }
        let names = self.known.iter().filter(|known| !known.gone).map(|known| known.name.as_str());
        let lent: Vec<&'static str> = self.env.names().collect();
        let names: Vec<&str> = names.chain(lent).collect();
        let gone = self.known.iter().any(|known| known.gone && known.name == name);
        self.faults.push(messages::unknown_name(self.env, at, name, &names, gone));
        None
    }
}
