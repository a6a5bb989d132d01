//! Random valid expressions, for tests.
//!
//! The module is part of this crate because the unit tests of the crate use it, too. In a separate
//! test crate it would use the types of another copy of this crate.

use super::check::check;
use super::{
    Binary, Block, Closure, ClosureParam, ExprScope, Float, Function, Let, Node, NodeKind,
    Signature, Type, Typing, Unary, ValueType, literal,
};
use crate::expr::tree::NodeSpan;

/// SplitMix64, by G. Steele, D. Lea and C. Flood.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.bits() as usize % from.len()].clone()
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.bits().is_multiple_of(one_in)
    }
}

/// Returns a random closure of approximately this depth, which the seed determines. It has as few
/// parameters as the scope allows, and it reads every name that it defines. It may read the scope's
/// integers. Its types are those of the scope, or else all `f32`.
pub fn closure(scope: &'static ExprScope, seed: u64, depth: u32) -> Closure {
    with_operands(scope, seed, depth, 0)
}

/// Like [`closure`], with up to `most` operands if the scope allows operands.
///
/// No operand has the index `batch`, so that any GEMM can have it.
pub fn with_operands(scope: &'static ExprScope, seed: u64, depth: u32, most: u64) -> Closure {
    let of_one = scope.operands.iter().copied().filter(|index| !index.contains(&"batch"));
    indexed(scope, seed, depth, Operands { most, indices: of_one.collect() })
}

/// Like [`with_operands`], for the value of each column of a pair. The first value of the closure
/// is a `pair` of it. Some closures have a second value, which is that of the odd column.
pub fn of_pairs(scope: &'static ExprScope, seed: u64, depth: u32, most: u64) -> Closure {
    let mut closure = with_operands(scope, seed, depth, most);
    let even = closure.body.value.clone();
    let odd = node(NodeKind::Next(Box::new(even.clone())));
    if seed.is_multiple_of(2) {
        closure.others = vec![odd.clone()];
    }
    closure.body.value = node(NodeKind::Pair(Box::new(even), Box::new(odd)));
    closure
}

/// Like [`with_operands`], for a batch: operands may have the index `batch`.
pub fn of_batch(scope: &'static ExprScope, seed: u64, depth: u32, most: u64) -> Closure {
    indexed(scope, seed, depth, Operands { most, indices: scope.operands.to_vec() })
}

/// Maximum number of operands of a random closure, and the indices that they may have.
#[derive(Default)]
struct Operands {
    most: u64,
    indices: Vec<&'static [&'static str]>,
}

fn indexed(scope: &'static ExprScope, seed: u64, depth: u32, operands: Operands) -> Closure {
    let most = if operands.indices.is_empty() { 0 } else { operands.most };
    let operands = Operands { most, ..operands };
    match &scope.typing {
        Some(typing) => sound(scope, typing, seed, depth, &operands),
        None => sound(scope, &Typing::F32, seed, depth, &operands),
    }
}

/// Like [`closure`], with the given types, and with as many values as they list if the scope allows
/// so many.
pub fn closure_of(scope: &'static ExprScope, typing: &Typing, seed: u64, depth: u32) -> Closure {
    sound(scope, typing, seed, depth, &Operands::default())
}

fn sound(
    scope: &'static ExprScope,
    typing: &Typing,
    seed: u64,
    depth: u32,
    operands: &Operands,
) -> Closure {
    let mut seeds = Random(seed);
    // In some candidates an integer could exceed 64 bits, more often in deeper ones.
    let mut depths = (0..=depth).rev().flat_map(|depth| [depth; 64]);
    loop {
        let depth = depths.next().unwrap_or(0);
        let closure = grown(scope, typing, seeds.bits(), depth, operands);
        if check(&closure, Some(typing)).is_empty() {
            return closure;
        }
    }
}

fn param(name: String, index: &[&str]) -> ClosureParam {
    let index = index.iter().map(ToString::to_string).collect();
    ClosureParam { name, index, elem: None, at: NodeSpan::default() }
}

