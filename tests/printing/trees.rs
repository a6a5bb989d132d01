//! Random well-typed expressions over the declarations of a kernel.

use crate::c::{Environment, Value};
use gemm_dsl::ir::{
    Arith, BinaryOp, Cmp, Expr, Extent, Integer, Intrinsic, Kernel, KernelBuilder, Logic,
    ParamKind, Special, Ty, UnaryOp,
};
use gemm_oracle::random::Random;

/// C spelling of a coordinate.
pub fn coordinate(special: Special) -> &'static str {
    match special {
        Special::ThreadX => "threadIdx.x",
        Special::ThreadY => "threadIdx.y",
        Special::BlockX => "blockIdx.x",
        Special::BlockY => "blockIdx.y",
        Special::BlockZ => "blockIdx.z",
        Special::ClusterRank => "cluster_rank()",
    }
}

/// Values of all names: integers for the coordinates, M, N and the length, and two floats.
pub fn environment(kernel: &Kernel, numbers: [u64; 4], floats: [f32; 2]) -> Environment {
    let [thread, m, n, length] = numbers;
    use Special::{BlockX, BlockY, BlockZ, ThreadX, ThreadY};
    let coordinates = [ThreadX, ThreadY, BlockX, BlockY, BlockZ];
    let mut names: Environment = coordinates
        .into_iter()
        .map(|special| (coordinate(special).to_owned(), Value::Coordinate(thread as u32)))
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
    let variables = [
        ("x", Value::I32(77)),
        ("tid", Value::Unsigned(thread as u32)),
        ("bits", Value::U32(floats[1].to_bits())),
        ("wide", Value::I64(m as i64 - (1 << 40))),
        ("f", Value::F32(floats[0].to_bits())),
        ("g", Value::F32(floats[1].to_bits())),
    ];
    names.extend(variables.map(|(name, value)| (name.to_owned(), value)));
    names
}

pub struct Trees {
    leaves: Vec<Expr>,
}

