//! Conversions between number types, one lane at a time.

use crate::error::FaultKind;
use gemm_dsl::ir::{Elem, Ty};
use gemm_dsl::target::Format;
use gemm_dsl::target::fp8::{e4m3, e5m2};
use gemm_dsl::target::intrinsic::{CANONICAL_NAN, CanonicalFloat};
use half::{bf16, f16};

/// Decoded number of any type.
enum DecodedNumber {
    Integer(i128),
    Single(f32),
    Double(f64),
}

/// Bit pattern of a digit, 0 to 9, in an element type.
pub fn digit(elem: Elem, digit: u8) -> u64 {
    let bits = convert(Elem::U8, elem, digit.into());
    bits.unwrap_or_else(|_| unreachable!("every type can represent 0 to 9"))
}

/// Converts the bits of a value to another type. Returns an error for an integer that is out of
/// range for an integer type. A floating-point number saturates.
pub(crate) fn convert(from: Elem, to: Elem, bits: u64) -> Result<u64, FaultKind> {
    // A conversion that only moves bits keeps the payload of NaN.
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
        // NaN becomes 0 in a 4-byte integer, and otherwise a 64-bit pattern with only the topmost
        // bit set.
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
        Elem::E4m3 => DecodedNumber::Single(e4m3::from_bits(bits as u8).to_f32().canonical()),
        Elem::E5m2 => DecodedNumber::Single(e5m2::from_bits(bits as u8).to_f32().canonical()),
        Elem::I64 => DecodedNumber::Integer((bits as i64).into()),
        Elem::U64 => DecodedNumber::Integer(bits.into()),
        Elem::I32 | Elem::I16 | Elem::I8 => DecodedNumber::Integer((bits as i32).into()),
        Elem::U32 | Elem::U16 | Elem::U8 => DecodedNumber::Integer((bits as u32).into()),
    }
}

/// Returns the bits of an integer, sign-extended to the width of a lane's slot; `None` if it is out
/// of range for the type.
fn fitting(value: i128, to: Elem) -> Option<u64> {
    let bits = 8 * to.size();
    let (min, max) = match to.is_signed() {
        true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        false => (0, (1i128 << bits) - 1),
    };
    let lane = if to.size() == 8 { u64::MAX } else { u32::MAX.into() };
    (min..=max).contains(&value).then_some(value as u64 & lane)
}

/// NaN of a 16-bit type: all bits set except the sign.
const NAN_OF_HALF: u64 = 0x7fff;

/// Converts a binary32 to a floating-point type of at most 4 bytes.
fn single(to: Elem, value: f32) -> u64 {
    let bits = value.to_bits();
    match to {
        Elem::F16 if value.is_nan() => NAN_OF_HALF,
        Elem::F16 => f16::from_f32(value).to_bits().into(),
        Elem::Bf16 if value.is_nan() => NAN_OF_HALF,
        Elem::Bf16 => bf16::from_f32(value).to_bits().into(),
        Elem::E4m3 => e4m3::from_f32(value).to_bits().into(),
        Elem::E5m2 => e5m2::from_f32(value).to_bits().into(),
        Elem::Tf32 if value.is_nan() => CANONICAL_NAN.into(),
        Elem::Tf32 if value.is_infinite() => bits.into(),
        // Rounds to nearest, with ties away from zero.
        Elem::Tf32 => {
            let last = 1 << Format::Tf32.unused_bits();
            (bits.wrapping_add(last / 2) & !(last - 1)).into()
        }
        Elem::F32 => value.canonical().to_bits().into(),
        Elem::F64 => unreachable!("convert: it has 8 bytes"),
        Elem::I64 | Elem::U64 | Elem::I32 | Elem::U32 => unreachable!("convert: it is an integer"),
        Elem::I16 | Elem::U16 | Elem::I8 | Elem::U8 => unreachable!("convert: it is an integer"),
    }
}

/// Rounds towards zero and saturates to the range of the type.
fn saturated(to: Elem, value: f64) -> u64 {
    match to {
        Elem::I32 => (value as i32) as u32 as u64,
        Elem::U32 => (value as u32).into(),
        Elem::I64 => (value as i64) as u64,
        _ => value as u64,
    }
}
