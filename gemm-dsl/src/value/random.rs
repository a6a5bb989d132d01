//! Random sound expressions, for tests.

use super::check::check;
use super::{
    Binary, Block, Closure, Environment, Function, Let, Node, NodeKind, Param, Signature, Tokens,
    Type, Unary,
};

/// SplitMix64, by G. Steele, D. Lea and C. Flood.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
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

/// A closure that the seed picks, about so deep: of the fewest values that the environment allows,
/// and of its integers. It gives an `f32`, and reads every name that it defines.
pub fn closure(env: &'static Environment, seed: u64, depth: u32) -> Closure {
    sound(env, seed, depth, 0)
}

/// As [`closure`], of up to so many operands besides.
pub fn with_operands(env: &'static Environment, seed: u64, depth: u32, most: u64) -> Closure {
    sound(env, seed, depth, most)
}

fn sound(env: &'static Environment, seed: u64, depth: u32, operands: u64) -> Closure {
    let mut seeds = Random(seed);
    // Some have integers that could leave 64 bits.
    loop {
        let closure = grown(env, seeds.bits(), depth, operands);
        if check(env, &closure.params, &closure.body).is_empty() {
            return closure;
        }
    }
}

fn param(name: String, index: &[&str]) -> Param {
    let index = index.iter().map(ToString::to_string).collect();
    Param { name, index, at: Tokens::default() }
}

fn grown(env: &'static Environment, seed: u64, depth: u32, operands: u64) -> Closure {
    let mut grow = Grow { env, random: Random(seed), names: Vec::new(), next: 0 };
    let mut params: Vec<Param> = (0..env.values.0).map(|i| param(format!("x{i}"), &[])).collect();
    for i in 0..grow.random.bits() % (operands + 1) {
        // Some are called as something in the text is, or as no variable may be.
        let name = grow.random.pick(&["y", "row_", "Bias", "tid", "own_y", "float"]);
        let index = grow.random.pick(env.operands);
        params.push(param(format!("{name}{i}"), index));
    }
    if let Some((output, by)) = env.output.filter(|_| operands > 0 && grow.random.chance(4)) {
        let at = grow.random.bits() as usize % (params.len() - env.values.0 + 1);
        params.insert(env.values.0 + at, param(output.to_owned(), by));
    }
    let names = || params.iter().map(|param| param.name.clone());
    grow.names.extend(names().map(|name| (name, Type::F32)));
    let mut body = grow.block(Type::F32, depth);
    // Whatever else the body reads, it reads these.
    for name in names() {
        let value = std::mem::replace(&mut body.value, grow.node(NodeKind::Name(name)));
        body.value = binary(Binary::Add, body.value, value);
    }
    Closure { env, params, body }
}

struct Grow {
    env: &'static Environment,
    random: Random,
    names: Vec<(String, Type)>,
    next: u32,
}

fn binary(op: Binary, a: Node, b: Node) -> Node {
    let at = Tokens::default();
    Node { kind: NodeKind::Binary(op, Box::new(a), Box::new(b), at), at }
}

impl Grow {
    fn node(&self, kind: NodeKind) -> Node {
        Node { kind, at: Tokens::default() }
    }

    fn block(&mut self, ty: Type, depth: u32) -> Block {
        let outer = self.names.len();
        let mut lets = Vec::new();
        if depth > 0 && self.random.chance(3) {
            for _ in 0..1 + self.random.bits() % 2 {
                let of = self.random.pick(&[Type::F32, Type::F32, Type::Int, Type::Bool]);
                let value = self.tree(of, depth - 1);
                let name = format!("t{}", self.next);
                self.next += 1;
                self.names.push((name.clone(), of));
                lets.push(Let { name, value, at: Tokens::default() });
            }
        }
        let mut value = self.tree(ty, depth);
        // Everything that is defined is read.
        for (name, of) in self.names.split_off(outer) {
            let name = self.node(NodeKind::Name(name));
            let zero = |ty| match ty {
                Type::F32 => NodeKind::Float(0),
                _ => NodeKind::Int(0),
            };
            let cond = match of {
                Type::Bool => name,
                of => binary(Binary::Ne, name, self.node(zero(of))),
            };
            let arm = |value| Box::new(Block { lets: Vec::new(), value });
            let other = match ty {
                Type::Bool => cond.clone(),
                ty => self.node(zero(ty)),
            };
            value = self.node(NodeKind::If(Box::new(cond), arm(value), arm(other)));
        }
        Block { lets, value }
    }

    fn leaf(&mut self, ty: Type) -> Node {
        let known = self.names.iter().filter(|(_, of)| *of == ty).map(|(name, _)| name.clone());
        let mut names: Vec<String> = known.collect();
        if ty == Type::Int {
            names.extend(self.env.integers.iter().map(ToString::to_string));
        }
        if !names.is_empty() && !self.random.chance(3) {
            let name = self.random.pick(&names);
            return self.node(NodeKind::Name(name));
        }
        match ty {
            Type::F32 => {
                // Mostly what people write, sometimes any finite number.
                let usual = self.random.pick(&[0.0f32, 0.5, 1.0, 2.0, 0.044715, 1e-6, 3e38, 1e-40]);
                let any = self.random.bits() as u32 % 0x7f80_0000;
                let bits = if self.random.chance(4) { any } else { usual.to_bits() };
                self.node(NodeKind::Float(bits))
            }
            Type::Int => {
                let value = self.random.pick(&[0, 1, 2, 7, 1000, 1 << 40]);
                self.node(NodeKind::Int(value))
            }
            Type::Bool => {
                let (a, b) = (self.leaf(Type::F32), self.leaf(Type::F32));
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
            (_, Type::Bool) => {
                let ops = Binary::ALL.iter().filter(|op| op.is_comparison()).copied();
                let op = self.random.pick(&ops.collect::<Vec<_>>());
                let of = self.random.pick(&[Type::F32, Type::F32, Type::Int]);
                return binary(op, self.tree(of, less), self.tree(of, less));
            }
            (2..=4, _) => {
                let fits = |f: &&Function| match f.row().signature {
                    Signature::Number => true,
                    _ => ty == Type::F32,
                };
                let functions: Vec<Function> = Function::ALL.iter().filter(fits).copied().collect();
                let function = self.random.pick(&functions);
                let of = match function.row().signature {
                    Signature::Conversion => Type::Int,
                    _ => ty,
                };
                let operands = function.row().operands.len();
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
                    let one = self.node(NodeKind::Int(1));
                    b = self.node(NodeKind::Call(Function::Max, vec![b, one]));
                }
                return binary(op, a, b);
            }
        };
        self.node(kind)
    }
}
