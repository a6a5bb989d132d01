//! Numbers of every element type.

use gemm_dsl::ir::Elem;
use half::{bf16, f16};

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Integer of any width.
    Int(i128),
    /// Floating-point number. Every number of a narrower type is an `f64`.
    Float(f64),
}

impl Number {
    /// Value of an element with these bits.
    pub fn of_bits(elem: Elem, bits: u64) -> Self {
        match elem {
            Elem::F64 => Number::Float(f64::from_bits(bits)),
            Elem::F32 | Elem::Tf32 => Number::Float(f32::from_bits(bits as u32).into()),
            Elem::F16 => Number::Float(f16::from_bits(bits as u16).into()),
            Elem::Bf16 => Number::Float(bf16::from_bits(bits as u16).into()),
            _ => Number::Int(wrapped(bits, elem)),
        }
    }

    /// Bits of the nearest element, with ties to even. Integers wrap. For `f16` or `bf16`, the
    /// value is first rounded to `f32`.
    pub fn bits(self, elem: Elem) -> u64 {
        match (self, elem) {
            (Number::Float(x), Elem::F64) => x.to_bits(),
            (Number::Float(x), Elem::F32 | Elem::Tf32) => (x as f32).to_bits().into(),
            (Number::Float(x), Elem::F16) => f16::from_f32(x as f32).to_bits().into(),
            (Number::Float(x), Elem::Bf16) => bf16::from_f32(x as f32).to_bits().into(),
            (Number::Float(x), _) => x as u64,
            (Number::Int(n), elem) if elem.is_float() => Number::Float(n as f64).bits(elem),
            (Number::Int(n), elem) => n as u64 & (u64::MAX >> (64 - 8 * elem.size())),
        }
    }

    /// Converts the number to the accumulator type. An integer is rounded once to a float.
    pub fn cast(self, acc: Elem) -> Self {
        match (self, acc) {
            (Number::Int(n), Elem::F32) => Number::Float((n as f32).into()),
            (Number::Int(n), Elem::F64) => Number::Float(n as f64),
            (Number::Float(x), Elem::F32) => Number::Float((x as f32).into()),
            (Number::Int(n), _) => Number::Int(wrapped(n as u64, acc)),
            (float, _) => float,
        }
    }

    pub fn float(&self) -> f64 {
        match *self {
            Number::Float(x) => x,
            Number::Int(n) => n as f64,
        }
    }

    /// True if the number is not 0, which includes NaN.
    pub fn is_true(&self) -> bool {
        match *self {
            Number::Float(x) => x != 0.0,
            Number::Int(n) => n != 0,
        }
    }
}

/// Integer of type `elem` with the low bits of `bits`.
fn wrapped(bits: u64, elem: Elem) -> i128 {
    match elem {
        Elem::I8 => (bits as i8).into(),
        Elem::I16 => (bits as i16).into(),
        Elem::I32 => (bits as i32).into(),
        Elem::I64 => (bits as i64).into(),
        Elem::U8 => (bits as u8).into(),
        Elem::U16 => (bits as u16).into(),
        Elem::U32 => (bits as u32).into(),
        _ => bits.into(),
    }
}
