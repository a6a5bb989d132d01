//! Random well-typed expressions over what a kernel declares.

use crate::c::{Environment, Value};
use gemm_dsl::ir::{
    Arith, BinaryOp, Cmp, Elem, Expr, Extent, Integer, Kernel, KernelBuilder, Logic, ParamKind,
    Special, Ty, UnaryOp,
};
use gemm_tests::random::Random;

/// How a coordinate is spelt.
pub fn coordinate(special: Special) -> &'static str {
    match special {
        Special::ThreadX => "threadIdx.x",
        Special::ThreadY => "threadIdx.y",
        Special::BlockX => "blockIdx.x",
        Special::BlockY => "blockIdx.y",
        Special::BlockZ => "blockIdx.z",
    }
}

/// Values of everything that has a name: numbers for the coordinates, M, N, and the length.
pub fn environment(kernel: &Kernel, numbers: [u64; 4]) -> Environment {
    let [thread, m, n, length] = numbers;
    use Special::{BlockX, BlockY, BlockZ, ThreadX, ThreadY};
    let coordinates = [ThreadX, ThreadY, BlockX, BlockY, BlockZ];
    let mut names: Environment = coordinates
        .into_iter()
        .map(|special| (coordinate(special).to_owned(), Value::U32(thread as u32)))
        .collect();
    for (param, value) in kernel.params.iter().zip([m, n, length]) {
        let wide = matches!(param.kind, ParamKind::Scalar { ty: Ty::U64, .. });
        let value = if wide { Value::U64(value) } else { Value::I32(value as i32) };
        names.insert(param.name.clone(), value);
    }
    for decl in &kernel.consts {
        if let Expr::I32(value) = decl.value {
            names.insert(decl.name.clone(), Value::I32(value));
        }
    }
    names.insert("x".to_owned(), Value::I32(77));
    names
}

/// A source of expressions.
pub struct Trees {
    ints: Vec<Expr>,
    wides: Vec<Expr>,
}

impl Trees {
    /// Declares parameters and constants.
    pub fn declare(k: &mut KernelBuilder) -> Self {
        let m = k.extent("M", Ty::I32, Extent::M).into();
        let n = k.extent("N", Ty::I32, Extent::N).into();
        let length = k.extent("length", Ty::U64, Extent::LENGTH).into();
        let (two, bm) = (k.constant("TWO", 2, "").into(), k.constant("BM", 128, "").into());
        let coordinates = [Special::ThreadX, Special::BlockY].map(Expr::from);
        let literals = [0, 1, 2, 7, 32, -1, -5].map(Expr::from);
        let ints = [m, n, two, bm].into_iter().chain(coordinates).chain(literals).collect();
        let wides = [length, Expr::U64(0), Expr::U64(3), Expr::U64(1 << 35)].into_iter().collect();
        Self { ints, wides }
    }

    /// An expression of the type that the seed picks, at most so deep.
    pub fn tree(&self, seed: u64, ty: Ty, depth: u32) -> Expr {
        self.grow(&mut Random::new(seed), ty, depth)
    }

    fn grow(&self, random: &mut Random, ty: Ty, depth: u32) -> Expr {
        if depth == 0 {
            return match ty {
                Ty::Bool => pick(random, &self.ints).lt(pick(random, &self.ints)),
                Ty::U64 => pick(random, &self.wides),
                _ => pick(random, &self.ints),
            };
        }
        let less = depth - 1;
        let sub = |random: &mut Random, ty| self.grow(random, ty, less);
        let kind = random.bits() % 10;
        match (kind, ty) {
            (0, _) => {
                let condition = sub(random, Ty::Bool);
                condition.select(sub(random, ty), sub(random, ty))
            }
            // The minimum, which has a spelling of its own.
            (1, Ty::I32 | Ty::U64) => {
                let (a, b) = (sub(random, ty), sub(random, ty));
                a.clone().lt(b.clone()).select(a, b)
            }
            (2, Ty::I32) => Expr::Unary(UnaryOp::Neg, Box::new(sub(random, ty))),
            (2, Ty::Bool) => Expr::Unary(UnaryOp::Not, Box::new(sub(random, ty))),
            (2 | 3, Ty::U64) => Expr::Cast(Elem::U64, Box::new(sub(random, Ty::I32))),
            (3, Ty::I32) => Expr::Cast(Elem::I32, Box::new(sub(random, Ty::U64))),
            (3..=5, Ty::Bool) => {
                let op = pick(random, &[BinaryOp::Logic(Logic::And), BinaryOp::Logic(Logic::Or)]);
                Expr::binary(op, sub(random, ty), sub(random, ty))
            }
            (_, Ty::Bool) => {
                use Cmp::{Eq, Ge, Gt, Le, Lt, Ne};
                let op = BinaryOp::Cmp(pick(random, &[Lt, Le, Gt, Ge, Eq, Ne]));
                let ty = pick(random, &[Ty::I32, Ty::U64]);
                Expr::binary(op, sub(random, ty), sub(random, ty))
            }
            _ => {
                use Arith::{Add, Div, Mul, Sub};
                use Integer::{And, Or, Rem, Shl, Shr, Xor};
                let arithmetic = [Add, Add, Sub, Sub, Mul, Mul, Div].map(BinaryOp::Arith);
                let bits = [Rem, Xor, And, Or, Shl, Shr].map(BinaryOp::Integer);
                let ops = [&arithmetic[..], &bits[..]].concat();
                let op = pick(random, &ops);
                // Widened by the builder where the other operand is wide.
                let other = if ty == Ty::U64 { pick(random, &[Ty::I32, Ty::U64]) } else { ty };
                let (a, b) = (sub(random, ty), sub(random, other));
                let swap =
                    random.bits().is_multiple_of(2) && !matches!(op, BinaryOp::Integer(Shl | Shr));
                if swap { Expr::binary(op, b, a) } else { Expr::binary(op, a, b) }
            }
        }
    }
}

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.bits() as usize % from.len()].clone()
}
