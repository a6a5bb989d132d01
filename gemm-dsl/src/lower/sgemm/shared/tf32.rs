//! Numbers rounded to `tf32`.

use crate::ir::{Elem, Expr};
use crate::target::Format;
use crate::target::intrinsic::CANONICAL_NAN;

/// The bits of an `f32` that a number of `tf32` has not.
const DROPPED: u32 = (1 << Format::Tf32.unused_bits()) - 1;

/// Half of the last bit that it has.
pub(crate) const HALF: u32 = 1 << (Format::Tf32.unused_bits() - 1);

/// The bits of a number that is held by `tf32`, as far as they are looked at.
pub(crate) fn tf32_bits(word: Expr) -> Expr {
    word & Expr::U32(!DROPPED)
}

/// The word that stands for a number in `tf32`, which may be none.
pub(crate) fn to_tf32_or_nan(value: Expr) -> Expr {
    let is_nan = value.clone().differs(value.clone());
    is_nan.select(Expr::U32(CANONICAL_NAN), to_tf32(value))
}

/// A number rounded to `tf32`, ties away from zero: half of the last bit that is looked at is added to its magnitude.
/// What is behind that bit tensor cores leave out by themselves. It is for no NaN.
pub(crate) fn to_tf32(value: Expr) -> Expr {
    value.bitcast(Elem::U32) + Expr::U32(HALF)
}