fn grown(
    scope: &'static ExprScope,
    typing: &Typing,
    seed: u64,
    depth: u32,
    operands: &Operands,
) -> Closure {
    let mut grow = Grow { scope, typing, random: Random(seed), names: Vec::new(), next: 0 };
    let values = typing.values.len().clamp(scope.values.0, scope.values.1);
    let mut params: Vec<ClosureParam> = (0..values).map(|i| param(format!("x{i}"), &[])).collect();
    for i in 0..grow.random.bits() % (operands.most + 1) {
        // Some of these names collide with names in the kernel's source, or are reserved in CUDA C.
        let name = grow.random.pick(&["y", "row_", "Bias", "tid", "own_y", "float"]);
        let index = grow.random.pick(&operands.indices);
        params.push(param(format!("{name}{i}"), index));
    }
    if let Some((output, by)) = scope.output.filter(|_| operands.most > 0 && grow.random.chance(4))
    {
        let at = grow.random.bits() as usize % (params.len() - values + 1);
        params.insert(values + at, param(output.to_owned(), by));
    }
    let named = params.iter().enumerate().map(|(n, param)| (param.name.clone(), typing.param(n)));
    let named: Vec<(String, ValueType)> = named.collect();
    grow.names.extend(named.iter().map(|(name, of)| Name::new(name, *of)));
    let result = typing.result;
    let mut body = grow.block(result, depth);
    // The closure must read every parameter.
    for (name, of) in named {
        body.value = match of {
            ValueType::Float(float) if result == float.into() => {
                binary(Binary::Add, body.value, node(NodeKind::Name(name)))
            }
            of => grow.reading(body.value, result, name, of.ty()),
        };
    }
    Closure { scope, params, results: Vec::new(), body, others: Vec::new() }
}

#[derive(Clone)]
struct Name {
    name: String,
    ty: Type,
    /// True if the range of an integer is so wide that most arithmetic could exceed 64 bits.
    wide: bool,
}

impl Name {
    fn new(name: &str, of: ValueType) -> Self {
        let wide = matches!(of, ValueType::Int { least, most } if most - least > 1 << 32);
        Self { name: name.to_owned(), ty: of.ty(), wide }
    }
}

struct Grow<'t> {
    scope: &'static ExprScope,
    typing: &'t Typing,
    random: Random,
    names: Vec<Name>,
    next: u32,
}

fn node(kind: NodeKind) -> Node {
    Node { kind, at: NodeSpan::default() }
}

fn call(function: Function, operands: Vec<Node>) -> Node {
    node(NodeKind::Call(function, operands))
}

fn binary(op: Binary, a: Node, b: Node) -> Node {
    node(NodeKind::Binary(op, Box::new(a), Box::new(b), NodeSpan::default()))
}

