//! The typing rules. All faults are found at once; what follows from one is not reported again.

use super::environment::{Environment, KEYWORDS, RESERVED};
use super::function::{Function, Signature};
use super::parse::MAX_DEPTH;
use super::range::Range;
use super::tree::{Binary, Block, Let, Node, NodeKind, Param, Tokens, Type, Unary};
use crate::error::value as error;
use crate::error::{SpecError, clip};

/// All faults of what has been read, in the order of the text.
pub(super) fn check(env: &'static Environment, params: &[Param], body: &Block) -> Vec<SpecError> {
    let mut check = Check { env, known: Vec::new(), faults: Vec::new(), too_deep: false };
    check.params(params);
    if let Some(found) = check.block(body, 0).map(Known::ty)
        && found != env.result
    {
        let fault = error::wrong_result(env, body.value.at, found, &as_float(&body.value));
        check.faults.push(fault);
    }
    let unused = |known: &&Definition| !known.used && !known.name.starts_with('_');
    let unused: Vec<SpecError> = check
        .known
        .iter()
        .filter(unused)
        .map(|known| error::unused(env, known.at, &known.name, known.operand))
        .collect();
    // A name may be unused because it was misspelt where it was used.
    if check.faults.is_empty() {
        check.faults = unused;
    }
    check.faults.sort_by_key(|fault| fault.tokens().map_or(0, |(first, _)| first));
    check.faults
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
            (index != by).then(|| error::output_index(env, param.at, output, by))
        }
        _ => {
            let is_known = env.operands.contains(&index.as_slice());
            (!is_known).then(|| error::wrong_index(env, param.at, &param.name))
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
    let mut check = Check { env, known: Vec::new(), faults: Vec::new(), too_deep: false };
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
    F32,
    Bool,
    Int(Range),
}

impl Known {
    fn ty(self) -> Type {
        match self {
            Known::F32 => Type::F32,
            Known::Bool => Type::Bool,
            Known::Int(_) => Type::Int,
        }
    }
}

struct Check {
    env: &'static Environment,
    known: Vec<Definition>,
    faults: Vec<SpecError>,
    too_deep: bool,
}

/// Whether an expression is a whole number as it is written.
fn is_whole(e: &Node) -> Option<i64> {
    match e.kind {
        NodeKind::Int(value) => Some(value),
        _ => None,
    }
}

/// An integer written as an f32: the same of numbers with a point where it is of numbers alone, as
/// `1 / 2` is, and converted otherwise.
fn as_float(e: &Node) -> String {
    match of_floats(e) {
        Some(floats) => clip(&floats.to_string()),
        None => format!("f32({})", clip(&e.to_string())),
    }
}

fn of_floats(e: &Node) -> Option<Node> {
    let kind = match &e.kind {
        NodeKind::Int(value) => {
            let float = *value as f32;
            // Any other would be written as another number.
            let exact = float as i128 == i128::from(*value);
            exact.then(|| NodeKind::Float(float.to_bits()))?
        }
        NodeKind::Unary(Unary::Neg, of) => NodeKind::Unary(Unary::Neg, Box::new(of_floats(of)?)),
        NodeKind::Binary(op, a, b, at) if *op != Binary::Rem => {
            NodeKind::Binary(*op, Box::new(of_floats(a)?), Box::new(of_floats(b)?), *at)
        }
        _ => return None,
    };
    Some(Node { kind, at: e.at })
}

impl Check {
    fn fault(&mut self, fault: SpecError) {
        self.faults.push(fault);
    }

    fn params(&mut self, params: &[Param]) {
        let env = self.env;
        let (least, most) = env.values;
        if params.len() < least {
            return self.fault(error::missing_parameter(env, Tokens { first: 0, last: 1 }));
        }
        for (i, param) in params.iter().enumerate() {
            // Another name would not do for what has no place at all.
            if i >= most && env.operands.is_empty() {
                self.fault(error::no_operands(env, param.at, &param.to_string()));
                self.know(&param.name, Some(Known::F32), param.at, true);
                continue;
            }
            self.define(&param.name, Some(Known::F32), param.at, true);
            if i < least && !param.index.is_empty() {
                self.fault(error::indexed_value(env, param.at, &param.name));
            } else if i >= most {
                self.faults.extend(wrong_operand(env, param));
            }
        }
    }

