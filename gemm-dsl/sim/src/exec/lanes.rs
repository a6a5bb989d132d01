//! Values of a warp, one per lane, and arithmetic on them.
//!
//! Operations compute all 32 lanes. The values of inactive lanes are never used.

use crate::error::FaultKind;
use crate::mask::{ALL, WARP, lanes_of, mask_where};
use crate::scalar::{int_one, long_one, unsigned_one, wide_one};
use gemm_dsl::ir::{Arith, BinaryOp, Cmp, Integer};
use gemm_dsl::target::intrinsic::{CanonicalFloat, canonical};
use pulp::Arch;

/// 32-bit value per lane: an `I32`, or the bits of an `F32`.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Lanes(pub [u32; WARP]);

/// 64-bit value per lane: an integer, or the bits of an `F64`.
pub(crate) type WideLanes = [u64; WARP];

impl Default for Lanes {
    fn default() -> Self {
        Self::ZERO
    }
}

impl Lanes {
    pub(crate) const ZERO: Lanes = Lanes([0; WARP]);

    #[inline]
    pub(crate) fn splat(value: u32) -> Self {
        Self([value; WARP])
    }

    #[inline]
    pub(crate) fn i32s(&self) -> [i32; WARP] {
        self.0.map(|v| v as i32)
    }
}

/// Fault of an integer operation in a lane.
pub(crate) struct ArithmeticFault {
    pub(crate) lane: u32,
    pub(crate) kind: Box<FaultKind>,
}

#[cold]
fn arithmetic(lane: usize, kind: FaultKind) -> ArithmeticFault {
    ArithmeticFault { lane: lane as u32, kind: Box::new(kind) }
}

