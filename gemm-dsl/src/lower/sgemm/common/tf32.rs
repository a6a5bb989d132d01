//! Rounding of `f32` values to `tf32`.

use crate::ir::{Elem, Expr};
use crate::target::Format;
use crate::target::intrinsic::CANONICAL_NAN;

/// Low mantissa bits of an `f32` that tensor cores ignore for `tf32`.
const DROPPED: u32 = (1 << Format::Tf32.unused_bits()) - 1;

/// Half of the last mantissa bit of `tf32`, as bits of an `f32`.
pub(crate) const HALF: u32 = 1 << (Format::Tf32.unused_bits() - 1);

/// Keeps only the bits of a word that tensor cores read for `tf32`.
pub(crate) fn tf32_bits(word: Expr) -> Expr {
    word & Expr::U32(!DROPPED)
}

/// Rounds a value to a `tf32` word. NaN becomes the canonical NaN.
pub(crate) fn to_tf32_or_nan(value: Expr) -> Expr {
    let is_nan = value.clone().differs(value.clone());
    is_nan.select(Expr::U32(CANONICAL_NAN), to_tf32(value))
}

/// Rounds a value to `tf32`, ties away from zero, by adding half of the last `tf32` bit to its
/// magnitude. Tensor cores ignore the lower bits. The value must not be NaN.
pub(crate) fn to_tf32(value: Expr) -> Expr {
    value.bitcast(Elem::U32) + Expr::U32(HALF)
}