impl Trees {
    pub fn declare(b: &mut KernelBuilder) -> Self {
        let m = b.extent("M", Ty::I32, Extent::M).into();
        let n = b.extent("N", Ty::I32, Extent::N).into();
        let length = b.extent("length", Ty::U64, Extent::LENGTH).into();
        let tid = b.unsigned("tid", Special::ThreadX).into();
        let (two, bm) = (b.constant("TWO", 2, "").into(), b.constant("BM", 128, "").into());
        let bits = b.mut_("bits", Expr::U32(0)).into();
        let wide = b.mut_("wide", Expr::I64(0)).into();
        let (f, g) = (b.mut_("f", 0.0).into(), b.mut_("g", 0.0).into());
        let mut leaves = vec![m, n, tid, length, two, bm, bits, wide, f, g];
        leaves.extend([Special::ThreadX, Special::BlockY].map(Expr::from));
        leaves.extend([0, 1, 2, 7, 32, -1, -5].map(Expr::from));
        leaves.extend([0, 3, 1 << 35].map(Expr::U64));
        leaves.extend([0, 1, 23, 0x3f80_0000, u32::MAX].map(Expr::U32));
        leaves.extend([0, 2, -9, 1 << 40, i64::MIN].map(Expr::I64));
        leaves.extend([0.0, -0.0, 1.5, -2.0, 1e-40, 3e38, 0.1, 16_777_216.0].map(Expr::F32));
        leaves.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN].map(Expr::F32));
        Self { leaves }
    }

    /// Random expression of a type with a maximal depth.
    pub fn tree(&self, seed: u64, ty: Ty, depth: u32) -> Expr {
        self.grow(&mut Random::new(seed), ty, depth)
    }

    fn leaf(&self, random: &mut Random, ty: Ty) -> Expr {
        let leaves: Vec<&Expr> = self.leaves.iter().filter(|leaf| leaf.ty() == ty).collect();
        pick(random, &leaves).clone()
    }

    fn grow(&self, random: &mut Random, ty: Ty, depth: u32) -> Expr {
        if depth == 0 {
            return match ty {
                Ty::Bool => self.leaf(random, Ty::I32).lt(self.leaf(random, Ty::I32)),
                ty => self.leaf(random, ty),
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
            // The minimum of indices is printed differently.
            (1, Ty::Scalar(_)) => {
                let (a, b) = (sub(random, ty), sub(random, ty));
                a.clone().lt(b.clone()).select(a, b)
            }
            (2, Ty::Bool) => sub(random, ty).negated(),
            (3..=5, Ty::Bool) => {
                let op = pick(random, &[BinaryOp::Logic(Logic::And), BinaryOp::Logic(Logic::Or)]);
                Expr::binary(op, sub(random, ty), sub(random, ty))
            }
            (_, Ty::Bool) => {
                use Cmp::{Eq, Ge, Gt, Le, Lt, Ne};
                let op = BinaryOp::Cmp(pick(random, &[Lt, Le, Gt, Ge, Eq, Ne]));
                let ty = pick(random, &TYPES);
                Expr::binary(op, sub(random, ty), sub(random, ty))
            }
            (2, Ty::I32 | Ty::I64 | Ty::F32) => {
                Expr::Unary(UnaryOp::Neg, Box::new(sub(random, ty)))
            }
            (2 | 3, _) => converted(ty, random, sub),
            (4 | 5, Ty::F32) => {
                use Intrinsic::{Abs, Floor, Fma, Maximum, Minimum, RoundEven, Sqrt};
                let f = pick(random, &[Fma, Fma, Maximum, Minimum, Abs, Sqrt, Floor, RoundEven]);
                Expr::Call(f, (0..f.info().arity).map(|_| sub(random, ty)).collect())
            }
            _ => {
                use Arith::{Add, Div, Mul, Sub};
                use Integer::{And, Or, Rem, Shl, Shr, Xor};
                let arithmetic = [Add, Add, Sub, Sub, Mul, Mul, Div].map(BinaryOp::Arith);
                let bits = [Rem, Xor, And, Or, Shl, Shr].map(BinaryOp::Integer);
                let ops = if ty == Ty::F32 { &[][..] } else { &bits };
                let op = pick(random, &[&arithmetic[..], ops].concat());
                // The builder widens the operand if the other operand is wide.
                let other = if ty == Ty::U64 { pick(random, &[Ty::I32, Ty::U64]) } else { ty };
                let (a, b) = (sub(random, ty), sub(random, other));
                let swap =
                    random.bits().is_multiple_of(2) && !matches!(op, BinaryOp::Integer(Shl | Shr));
                if swap { Expr::binary(op, b, a) } else { Expr::binary(op, a, b) }
            }
        }
    }
}

/// Types of numeric expressions in the language.
const TYPES: [Ty; 5] = [Ty::I32, Ty::U32, Ty::I64, Ty::U64, Ty::F32];

/// Number of another type converted to this one, by value or by bits.
fn converted(ty: Ty, random: &mut Random, sub: impl Fn(&mut Random, Ty) -> Expr) -> Expr {
    let Ty::Scalar(elem) = ty else { unreachable!("a boolean is not a number") };
    let (casts, bitcasts): (&[Ty], &[Ty]) = match ty {
        Ty::I32 => (&[Ty::U64, Ty::I64], &[Ty::U32, Ty::F32]),
        Ty::U32 => (&[], &[Ty::I32, Ty::F32]),
        Ty::I64 => (&[Ty::I32, Ty::U64], &[]),
        Ty::U64 => (&[Ty::I32, Ty::U32], &[]),
        _ => (&[Ty::I32, Ty::I64], &[Ty::I32, Ty::U32]),
    };
    let all: Vec<(bool, Ty)> =
        casts.iter().map(|ty| (true, *ty)).chain(bitcasts.iter().map(|ty| (false, *ty))).collect();
    let (cast, from) = pick(random, &all);
    let e = sub(random, from);
    if cast { e.cast(elem) } else { e.bitcast(elem) }
}

fn pick<T: Clone>(random: &mut Random, from: &[T]) -> T {
    from[random.bits() as usize % from.len()].clone()
}