/// Copies the values of the active lanes.
#[inline]
pub(crate) fn blend<T: Copy>(target: &mut [T; WARP], value: &[T; WARP], mask: u32) {
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

/// Computes `a * b + c` with one rounding. It uses the host's FMA instruction if there is one.
#[inline]
pub(crate) fn fma(arch: Arch, a: &Lanes, b: &Lanes, c: &Lanes) -> Lanes {
    // The result is a local variable. Unlike an output parameter, it cannot alias the operands, so
    // the loop vectorises.
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

/// Applies an arithmetic operator to `F32` values.
#[inline]
pub(crate) fn float(op: Arith, a: &Lanes, b: &Lanes, out: &mut Lanes) {
    match op {
        Arith::Add => each_float(a, b, out, |a, b| a + b),
        Arith::Sub => each_float(a, b, out, |a, b| a - b),
        Arith::Mul => each_float(a, b, out, |a, b| a * b),
        Arith::Div => each_float(a, b, out, |a, b| a / b),
    }
}

/// Applies an arithmetic operator to `F64` values.
pub(crate) fn double(op: Arith, a: &WideLanes, b: &WideLanes, out: &mut WideLanes) {
    for lane in 0..WARP {
        let (a, b) = (f64::from_bits(a[lane]), f64::from_bits(b[lane]));
        let value = match op {
            Arith::Add => a + b,
            Arith::Sub => a - b,
            Arith::Mul => a * b,
            Arith::Div => a / b,
        };
        out[lane] = value.canonical().to_bits();
    }
}

#[inline(always)]
fn each_float(a: &Lanes, b: &Lanes, out: &mut Lanes, f: impl Fn(f32, f32) -> f32) {
    for lane in 0..WARP {
        let value = f(f32::from_bits(a.0[lane]), f32::from_bits(b.0[lane]));
        out.0[lane] = canonical(value).to_bits();
    }
}

/// Compares the values of all lanes, and returns the mask of lanes in which the comparison is true.
#[inline]
pub(crate) fn compare<T: PartialOrd + Copy>(op: Cmp, a: &[T; WARP], b: &[T; WARP]) -> u32 {
    match op {
        Cmp::Lt => mask_where(|l| a[l] < b[l]),
        Cmp::Le => mask_where(|l| a[l] <= b[l]),
        Cmp::Gt => mask_where(|l| a[l] > b[l]),
        Cmp::Ge => mask_where(|l| a[l] >= b[l]),
        Cmp::Eq => mask_where(|l| a[l] == b[l]),
        Cmp::Ne => mask_where(|l| a[l] != b[l]),
    }
}

/// Applies an operator to `I32` values in the active lanes. Returns an error on overflow.
#[inline]
pub(crate) fn int(
    op: BinaryOp,
    a: &Lanes,
    b: &Lanes,
    mask: u32,
    out: &mut Lanes,
) -> Result<(), ArithmeticFault> {
    // The sign bit of `wrong` is set if a lane overflows, even an inactive one.
    let mut wrong = 0u32;
    match op {
        BinaryOp::ADD => {
            for l in 0..WARP {
                let (x, y) = (a.0[l], b.0[l]);
                let sum = x.wrapping_add(y);
                wrong |= (x ^ sum) & (y ^ sum);
                out.0[l] = sum;
            }
        }
        BinaryOp::SUB => {
            for l in 0..WARP {
                let (x, y) = (a.0[l], b.0[l]);
                let difference = x.wrapping_sub(y);
                wrong |= (x ^ y) & (x ^ difference);
                out.0[l] = difference;
            }
        }
        BinaryOp::MUL => {
            for l in 0..WARP {
                let product = i64::from(a.0[l] as i32) * i64::from(b.0[l] as i32);
                wrong |= u32::from(product != i64::from(product as i32)) << 31;
                out.0[l] = product as u32;
            }
        }
        BinaryOp::Integer(Integer::Xor) => (0..WARP).for_each(|l| out.0[l] = a.0[l] ^ b.0[l]),
        BinaryOp::Integer(Integer::And) => (0..WARP).for_each(|l| out.0[l] = a.0[l] & b.0[l]),
        BinaryOp::Integer(Integer::Or) => (0..WARP).for_each(|l| out.0[l] = a.0[l] | b.0[l]),
        _ => wrong = 1 << 31,
    }
    if wrong >> 31 == 1 {
        for l in lanes_of(mask) {
            let value = int_one(op, a.0[l] as i32, b.0[l] as i32);
            out.0[l] = value.map_err(|kind| arithmetic(l, kind))? as u32;
        }
    }
    Ok(())
}

/// Applies an operator to `U64` values in the active lanes.
#[inline]
pub(crate) fn wide(
    op: BinaryOp,
    a: &WideLanes,
    b: &WideLanes,
    mask: u32,
    out: &mut WideLanes,
) -> Result<(), ArithmeticFault> {
    match op {
        BinaryOp::ADD => (0..WARP).for_each(|l| out[l] = a[l].wrapping_add(b[l])),
        BinaryOp::SUB => (0..WARP).for_each(|l| out[l] = a[l].wrapping_sub(b[l])),
        BinaryOp::MUL => (0..WARP).for_each(|l| out[l] = a[l].wrapping_mul(b[l])),
        _ => {
            for l in lanes_of(mask) {
                out[l] = wide_one(op, a[l], b[l]).map_err(|kind| arithmetic(l, kind))?;
            }
        }
    }
    Ok(())
}

/// Applies an operator to `I64` values in the active lanes. Returns an error on overflow.
pub(crate) fn long(
    op: BinaryOp,
    a: &WideLanes,
    b: &WideLanes,
    mask: u32,
    out: &mut WideLanes,
) -> Result<(), ArithmeticFault> {
    for l in lanes_of(mask) {
        let value = long_one(op, a[l] as i64, b[l] as i64);
        out[l] = value.map_err(|kind| arithmetic(l, kind))? as u64;
    }
    Ok(())
}

/// Applies an operator to `U32` values in the active lanes.
pub(crate) fn unsigned(
    op: BinaryOp,
    a: &Lanes,
    b: &Lanes,
    mask: u32,
    out: &mut Lanes,
) -> Result<(), ArithmeticFault> {
    for l in lanes_of(mask) {
        let value = unsigned_one(op, a.0[l], b.0[l]);
        out.0[l] = value.map_err(|kind| arithmetic(l, kind))?;
    }
    Ok(())
}
