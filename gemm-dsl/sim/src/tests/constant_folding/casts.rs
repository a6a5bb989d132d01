//! Conversions agree with Rust's own for every source of the number.

use super::tree::number;
use super::*;
use gemm_dsl::target::fp8::{e4m3, e5m2};
use half::{bf16, f16};

/// Random numbers for each pair of types.
const NUMBERS: usize = 40;

fn integer(elem: Elem, bits: u64) -> i128 {
    let unused = 64 - 8 * elem.size();
    if elem.is_signed() { ((bits << unused) as i64 >> unused).into() } else { bits.into() }
}

fn float(elem: Elem, bits: u64) -> f64 {
    match elem {
        Elem::F64 => f64::from_bits(bits),
        Elem::F16 => f16::from_bits(bits as u16).into(),
        Elem::Bf16 => bf16::from_bits(bits as u16).into(),
        Elem::E4m3 => e4m3::from_bits(bits as u8).to_f32().into(),
        Elem::E5m2 => e5m2::from_bits(bits as u8).to_f32().into(),
        _ => f32::from_bits(bits as u32).into(),
    }
}

/// Expected conversion of a number. None for a NaN whose payload the target does not keep.
fn converted(from: Elem, to: Elem, bits: u64) -> Option<Result<u64, FaultKind>> {
    let mask = u64::MAX >> (64 - 8 * to.size());
    if from.is_integer() {
        let value = integer(from, bits);
        return Some(match to {
            Elem::F64 => Ok((value as f64).to_bits()),
            Elem::F32 => Ok((value as f32).to_bits().into()),
            _ if integer(to, value as u64 & mask) == value => Ok(value as u64 & mask),
            _ => Err(FaultKind::Conversion { value, ty: Ty::Scalar(to) }),
        });
    }
    let value = float(from, bits);
    Some(Ok(match to {
        Elem::F32 if from == Elem::Bf16 => bits << 16,
        Elem::F32 if from == Elem::Tf32 => bits,
        _ if from == to => bits,
        _ if value.is_nan() => return None,
        Elem::F64 => value.to_bits(),
        Elem::F32 => (value as f32).to_bits().into(),
        Elem::F16 => f16::from_f32(value as f32).to_bits().into(),
        Elem::Bf16 => bf16::from_f32(value as f32).to_bits().into(),
        Elem::E4m3 => e4m3::from_f32(value as f32).to_bits().into(),
        Elem::E5m2 => e5m2::from_f32(value as f32).to_bits().into(),
        Elem::Tf32 if value.is_infinite() => bits,
        Elem::Tf32 => (bits + 0x1000) & 0xffff_e000,
        Elem::I32 => value as i32 as u64 & mask,
        Elem::U32 => (value as u32).into(),
        Elem::I64 => value as i64 as u64,
        _ => value as u64,
    }))
}

#[test]
fn conversions_are_those_of_rust() {
    let random = &mut Random::new(1);
    let mut checked = 0;
    for (from, to) in Elem::ALL.iter().flat_map(|from| Elem::ALL.map(|to| (*from, to))) {
        for _ in 0..if from.converts_to(to) { NUMBERS } else { 0 } {
            let bits = number(from, random);
            let Some(expected) = converted(from, to, bits) else { continue };
            for known in ways(from) {
                let mut rig = Rig::new();
                let value = rig.number(from, bits, known).cast(to);
                let found = rig.result(to, value).map(|(bits, _)| bits);
                assert_eq!(found, expected, "{bits:#x} of {from} as {to}, {known:?}");
            }
            checked += 1;
        }
    }
    // There are 50 pairs of types, and some numbers are NaN.
    assert!(checked > 40 * NUMBERS, "{checked}");
}
