//! Conversions between types of numbers, one lane at a time.

use crate::error::FaultKind;
use gemm_dsl::ir::{Elem, Ty};
use gemm_dsl::target::intrinsic::{CANONICAL_NAN, CanonicalFloat};
use half::{bf16, f16};

/// A number without its type.
enum DecodedNumber {
    Integer(i128),
    Single(f32),
    Double(f64),
}

/// The bits of a digit, 0 to 9, as an element of a type.
pub fn digit(elem: Elem, digit: u8) -> u64 {
    let bits = convert(Elem::U8, elem, digit.into());
    bits.unwrap_or_else(|_| unreachable!("every type has the digits"))
}

/// The bits of a value as those of another type. An integer that does not fit an integer type is an
/// error; a floating-point number that does not fit one becomes the nearest that does.
pub(crate) fn convert(from: Elem, to: Elem, bits: u64) -> Result<u64, FaultKind> {
    // A conversion that moves the bits keeps the payload of a NaN.
    match (from, to) {
        (Elem::Bf16, Elem::F32) => return Ok(bits << 16),
        (Elem::Tf32, Elem::F32) => return Ok(bits),
        _ if from == to => return Ok(bits),
        _ => {}
    }
    Ok(match (read(from, bits), to) {
        (DecodedNumber::Integer(value), to) if to.is_integer() => {
            let fault = FaultKind::Conversion { value, ty: Ty::Scalar(to) };
            fitting(value, to).ok_or(fault)?
        }
        (DecodedNumber::Integer(value), Elem::F64) => (value as f64).to_bits(),
        (DecodedNumber::Integer(value), to) => single(to, value as f32),
        (DecodedNumber::Single(value), Elem::F64) => f64::from(value).canonical().to_bits(),
        (DecodedNumber::Single(value), to) if to.is_float() => single(to, value),
        // NaN is 0 where both types are of 4 bytes, else the topmost bit.
        (DecodedNumber::Single(value), to) => match (value.is_nan(), to.size()) {
            (true, 4) => 0,
            (true, _) => 1 << 63,
            (false, _) => saturated(to, value.into()),
        },
        (DecodedNumber::Double(value), Elem::F64) => value.to_bits(),
        (DecodedNumber::Double(value), to) if to.is_float() => single(to, value as f32),
        (DecodedNumber::Double(value), to) => match value.is_nan() {
            true => 1 << (8 * to.size() - 1),
            false => saturated(to, value),
        },
    })
}

fn read(elem: Elem, bits: u64) -> DecodedNumber {
    match elem {
        Elem::F64 => DecodedNumber::Double(f64::from_bits(bits)),
        Elem::F32 | Elem::Tf32 => DecodedNumber::Single(f32::from_bits(bits as u32)),
        Elem::F16 => DecodedNumber::Single(f16::from_bits(bits as u16).to_f32().canonical()),
        Elem::Bf16 => DecodedNumber::Single(bf16::from_bits(bits as u16).to_f32()),
        Elem::I64 => DecodedNumber::Integer((bits as i64).into()),
        Elem::U64 => DecodedNumber::Integer(bits.into()),
        Elem::I32 | Elem::I16 | Elem::I8 => DecodedNumber::Integer((bits as i32).into()),
        Elem::U32 | Elem::U16 | Elem::U8 => DecodedNumber::Integer((bits as u32).into()),
    }
}

/// The bits of an integer in its type, sign-extended to those of a lane.
fn fitting(value: i128, to: Elem) -> Option<u64> {
    let bits = 8 * to.size();
    let (min, max) = match to.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let lane = if to.size() == 8 { u64::MAX } else { u32::MAX.into() };
    (min..=max).contains(&value).then_some(value as u64 & lane)
}

/// A binary32 as one of the types of at most 4 bytes.
fn single(to: Elem, value: f32) -> u64 {
    let bits = value.to_bits();
    match to {
        Elem::F16 if value.is_nan() => 0x7fff,
        Elem::F16 => f16::from_f32(value).to_bits().into(),
        Elem::Bf16 if value.is_nan() => 0x7fff,
        Elem::Bf16 => bf16::from_f32(value).to_bits().into(),
        Elem::Tf32 if value.is_nan() => CANONICAL_NAN.into(),
        Elem::Tf32 if value.is_infinite() => bits.into(),
        // Ties go away from zero.
        Elem::Tf32 => (bits.wrapping_add(0x1000) & 0xffff_e000).into(),
        _ => value.canonical().to_bits().into(),
    }
}

/// The integer towards zero, or the nearest of the type.
fn saturated(to: Elem, value: f64) -> u64 {
    match to {
        Elem::I32 => (value as i32) as u32 as u64,
        Elem::U32 => (value as u32).into(),
        Elem::I64 => (value as i64) as u64,
        _ => value as u64,
    }
}
