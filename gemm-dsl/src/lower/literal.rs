//! Literals of the types with arithmetic.

use crate::ir::{Elem, Expr};

pub(super) fn zero(elem: Elem) -> Expr {
    number(elem, 0)
}

/// Zero of an element type: `zero`, which is +0 or -0, if the type has both.
pub(crate) fn zero_of(elem: Elem, zero: f32) -> Expr {
    match (elem.is_float(), elem.computes()) {
        (true, _) => Expr::F32(zero).cast(elem),
        (false, true) => number(elem, 0),
        (false, false) => Expr::I32(0).cast(elem),
    }
}

/// Integer literal of a type with arithmetic.
pub(super) fn number(elem: Elem, value: u32) -> Expr {
    match elem {
        Elem::F32 => Expr::F32(value as f32),
        Elem::F64 => Expr::F64(value.into()),
        Elem::I32 => Expr::I32(value as i32),
        Elem::U32 => Expr::U32(value),
        Elem::I64 => Expr::I64(value.into()),
        Elem::U64 => Expr::U64(value.into()),
        other => unreachable!("AccType, IndexType: no accumulator is a {other}"),
    }
}

/// Greatest value of an index type. No element has this index.
pub(super) fn nowhere(index: Elem) -> Expr {
    if index == Elem::U64 { Expr::U64(u64::MAX) } else { Expr::U32(u32::MAX) }
}