impl Grow<'_> {
    fn float(&self) -> Type {
        self.typing.float.into()
    }

    fn zero(&self, ty: Type) -> Node {
        let conversion = match ty {
            ty if ty == self.float() => return node(NodeKind::Float(0)),
            Type::F32 => Function::ToF32,
            Type::F64 => Function::ToF64,
            Type::Int | Type::Bool => return node(NodeKind::Int(0)),
        };
        call(conversion, vec![node(NodeKind::Int(0))])
    }

    /// Returns an expression whose value is `value` or another one, depending on `name`.
    fn reading(&self, value: Node, ty: Type, name: String, of: Type) -> Node {
        let name = node(NodeKind::Name(name));
        let cond = match of {
            Type::Bool => name,
            of => binary(Binary::Ne, name, self.zero(of)),
        };
        let arm = |value| Box::new(Block { lets: Vec::new(), value });
        let other = match ty {
            Type::Bool => cond.clone(),
            ty => self.zero(ty),
        };
        node(NodeKind::If(Box::new(cond), arm(value), arm(other)))
    }

    fn block(&mut self, ty: Type, depth: u32) -> Block {
        let outer = self.names.len();
        let mut lets = Vec::new();
        if depth > 0 && self.random.chance(3) {
            for _ in 0..1 + self.random.bits() % 2 {
                let ty = self.random.pick(&[self.float(), self.float(), Type::Int, Type::Bool]);
                let value = self.tree(ty, depth - 1);
                let name = format!("t{}", self.next);
                self.next += 1;
                self.names.push(Name { name: name.clone(), ty, wide: false });
                lets.push(Let { name, value, at: NodeSpan::default() });
            }
        }
        let mut value = self.tree(ty, depth);
        // The block must read every definition.
        for name in self.names.split_off(outer) {
            value = self.reading(value, ty, name.name, name.ty);
        }
        Block { lets, value }
    }

    fn leaf(&mut self, ty: Type) -> Node {
        let mut names: Vec<Name> =
            self.names.iter().filter(|name| name.ty == ty).cloned().collect();
        if ty == Type::Int {
            let reserved = |(name, _): &(&str, _)| Name { name: name.to_string(), ty, wide: false };
            names.extend(self.scope.integers.iter().map(reserved));
        }
        if !names.is_empty() && !self.random.chance(3) {
            let Name { name, wide, .. } = self.random.pick(&names);
            let name = node(NodeKind::Name(name));
            if !wide {
                return name;
            }
            let most = || node(NodeKind::Int(1 << 20));
            let least = node(NodeKind::Unary(Unary::Neg, Box::new(most())));
            return call(Function::Clamp, vec![name, least, most()]);
        }
        match (ty, self.typing.float) {
            (Type::F32, Float::F32) => {
                // Mostly common numbers, but sometimes an arbitrary finite number.
                let usual = self.random.pick(&[0.0f32, 0.5, 1.0, 2.0, 0.044715, 1e-6, 3e38, 1e-40]);
                let any = self.random.bits() as u32 % 0x7f80_0000;
                let bits = if self.random.chance(4) { any } else { usual.to_bits() };
                node(NodeKind::Float(literal::of_f32(f32::from_bits(bits))))
            }
            (Type::F64, Float::F64) => {
                let usual = self.random.pick(&[0.0f64, 0.5, 1.0, 2.0, 0.1, 1e-6, 1e308, 1e-310]);
                let any = self.random.bits() % f64::INFINITY.to_bits();
                let bits = if self.random.chance(4) { any } else { usual.to_bits() };
                node(NodeKind::Float(bits))
            }
            (Type::F32, Float::F64) => call(Function::ToF32, vec![self.leaf(Type::F64)]),
            (Type::F64, Float::F32) => call(Function::ToF64, vec![self.leaf(Type::F32)]),
            (Type::Int, _) => {
                let value = self.random.pick(&[0, 1, 2, 7, 1000, 1 << 40]);
                node(NodeKind::Int(value))
            }
            (Type::Bool, _) => {
                let (a, b) = (self.leaf(self.float()), self.leaf(self.float()));
                binary(Binary::Lt, a, b)
            }
        }
    }

    fn tree(&mut self, ty: Type, depth: u32) -> Node {
        if depth == 0 {
            return self.leaf(ty);
        }
        let less = depth - 1;
        let kind = match (self.random.bits() % 8, ty) {
            (0, _) => {
                let cond = self.tree(Type::Bool, less);
                let (yes, no) = (self.block(ty, less), self.block(ty, less));
                NodeKind::If(Box::new(cond), Box::new(yes), Box::new(no))
            }
            (1, Type::Bool) => NodeKind::Unary(Unary::Not, Box::new(self.tree(ty, less))),
            (1, _) => NodeKind::Unary(Unary::Neg, Box::new(self.tree(ty, less))),
            (2 | 3, Type::Bool) => {
                let op = self.random.pick(&[Binary::And, Binary::Or]);
                return binary(op, self.tree(ty, less), self.tree(ty, less));
            }
            (4, Type::Bool) if self.scope.function("isnan").is_some() => {
                NodeKind::Call(Function::IsNan, vec![self.tree(self.float(), less)])
            }
            (_, Type::Bool) => {
                let ops = Binary::ALL.iter().filter(|op| op.is_comparison()).copied();
                let op = self.random.pick(&ops.collect::<Vec<_>>());
                let of = self.random.pick(&[self.float(), self.float(), Type::Int]);
                return binary(op, self.tree(of, less), self.tree(of, less));
            }
            (2..=4, _) => {
                let is_float = matches!(ty, Type::F32 | Type::F64);
                let fits = |f: &Function| match f.info().signature {
                    Signature::Number => true,
                    Signature::Predicate => ty == Type::Bool,
                    Signature::Float => is_float,
                    Signature::Single => ty == Type::F32,
                    Signature::Conversion => f.converts_to().is_some_and(|to| ty == to.into()),
                };
                let functions: Vec<Function> = self.scope.functions().filter(fits).collect();
                let function = self.random.pick(&functions);
                let of = match (function, function.info().signature) {
                    (_, Signature::Conversion) if self.scope.function("f64").is_none() => Type::Int,
                    (Function::ToF32, _) => self.random.pick(&[Type::Int, Type::F64]),
                    (Function::ToF64, _) => self.random.pick(&[Type::Int, Type::F32]),
                    _ => ty,
                };
                let operands = function.info().operands.len();
                NodeKind::Call(function, (0..operands).map(|_| self.tree(of, less)).collect())
            }
            _ => {
                use Binary::{Add, Div, Mul, Rem, Sub};
                let ops: &[Binary] = match ty {
                    Type::Int => &[Add, Sub, Mul, Div, Rem],
                    _ => &[Add, Sub, Mul, Div],
                };
                let op = self.random.pick(ops);
                let (a, mut b) = (self.tree(ty, less), self.tree(ty, less));
                if ty == Type::Int && matches!(op, Div | Rem) {
                    b = call(Function::Max, vec![b, node(NodeKind::Int(1))]);
                }
                return binary(op, a, b);
            }
        };
        node(kind)
    }
}
