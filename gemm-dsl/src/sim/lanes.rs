//! Values of a warp, one per lane, and the arithmetic on them.
//!
//! Operations compute all 32 lanes, active or not: what an inactive lane holds is never looked at.

use super::error::FaultKind;
use crate::intrinsic::canonical;
use crate::ir::BinaryOp;
use pulp::Arch;

/// Lanes of a warp.
pub(super) const WARP: usize = 32;
/// All lanes.
pub(super) const ALL: u32 = u32::MAX;

/// One 32-bit value per lane: an `I32`, or the bits of an `F32`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(super) struct Lanes(pub [u32; WARP]);

/// One 64-bit value per lane.
pub(super) type WideLanes = [u64; WARP];

impl Lanes {
    pub(super) const ZERO: Lanes = Lanes([0; WARP]);

    #[inline]
    pub(super) fn splat(value: u32) -> Self {
        Self([value; WARP])
    }

    /// The values as integers.
    #[inline]
    pub(super) fn i32s(&self) -> [i32; WARP] {
        self.0.map(|v| v as i32)
    }
}

/// What an integer operation cannot compute: the lane and why.
pub(super) struct Arithmetic {
    pub(super) lane: u32,
    pub(super) kind: FaultKind,
}

/// The active lanes, lowest first.
#[inline]
pub(super) fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (lane < 32).then_some(lane as usize)
    })
}

/// The lanes for which the predicate holds.
#[inline(always)]
pub(super) fn mask_where(holds: impl Fn(usize) -> bool) -> u32 {
    let mut mask = 0;
    for lane in 0..WARP {
        mask |= u32::from(holds(lane)) << lane;
    }
    mask
}

/// Copies the active lanes.
#[inline]
pub(super) fn blend<T: Copy>(target: &mut [T; WARP], value: &[T; WARP], mask: u32) {
    if mask == ALL {
        *target = *value;
    } else {
        for lane in 0..WARP {
            if mask >> lane & 1 == 1 {
                target[lane] = value[lane];
            }
        }
    }
}

/// `a * b + c`, rounded once, by the machine's own instruction where it has one.
#[inline]
pub(super) fn fma(arch: Arch, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    // The result is a local of the closure: the compiler then knows that it overlaps no operand.
    arch.dispatch(
        #[inline(always)]
        || {
            let (a, b, c) = (&a.0, &b.0, &c.0);
            let mut out = Lanes::ZERO;
            for lane in 0..WARP {
                let [a, b, c] = [a[lane], b[lane], c[lane]].map(f32::from_bits);
                out.0[lane] = canonical(a.mul_add(b, c)).to_bits();
            }
            out
        },
    )
}

/// An arithmetic operator on `F32`; the other operators do not apply to it.
#[inline]
pub(super) fn float(op: BinaryOp, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    match op {
        BinaryOp::Add => each_float(a, b, out, |a, b| a + b),
        BinaryOp::Sub => each_float(a, b, out, |a, b| a - b),
        BinaryOp::Mul => each_float(a, b, out, |a, b| a * b),
        _ => each_float(a, b, out, |a, b| a / b),
    }
}

#[inline(always)]
fn each_float(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(f32, f32) -> f32) {
    for lane in 0..WARP {
        let value = f(f32::from_bits(a.0[lane]), f32::from_bits(b.0[lane]));
        out.0[lane] = canonical(value).to_bits();
    }
}

/// A comparison, as the mask of the lanes where it holds.
#[inline]
pub(super) fn compare<T: PartialOrd + Copy>(op: BinaryOp, a: &[T; WARP], b: &[T; WARP]) -> u32 {
    match op {
        BinaryOp::Lt => mask_where(|l| a[l] < b[l]),
        BinaryOp::Le => mask_where(|l| a[l] <= b[l]),
        BinaryOp::Gt => mask_where(|l| a[l] > b[l]),
        BinaryOp::Ge => mask_where(|l| a[l] >= b[l]),
        BinaryOp::Ne => mask_where(|l| a[l] != b[l]),
        _ => mask_where(|l| a[l] == b[l]),
    }
}

/// A comparison of two values.
pub(super) fn compare_scalar<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> bool {
    match op {
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        BinaryOp::Ne => a != b,
        _ => a == b,
    }
}

