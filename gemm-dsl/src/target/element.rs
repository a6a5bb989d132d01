//! Rust types of array elements.

use super::types::Elem;
use crate::target::fp8::{e4m3, e5m2};
use half::{bf16, f16};
use std::fmt;

/// Rust type whose values are elements of device arrays.
pub trait Element: Copy + Default + fmt::Debug + Send + Sync + 'static + sealed::Sealed {
    const ELEM: Elem;

    /// Returns the bits of the value, zero-extended.
    #[doc(hidden)]
    fn into_bits(self) -> u64;

    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty = $elem:ident, |$value:ident| $bits:expr, |$from:ident| $of:expr;)*) => {
        $(
            impl sealed::Sealed for $ty {}
            impl Element for $ty {
                const ELEM: Elem = Elem::$elem;

                fn into_bits(self) -> u64 {
                    let $value = self;
                    $bits
                }

                fn from_bits($from: u64) -> Self {
                    $of
                }
            }
        )*
    };
}

elements! {
    f64 = F64, |v| v.to_bits(), |b| f64::from_bits(b);
    f32 = F32, |v| v.to_bits().into(), |b| f32::from_bits(b as u32);
    f16 = F16, |v| v.to_bits().into(), |b| f16::from_bits(b as u16);
    bf16 = Bf16, |v| v.to_bits().into(), |b| bf16::from_bits(b as u16);
    e4m3 = E4m3, |v| v.to_bits().into(), |b| e4m3::from_bits(b as u8);
    e5m2 = E5m2, |v| v.to_bits().into(), |b| e5m2::from_bits(b as u8);
    i64 = I64, |v| v as u64, |b| b as i64;
    u64 = U64, |v| v, |b| b;
    i32 = I32, |v| v as u32 as u64, |b| b as i32;
    u32 = U32, |v| v.into(), |b| b as u32;
    i16 = I16, |v| v as u16 as u64, |b| b as i16;
    u16 = U16, |v| v.into(), |b| b as u16;
    i8 = I8, |v| v as u8 as u64, |b| b as i8;
    u8 = U8, |v| v.into(), |b| b as u8;
}

/// Encodes elements as little-endian bytes, the format in which devices exchange them.
pub fn to_bytes<T: Element>(elements: &[T]) -> Vec<u8> {
    let size = T::ELEM.size() as usize;
    let mut bytes = Vec::with_capacity(elements.len() * size);
    for element in elements {
        bytes.extend_from_slice(&element.into_bits().to_le_bytes()[..size]);
    }
    bytes
}

/// Decodes the bytes of [`to_bytes`]. `None` if the length is not a multiple of the element size.
pub fn from_bytes<T: Element>(bytes: &[u8]) -> Option<Vec<T>> {
    let elements = bytes.chunks_exact(T::ELEM.size() as usize);
    let element = |bytes: &[u8]| {
        let mut bits = [0; 8];
        bits[..bytes.len()].copy_from_slice(bytes);
        T::from_bits(u64::from_le_bytes(bits))
    };
    elements.remainder().is_empty().then(|| elements.map(element).collect())
}
