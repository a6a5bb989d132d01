//! Operators on single values.

use crate::error::FaultKind;
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Integer};

pub(crate) fn compare_one<T: PartialOrd>(op: Cmp, a: T, b: T) -> bool {
    match op {
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
    }
}

/// Defines an operator on two integers. The given methods determine if overflow is an error or
/// wraps. A shift by at least the width is an error, and so is a right shift of a negative value.
macro_rules! operator_on_one {
    ($(#[$doc:meta])* $name:ident, $ty:ty, $add:ident, $sub:ident, $mul:ident, $shl:expr) => {
        $(#[$doc])*
        #[allow(unused_comparisons, reason = "one macro for signed and unsigned types")]
        pub(crate) fn $name(op: BinaryOp, a: $ty, b: $ty) -> Result<$ty, FaultKind> {
            let some = |v: $ty| -> Option<$ty> { Some(v) };
            let shift = u32::try_from(b).ok().filter(|b| *b < <$ty>::BITS);
            let value = match op {
                BinaryOp::Arith(Arith::Add) => a.$add(b).into(),
                BinaryOp::Arith(Arith::Sub) => a.$sub(b).into(),
                BinaryOp::Arith(Arith::Mul) => a.$mul(b).into(),
                BinaryOp::Arith(Arith::Div) | BinaryOp::Integer(Integer::Rem) if b == 0 => {
                    return Err(FaultKind::DivisionByZero);
                }
                BinaryOp::Arith(Arith::Div) => a.checked_div(b),
                BinaryOp::Integer(Integer::Rem) => a.checked_rem(b),
                BinaryOp::Integer(Integer::Xor) => some(a ^ b),
                BinaryOp::Integer(Integer::And) => some(a & b),
                BinaryOp::Integer(Integer::Or) => some(a | b),
                BinaryOp::Integer(Integer::Shl) => {
                    let shl: fn($ty, u32) -> Option<$ty> = $shl;
                    shift.and_then(|b| shl(a, b))
                }
                BinaryOp::Integer(Integer::Shr) => shift.filter(|_| a >= 0).map(|b| a >> b),
                BinaryOp::Cmp(_) | BinaryOp::Logic(_) => {
                    unreachable!("lowered as a boolean")
                }
            };
            value.ok_or_else(|| FaultKind::Overflow { op, operands: [a.into(), b.into()] })
        }
    };
}

operator_on_one! {
    /// Operator on two `I32`. Overflow is an error.
    int_one, i32, checked_add, checked_sub, checked_mul,
    |a, b| i32::try_from(i64::from(a) << b).ok()
}
operator_on_one! {
    /// Operator on two `I64`. Overflow is an error.
    long_one, i64, checked_add, checked_sub, checked_mul,
    |a, b| i64::try_from(i128::from(a) << b).ok()
}
operator_on_one! {
    /// Operator on two `U32`. `+`, `-`, `*` and `<<` wrap.
    unsigned_one, u32, wrapping_add, wrapping_sub, wrapping_mul, |a, b| Some(a << b)
}
operator_on_one! {
    /// Operator on two `U64`. `+`, `-`, `*` and `<<` wrap.
    wide_one, u64, wrapping_add, wrapping_sub, wrapping_mul, |a, b| Some(a << b)
}