    /// Makes a name known, unless it means something else already.
    fn define(&mut self, name: &str, value: Option<Known>, at: Tokens, operand: bool) {
        let key = self.env.key;
        if RESERVED.contains(&name) || KEYWORDS.contains(&name) {
            self.fault(error::reserved(key, at, name));
        } else if Function::named(name).is_some() {
            self.fault(error::function_name(key, at, name));
        } else if self.known.iter().any(|known| !known.gone && known.name == name) {
            self.fault(error::duplicate(key, at, name));
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
                self.fault(error::too_deep(key, e.at, MAX_DEPTH));
            }
            return None;
        }
        match &e.kind {
            NodeKind::Float(_) => Some(Known::F32),
            NodeKind::Int(value) => Some(Known::Int(Range::of(*value))),
            NodeKind::Name(name) => self.name(name, e.at),
            NodeKind::Unary(op, operand) => match (op, self.node(operand, depth + 1)?) {
                (Unary::Neg, Known::Int(range)) => self.integer(range.neg(), e.at),
                (Unary::Neg, Known::F32) => Some(Known::F32),
                (Unary::Not, Known::Bool) => Some(Known::Bool),
                (op, wrong) => {
                    self.fault(error::wrong_sign(key, e.at, *op, wrong.ty()));
                    None
                }
            },
            NodeKind::Binary(op, a, b, at) => {
                let known = (self.node(a, depth + 1), self.node(b, depth + 1));
                let before = self.faults.len();
                let result = self.operator(*op, (a, b), known, *at);
                // What was meant where no truth values are joined may have been no truth value.
                let joined = matches!(op, Binary::And | Binary::Or) && self.faults.len() == before;
                if joined || op.is_comparison() { Some(Known::Bool) } else { result }
            }
            NodeKind::If(cond, yes, no) => {
                match self.node(cond, depth + 1) {
                    None | Some(Known::Bool) => {}
                    Some(wrong) => self.fault(error::condition(key, cond.at, wrong.ty())),
                }
                match (self.block(yes, depth + 1), self.block(no, depth + 1)) {
                    (Some(Known::Int(a)), Some(Known::Int(b))) => Some(Known::Int(a.or(b))),
                    (Some(a), Some(b)) if a.ty() != b.ty() => {
                        // The whole number is the one to change.
                        let (at, whole) = match is_whole(&yes.value) {
                            Some(whole) => (yes.value.at, Some(whole)),
                            None => (no.value.at, is_whole(&no.value)),
                        };
                        self.fault(error::arms(key, at, (a.ty(), b.ty()), whole));
                        None
                    }
                    (a, b) => a.or(b),
                }
            }
            NodeKind::Call(function, args) => self.call(*function, args, e.at, depth),
        }
    }

    fn name(&mut self, name: &str, at: Tokens) -> Option<Known> {
        if let Some(known) = self.known.iter_mut().rev().find(|k| !k.gone && k.name == name) {
            known.used = true;
            return known.value;
        }
        if self.env.integers.contains(&name) {
            return Some(Known::Int(Range::of_name(name)));
        }
        let names = self.known.iter().filter(|known| !known.gone).map(|known| known.name.as_str());
        let names: Vec<&str> = names.chain(self.env.integers.iter().copied()).collect();
        let gone = self.known.iter().any(|known| known.gone && known.name == name);
        self.faults.push(error::unknown_name(self.env, at, name, &names, gone));
        None
    }

    /// An integer, if 64 bits hold it.
    fn integer(&mut self, range: Range, at: Tokens) -> Option<Known> {
        if range.fits() {
            return Some(Known::Int(range));
        }
        self.fault(error::overflow(self.env.key, at));
        None
    }

    /// What is known of the result, where the operands fit the operator.
    fn operator(
        &mut self,
        op: Binary,
        (a, b): (&Node, &Node),
        known: (Option<Known>, Option<Known>),
        at: Tokens,
    ) -> Option<Known> {
        let key = self.env.key;
        let (ka, kb) = match known {
            (Some(a), Some(b)) => (a, b),
            // What is unknown may have been meant as anything but a whole number.
            (only, None) | (None, only) => return only.filter(|k| k.ty() == Type::F32),
        };
        let fault = match (op, ka, kb) {
            (Binary::And | Binary::Or, ..) => match (ka.ty(), kb.ty()) {
                (Type::Bool, Type::Bool) => return None,
                (Type::Bool, wrong) => error::no_truth(key, b.at, op, wrong),
                (wrong, Type::Bool) => error::no_truth(key, a.at, op, wrong),
                types => error::no_truths(key, a.at.to(b.at), op, types),
            },
            (_, Known::Bool, _) | (_, _, Known::Bool) => error::truth(key, at, op),
            (Binary::Rem, Known::F32, Known::F32) => error::remainder(key, at),
            (_, Known::F32, Known::F32) => return Some(Known::F32),
            (_, Known::Int(x), Known::Int(y)) if op.is_comparison() => {
                return Some(Known::Int(x.or(y)));
            }
            (Binary::Div | Binary::Rem, Known::Int(_), Known::Int(y)) if y.has_zero() => {
                error::by_zero(key, b.at, op, &b.to_string(), (y.least, y.most))
            }
            // Where the quotient leaves 64 bits, C says nothing of the remainder either.
            (Binary::Rem, Known::Int(x), Known::Int(y)) if !x.operator(Binary::Div, y).fits() => {
                error::overflow(key, at)
            }
            (_, Known::Int(x), Known::Int(y)) => return self.integer(x.operator(op, y), at),
            (_, Known::F32, Known::Int(_)) => {
                error::mixed(key, b.at, op, &b.to_string(), &as_float(b))
            }
            (_, Known::Int(_), Known::F32) => {
                error::mixed(key, a.at, op, &a.to_string(), &as_float(a))
            }
        };
        self.fault(fault);
        None
    }

    fn call(
        &mut self,
        function: Function,
        args: &[Node],
        at: Tokens,
        depth: usize,
    ) -> Option<Known> {
        let known: Vec<Option<Known>> = args.iter().map(|e| self.node(e, depth + 1)).collect();
        let key = self.env.key;
        // What any number will do for takes the type of its operands, which is f32 if one is.
        let float = known.iter().flatten().any(|known| known.ty() == Type::F32);
        let wanted = match function.operand() {
            Some(ty) => ty,
            None if float => Type::F32,
            None if known.iter().any(Option::is_none) => return None,
            None => Type::Int,
        };
        let mut ranges = Vec::new();
        for (e, known) in args.iter().zip(&known) {
            match known {
                Some(Known::Int(range)) if wanted == Type::Int => ranges.push(*range),
                Some(Known::Int(_)) => {
                    let text = e.to_string();
                    self.fault(error::integer_argument(key, e.at, function, &text, &as_float(e)));
                }
                Some(wrong) if wrong.ty() != wanted => {
                    self.fault(error::wrong_argument(key, e.at, function, wrong.ty()));
                }
                _ => {}
            }
        }
        if function.row().signature != Signature::Number || wanted == Type::F32 {
            return Some(Known::F32);
        }
        match (function, ranges.as_slice()) {
            (Function::Min, [a, b]) => Some(Known::Int(a.min(*b))),
            (Function::Max, [a, b]) => Some(Known::Int(a.max(*b))),
            (Function::Clamp, [x, low, high]) => Some(Known::Int(x.max(*low).min(*high))),
            (Function::Abs, [x]) => self.integer(x.abs(), at),
            _ => None,
        }
    }
}
