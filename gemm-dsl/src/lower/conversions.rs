//! Conversions between elements of arrays, values of expressions and results.

use crate::ir::{Elem, Expr, Ty};

pub(crate) fn elem_of(e: &Expr) -> Option<Elem> {
    match e.ty() {
        Ty::Scalar(elem) => Some(elem),
        _ => None,
    }
}

/// Converts an element to a type with arithmetic: its own type, or a type of 4 bytes.
pub(super) fn computed(element: Expr) -> Expr {
    match elem_of(&element) {
        Some(Elem::F16 | Elem::Bf16 | Elem::E4m3 | Elem::E5m2) => element.cast(Elem::F32),
        Some(Elem::I8) => element.cast(Elem::I32),
        Some(Elem::U8) => element.cast(Elem::I32).cast(Elem::U32),
        _ => element,
    }
}

/// Converts a number to the element type of an array. A boolean is 0 or 1.
pub(super) fn stored(value: Expr, elem: Elem) -> Expr {
    match (elem_of(&value), elem) {
        (Some(Elem::U32), Elem::U8) => value.cast(Elem::I32).cast(elem),
        _ => value.cast(elem),
    }
}

/// Converts a number to the type that it has in expressions, where integers have 64 bits.
pub(super) fn in_expression(value: Expr) -> Expr {
    let value = computed(value);
    if value.ty().is_integer() { value.cast(Elem::I64) } else { value }
}

/// Converts the value of an expression to a type with arithmetic; integers wrap.
pub(super) fn of_expression(value: Expr, to: Elem) -> Expr {
    if !value.ty().is_integer() || to == Elem::I64 {
        return value;
    }
    let bits = value.bitcast(Elem::U64);
    let low = |bits: Expr| bits & Expr::U64(u32::MAX.into());
    match to {
        Elem::U64 => bits,
        Elem::U32 => low(bits).cast(Elem::U32),
        Elem::I32 => low(bits).cast(Elem::U32).bitcast(Elem::I32),
        other => unreachable!("checked: no expression gives an integer for {other}"),
    }
}

/// Converts the value of an expression to the element type of an array; integers wrap.
pub(super) fn stored_expression(value: Expr, elem: Elem) -> Expr {
    let low = |value: Expr| (value.bitcast(Elem::U64) & Expr::U64(0xff)).cast(Elem::I32);
    match elem {
        Elem::U8 => low(value).cast(elem),
        // Flips the sign bit of the byte, and takes away its weight.
        Elem::I8 => (low(value).xor(0x80) - 0x80).cast(elem),
        elem if elem.computes() => of_expression(value, elem),
        elem => value.cast(elem),
    }
}
