//! Literals of the types that are computed with.

use crate::ir::{Elem, Expr};

/// The zero of a type that is computed with.
pub(super) fn zero(elem: Elem) -> Expr {
    number(elem, 0)
}

/// A whole number as a literal of a type that is computed with.
pub(super) fn number(elem: Elem, value: u32) -> Expr {
    match elem {
        Elem::F32 => Expr::F32(value as f32),
        Elem::F64 => Expr::F64(value.into()),
        Elem::I32 => Expr::I32(value as i32),
        Elem::U32 => Expr::U32(value),
        Elem::I64 => Expr::I64(value.into()),
        Elem::U64 => Expr::U64(value.into()),
        other => unreachable!("nothing is computed in {other}"),
    }
}

/// The greatest value of a type of indices: no element has it.
pub(super) fn nowhere(index: Elem) -> Expr {
    if index == Elem::U64 { Expr::U64(u64::MAX) } else { Expr::U32(u32::MAX) }
}
