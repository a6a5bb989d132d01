//! Flat code against the definition of values on the host.

use super::*;
use crate::ir::{Arith, Cmp, Const, Integer, Scalar};
use proptest::prelude::*;
use std::collections::HashSet;

const NUMBERS: [Ty; 4] = [Ty::I32, Ty::U32, Ty::I64, Ty::U64];

/// Constants that expressions may name, the last one negative.
fn consts() -> Vec<ConstDecl> {
    let decl = |name: &str, ty, value| {
        let meaning = String::new();
        ConstDecl { name: name.to_owned(), ty, value, meaning }
    };
    let first = Expr::Const(Const { id: 0, ty: Ty::I32 });
    vec![
        decl("TILE", Ty::I32, Expr::I32(128)),
        decl("WIDE", Ty::U64, Expr::Cast(Elem::U64, Box::new(first))),
        decl("BELOW", Ty::I32, Expr::I32(-7)),
    ]
}

/// Builder of an expression from a tape of random numbers.
struct Tape<'t>(&'t [u32]);

impl Tape<'_> {
    fn next(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first as usize % below
    }

    /// Leaf of a type. Scalars 0 to 3 are of the types of [`NUMBERS`], scalar 4 is an `f32`.
    fn leaf(&mut self, ty: Ty) -> Expr {
        let edge = [0, 1, 2, 7, 31, 64, u64::from(u32::MAX), 1 << 31, u64::MAX];
        let number = edge[self.next(edge.len())];
        let scalar = NUMBERS.iter().position(|of| *of == ty);
        match (ty, self.next(3)) {
            (Ty::Bool, _) => Expr::U64(number).lt(Expr::Param(Scalar { param: 3, ty: Ty::U64 })),
            (ty, 0) => Expr::Param(Scalar { param: scalar.expect("a number"), ty }),
            (Ty::I32, 1) => Expr::Const(Const { id: self.next(2) * 2, ty }),
            (Ty::U64, 1) => Expr::Const(Const { id: 1, ty }),
            (Ty::U32, 1) => {
                let float = Expr::Param(Scalar { param: 4, ty: Ty::F32 });
                Expr::Bitcast(Elem::U32, Box::new(float))
            }
            (Ty::I32, _) => Expr::I32(number as i32),
            (Ty::U32, _) => Expr::U32(number as u32),
            (Ty::I64, _) => Expr::I64(number as i64),
            (_, _) => Expr::U64(number),
        }
    }

    fn expr(&mut self, ty: Ty, depth: u32) -> Expr {
        if depth == 0 || self.0.is_empty() {
            return self.leaf(ty);
        }
        let of = NUMBERS[self.next(NUMBERS.len())];
        let go = |this: &mut Self, ty| Box::new(this.expr(ty, depth - 1));
        match (ty, self.next(6)) {
            (_, 0) => Expr::Select(go(self, Ty::Bool), go(self, ty), go(self, ty)),
            (Ty::Bool, 1) => Expr::Unary(UnaryOp::Not, go(self, Ty::Bool)),
            (Ty::Bool, 2 | 3) => {
                let op = BinaryOp::Logic([Logic::And, Logic::Or][self.next(2)]);
                Expr::Binary(op, go(self, Ty::Bool), go(self, Ty::Bool))
            }
            (Ty::Bool, _) => {
                let all = [Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Eq, Cmp::Ne];
                let op = BinaryOp::Cmp(all[self.next(all.len())]);
                Expr::Binary(op, go(self, of), go(self, of))
            }
            (Ty::I32 | Ty::I64, 1) => Expr::Unary(UnaryOp::Neg, go(self, ty)),
            (Ty::Scalar(to), 2) => Expr::Cast(to, go(self, of)),
            (ty, 3) => {
                use Integer::{And, Or, Rem, Shl, Shr, Xor};
                let all = [Rem, And, Or, Xor, Shl, Shr];
                let op = BinaryOp::Integer(all[self.next(all.len())]);
                Expr::Binary(op, go(self, ty), go(self, ty))
            }
            (ty, _) => {
                let all = [Arith::Add, Arith::Sub, Arith::Mul, Arith::Div];
                let op = BinaryOp::Arith(all[self.next(all.len())]);
                Expr::Binary(op, go(self, ty), go(self, ty))
            }
        }
    }
}

proptest! {
    /// Values and errors are those of the definition. An operand that is not needed is not
    /// evaluated, so its error is none.
    #[test]
    fn code_has_the_value_of_its_expression(
        tape in prop::collection::vec(any::<u32>(), 1..120),
        of in 0..5_usize,
        small in any::<[u8; 5]>(),
        bits in any::<[u64; 5]>(),
        is_small in any::<bool>(),
    ) {
        let scalars = if is_small { small.map(u64::from) } else { bits };
        let ty = [Ty::Bool, Ty::I32, Ty::U32, Ty::I64, Ty::U64][of];
        let (expr, consts) = (Tape(&tape).expr(ty, 6), consts());
        let code = HostExpr::new(&expr, &consts).expect("an expression of the host");
        let expected = eval(&expr, &consts, &scalars.map(Some));
        prop_assert_eq!(code.value(&scalars), expected, "{:?}", code);
    }
}

/// The generator reaches every operation, and both outcomes.
#[test]
fn every_operation_is_drawn() {
    let (mut seen, mut outcomes) = (HashSet::new(), HashSet::new());
    for seed in 0..2000_u32 {
        let tape: Vec<u32> =
            (0..100).map(|n| (seed * 101 + n).wrapping_mul(0x9e37_79b9) >> 7).collect();
        let code = HostExpr::new(&Tape(&tape).expr(Ty::U64, 6), &consts()).expect("of the host");
        outcomes.insert(code.value(&[1, 2, 3, 4, 5]).is_ok());
        if let HostExpr::Code(code) = &code {
            seen.extend(code.iter().map(std::mem::discriminant));
        }
    }
    assert_eq!((seen.len(), outcomes.len()), (8, 2));
}

#[test]
fn a_scalar_that_is_not_given_is_an_error() {
    let scalar = |ty| Expr::Param(Scalar { param: 2, ty });
    for expr in [scalar(Ty::U64), scalar(Ty::I32), scalar(Ty::U64) + 1u64] {
        let code = HostExpr::new(&expr, &[]).expect("an expression of the host");
        assert_eq!(code.value(&[1, 2]), Err(HostError::Unbound(2)));
    }
}

#[test]
fn an_expression_can_be_long_and_deep() {
    let scalar = || Expr::Param(Scalar { param: 0, ty: Ty::U64 });
    let deep = (0..100).fold(scalar(), |inner, _| scalar() + inner);
    let long = (0..100).fold(scalar(), |sum, _| sum + scalar());
    for expr in [deep, long] {
        assert_eq!(HostExpr::new(&expr, &[]).map(|code| code.value(&[3])), Ok(Ok(303)));
    }
}
