//! Random expressions whose leaves may be values of any kind.

use super::super::model::Random;
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Elem, Expr, Integer, Intrinsic, Logic, UnaryOp};

/// Expression whose leaves are still plain numbers.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Number(Elem, u64),
    Unary(UnaryOp, Box<Tree>),
    Binary(BinaryOp, Box<[Tree; 2]>),
    Cast(Elem, Box<Tree>),
    Bitcast(Elem, Box<Tree>),
    /// Condition first, then the two values.
    Select(Box<[Tree; 3]>),
    Call(Intrinsic, Vec<Tree>),
}

const ARITH: [Arith; 4] = [Arith::Add, Arith::Sub, Arith::Mul, Arith::Div];
const INTEGER: [Integer; 6] =
    [Integer::Rem, Integer::And, Integer::Or, Integer::Xor, Integer::Shl, Integer::Shr];
const CMP: [Cmp; 6] = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];

/// Types that support arithmetic.
fn computing() -> Vec<Elem> {
    Elem::ALL.into_iter().filter(|elem| elem.computes()).collect()
}

/// Random number of a type: small, at the limits of the type, or arbitrary.
pub(super) fn number(elem: Elem, random: &mut Random) -> u64 {
    let width = 8 * elem.size();
    let mask = u64::MAX >> (64 - width);
    let any = random.next() & mask;
    let bits = match elem {
        Elem::F64 => random.of(&[0.0, -0.0, 1.5, -2.0, 3e9, 1e-310, f64::INFINITY]).to_bits(),
        Elem::F32 | Elem::Tf32 => {
            random.of(&[0.0, -0.0f32, 1.5, -2.0, 3e9, 1e-40, f32::INFINITY]).to_bits().into()
        }
        Elem::F16 | Elem::Bf16 => random.of(&[0, 0x8000, 0x3c00, 0xbf80, 0x7c00, 0x7f81]),
        _ => match random.below(8) {
            0 => mask,
            1 => 1 << (width - 1),
            2 => mask >> 1,
            small => small as u64 - 3,
        },
    };
    let bits = if random.percent(25) { any } else { bits };
    if elem == Elem::Tf32 { bits & 0xffff_e000 } else { bits }
}

impl Tree {
    fn number(elem: Elem, random: &mut Random) -> Self {
        Tree::Number(elem, number(elem, random))
    }

    fn pair(random: &mut Random, mut grow: impl FnMut(&mut Random) -> Tree) -> Box<[Tree; 2]> {
        Box::new([grow(random), grow(random)])
    }

    /// Random expression of any type, including types that are only stored.
    pub(super) fn grow(elem: Elem, depth: usize, random: &mut Random) -> Self {
        let Some(below) = depth.checked_sub(1) else {
            return Self::number(elem, random);
        };
        match random.below(if elem.computes() { 6 } else { 2 }) {
            0 => {
                let from: Vec<Elem> =
                    Elem::ALL.into_iter().filter(|e| e.converts_to(elem)).collect();
                Tree::Cast(elem, Box::new(Self::grow(random.of(&from), below, random)))
            }
            1 => {
                let same = |e: &Elem| e.size() == elem.size();
                let from: Vec<Elem> = Elem::ALL.into_iter().filter(same).collect();
                Tree::Bitcast(elem, Box::new(Self::grow(random.of(&from), below, random)))
            }
            2 => {
                let [yes, no] = *Self::pair(random, |r| Self::grow(elem, below, r));
                Tree::Select(Box::new([Self::truth(below, random), yes, no]))
            }
            3 if elem.is_float() => {
                use Intrinsic::{Abs, Ceil, Floor, Fma, Maximum, Minimum, RoundEven, Sqrt, Trunc};
                let f =
                    random.of(&[Fma, Maximum, Minimum, Abs, Sqrt, Floor, Ceil, Trunc, RoundEven]);
                let operands = (0..f.info().arity).map(|_| Self::grow(elem, below, random));
                Tree::Call(f, operands.collect())
            }
            _ => Self::operator(elem, random, |r| Self::grow(elem, below, r)),
        }
    }

    /// Random expression of arithmetic operators on one type.
    pub(super) fn arithmetic(elem: Elem, depth: usize, random: &mut Random) -> Self {
        match depth.checked_sub(1) {
            None => Self::number(elem, random),
            Some(below) => Self::operator(elem, random, |r| Self::arithmetic(elem, below, r)),
        }
    }

    fn operator(
        elem: Elem,
        random: &mut Random,
        mut grow: impl FnMut(&mut Random) -> Tree,
    ) -> Self {
        let signed = elem.is_float() || elem.is_signed();
        match random.below(3) {
            0 if signed => Tree::Unary(UnaryOp::Neg, Box::new(grow(random))),
            1 if elem.is_integer() => {
                let op = BinaryOp::Integer(random.of(&INTEGER));
                Tree::Binary(op, Self::pair(random, grow))
            }
            _ => Tree::Binary(BinaryOp::Arith(random.of(&ARITH)), Self::pair(random, grow)),
        }
    }

    /// Random boolean expression.
    fn truth(depth: usize, random: &mut Random) -> Self {
        let below = depth.saturating_sub(1);
        match random.below(if depth == 0 { 3 } else { 6 }) {
            3 => Tree::Unary(UnaryOp::Not, Box::new(Self::truth(below, random))),
            4 => {
                let op = BinaryOp::Logic(random.of(&[Logic::And, Logic::Or]));
                Tree::Binary(op, Self::pair(random, |r| Self::truth(below, r)))
            }
            5 => {
                let [yes, no] = *Self::pair(random, |r| Self::truth(below, r));
                Tree::Select(Box::new([Self::truth(below, random), yes, no]))
            }
            _ => {
                let elem = random.of(&computing());
                let op = BinaryOp::Cmp(random.of(&CMP));
                Tree::Binary(op, Self::pair(random, |r| Self::grow(elem, below, r)))
            }
        }
    }

    /// Builds the expression, with each number given by `leaf`.
    pub(super) fn expr(&self, leaf: &mut dyn FnMut(Elem, u64) -> Expr) -> Expr {
        match self {
            Tree::Number(elem, bits) => leaf(*elem, *bits),
            Tree::Unary(op, e) => Expr::Unary(*op, Box::new(e.expr(leaf))),
            Tree::Binary(op, pair) => {
                let [a, b] = pair.each_ref().map(|e| Box::new(e.expr(leaf)));
                Expr::Binary(*op, a, b)
            }
            Tree::Cast(to, e) => Expr::Cast(*to, Box::new(e.expr(leaf))),
            Tree::Bitcast(to, e) => Expr::Bitcast(*to, Box::new(e.expr(leaf))),
            Tree::Select(parts) => {
                let [cond, yes, no] = parts.each_ref().map(|e| Box::new(e.expr(leaf)));
                Expr::Select(cond, yes, no)
            }
            Tree::Call(f, operands) => {
                Expr::Call(*f, operands.iter().map(|e| e.expr(leaf)).collect())
            }
        }
    }
}