/// An operator on `I32` in the active lanes.
#[inline]
pub(super) fn int(
    op: BinaryOp,
    a: &Lanes,
    b: &Lanes,
    mask: u32,
    out: &mut Lanes,
) -> Result<(), Arithmetic> {
    // The sign bit of `wrong` says that some lane overflowed, perhaps an inactive one.
    let mut wrong = 0u32;
    match op {
        BinaryOp::Add => {
            for l in 0..WARP {
                let (x, y) = (a.0[l], b.0[l]);
                let sum = x.wrapping_add(y);
                wrong |= (x ^ sum) & (y ^ sum);
                out.0[l] = sum;
            }
        }
        BinaryOp::Sub => {
            for l in 0..WARP {
                let (x, y) = (a.0[l], b.0[l]);
                let difference = x.wrapping_sub(y);
                wrong |= (x ^ y) & (x ^ difference);
                out.0[l] = difference;
            }
        }
        BinaryOp::Mul => {
            for l in 0..WARP {
                let product = i64::from(a.0[l] as i32) * i64::from(b.0[l] as i32);
                wrong |= u32::from(product != i64::from(product as i32)) << 31;
                out.0[l] = product as u32;
            }
        }
        BinaryOp::Xor => (0..WARP).for_each(|l| out.0[l] = a.0[l] ^ b.0[l]),
        BinaryOp::BitAnd => (0..WARP).for_each(|l| out.0[l] = a.0[l] & b.0[l]),
        _ => wrong = 1 << 31,
    }
    if wrong >> 31 == 1 {
        for l in lanes_of(mask) {
            let value = int_scalar(op, a.0[l] as i32, b.0[l] as i32);
            out.0[l] = value.map_err(|kind| Arithmetic { lane: l as u32, kind })? as u32;
        }
    }
    Ok(())
}

/// An operator on `U64` in the active lanes.
#[inline]
pub(super) fn wide(
    op: BinaryOp,
    a: &WideLanes,
    b: &WideLanes,
    mask: u32,
    out: &mut WideLanes,
) -> Result<(), Arithmetic> {
    match op {
        BinaryOp::Add => (0..WARP).for_each(|l| out[l] = a[l].wrapping_add(b[l])),
        BinaryOp::Sub => (0..WARP).for_each(|l| out[l] = a[l].wrapping_sub(b[l])),
        BinaryOp::Mul => (0..WARP).for_each(|l| out[l] = a[l].wrapping_mul(b[l])),
        _ => {
            for l in lanes_of(mask) {
                out[l] = wide_scalar(op, a[l], b[l])
                    .map_err(|kind| Arithmetic { lane: l as u32, kind })?;
            }
        }
    }
    Ok(())
}

/// An operator on two `I32`. A result that does not fit is an error, as is a shift by a negative
/// amount or by the width or more, and a shift of a negative value to the right.
pub(super) fn int_scalar(op: BinaryOp, a: i32, b: i32) -> Result<i32, FaultKind> {
    let value = match op {
        BinaryOp::Add => a.checked_add(b),
        BinaryOp::Sub => a.checked_sub(b),
        BinaryOp::Mul => a.checked_mul(b),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Err(FaultKind::DivisionByZero),
        BinaryOp::Div => a.checked_div(b),
        BinaryOp::Rem => a.checked_rem(b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::Shl if (0..32).contains(&b) => i32::try_from(i64::from(a) << b).ok(),
        BinaryOp::Shr if (0..32).contains(&b) && a >= 0 => Some(a >> b),
        _ => None,
    };
    value.ok_or(FaultKind::Overflow { op, operands: [a.into(), b.into()] })
}

/// An operator on two `U64`. Sums, differences, products and shifts to the left wrap.
pub(super) fn wide_scalar(op: BinaryOp, a: u64, b: u64) -> Result<u64, FaultKind> {
    let value = match op {
        BinaryOp::Add => Some(a.wrapping_add(b)),
        BinaryOp::Sub => Some(a.wrapping_sub(b)),
        BinaryOp::Mul => Some(a.wrapping_mul(b)),
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Err(FaultKind::DivisionByZero),
        BinaryOp::Div => Some(a / b),
        BinaryOp::Rem => Some(a % b),
        BinaryOp::Xor => Some(a ^ b),
        BinaryOp::BitAnd => Some(a & b),
        BinaryOp::Shl if b < 64 => Some(a << b),
        BinaryOp::Shr if b < 64 => Some(a >> b),
        _ => None,
    };
    value.ok_or(FaultKind::Overflow { op, operands: [a.into(), b.into()] })
}
