//! Rounding of `f32` values to `tf32`.

use crate::ir::{Elem, Expr};
use crate::target::intrinsic::CANONICAL_NAN;

/// Masks the bits of a word that tensor cores read as `tf32`.
pub(crate) fn tf32_bits(word: Expr) -> Expr {
    word & Expr::U32(!0x1fff)
}

/// Rounds a value to a `tf32` word; NaN becomes the canonical NaN.
pub(crate) fn to_tf32_or_nan(value: Expr) -> Expr {
    let is_nan = value.clone().differs(value.clone());
    is_nan.select(Expr::U32(CANONICAL_NAN), to_tf32(value))
}

/// Rounds a value to `tf32`, ties away from zero, by adding half of the last significant bit to its
/// magnitude. Tensor cores ignore the lower bits. The value must not be NaN.
pub(crate) fn to_tf32(value: Expr) -> Expr {
    value.bitcast(Elem::U32) + Expr::U32(0x1000)
}
