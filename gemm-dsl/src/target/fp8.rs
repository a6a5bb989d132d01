//! Floating-point numbers of 8 bits, for elements of arrays.

use crate::target::{FloatLayout, Format};
use std::cmp::Ordering;
use std::fmt;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident, $format:ident, max $max:literal;)*) => {
        $(
            $(#[$doc])*
            #[allow(non_camel_case_types, reason = "the name of a primitive, as in `half`")]
            #[derive(Clone, Copy, Default)]
            #[repr(transparent)]
            pub struct $name(u8);

            impl $name {
                /// Greatest finite number.
                pub const MAX: Self = Self($max);
                /// A NaN.
                pub const NAN: Self = Self(0x7f);

                /// Returns the number with these bits.
                pub const fn from_bits(bits: u8) -> Self {
                    Self(bits)
                }

                /// Returns the bits of the number.
                pub const fn to_bits(self) -> u8 {
                    self.0
                }

                /// Converts a number, rounded to nearest with ties to even. Numbers beyond the
                /// greatest finite one, and infinities, become the greatest finite number.
                pub fn from_f32(value: f32) -> Self {
                    Self(rounded(LAYOUTS.$name, $max, value))
                }

                /// Converts a number as [`from_f32`](Self::from_f32) does, rounded once.
                pub fn from_f64(value: f64) -> Self {
                    Self::from_f32(to_odd(value))
                }

                /// Converts the number, which is exact.
                pub fn to_f32(self) -> f32 {
                    exact(LAYOUTS.$name, self.0)
                }

                /// Converts the number, which is exact.
                pub fn to_f64(self) -> f64 {
                    self.to_f32().into()
                }

                /// Returns true for a NaN.
                pub fn is_nan(self) -> bool {
                    self.to_f32().is_nan()
                }
            }

            impl PartialEq for $name {
                fn eq(&self, other: &Self) -> bool {
                    self.to_f32() == other.to_f32()
                }
            }

            impl PartialOrd for $name {
                fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                    self.to_f32().partial_cmp(&other.to_f32())
                }
            }

            impl From<$name> for f32 {
                fn from(value: $name) -> Self {
                    value.to_f32()
                }
            }

            impl From<$name> for f64 {
                fn from(value: $name) -> Self {
                    value.to_f64()
                }
            }

            impl fmt::Debug for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Debug::fmt(&self.to_f32(), f)
                }
            }

            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    fmt::Display::fmt(&self.to_f32(), f)
                }
            }
        )*
    };
}

/// Layouts of the numbers, by name.
struct Layouts {
    e4m3: FloatLayout,
    e5m2: FloatLayout,
}

const LAYOUTS: Layouts = Layouts { e4m3: of(Format::E4m3), e5m2: of(Format::E5m2) };

const fn of(format: Format) -> FloatLayout {
    match format.layout() {
        Some(layout) => layout,
        None => panic!("a floating-point format"),
    }
}

numbers! {
    /// Number of 8 bits: a sign, 4 bits of exponent and 3 bits of fraction (OCP FP8 E4M3). The
    /// greatest number is 448, the least positive one 2^-9. There are no infinities.
    ///
    /// ```
    /// use gemm_dsl::target::fp8::e4m3;
    ///
    /// assert_eq!(e4m3::from_f32(1.06).to_f32(), 1.0);
    /// assert_eq!(e4m3::from_f32(1e6), e4m3::MAX);
    /// ```
    e4m3, E4m3, max 0x7e;
    /// Number of 8 bits: a sign, 5 bits of exponent and 2 bits of fraction (OCP FP8 E5M2). The
    /// greatest finite number is 57344, the least positive one 2^-16.
    e5m2, E5m2, max 0x7b;
}

/// Value of the bits of a number with at most 8 bits.
fn exact(layout: FloatLayout, bits: u8) -> f32 {
    let (bits, sign) = (u32::from(bits & 0x7f), u32::from(bits >> 7) << 31);
    let is_special = match layout.infinities {
        true => bits >= layout.infinity(),
        false => bits == layout.greatest(),
    };
    let (exponent, fraction) = (bits >> layout.fraction, bits & ((1 << layout.fraction) - 1));
    let size = match (is_special, exponent) {
        (true, _) if layout.infinities && fraction == 0 => f32::INFINITY,
        (true, _) => return f32::NAN,
        (false, 0) => fraction as f32 * power(1 - layout.bias() - layout.fraction as i32),
        (false, _) => {
            let significand = (1 << layout.fraction) | fraction;
            significand as f32 * power(exponent as i32 - layout.bias() - layout.fraction as i32)
        }
    };
    f32::from_bits(size.to_bits() | sign)
}

/// Power of two with a normal result.
fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + FloatLayout::BINARY32.bias()) as u32) << 23)
}

/// Bits of the nearest number. `max` is the greatest finite one.
fn rounded(layout: FloatLayout, max: u8, value: f32) -> u8 {
    let sign = (value.to_bits() >> 24) as u8 & 0x80;
    let size = value.abs();
    if size.is_nan() {
        return 0x7f;
    }
    if size >= exact(layout, max) {
        return sign | max;
    }
    let dropped = FloatLayout::BINARY32.fraction - layout.fraction;
    let bits = if size < power(1 - layout.bias()) {
        // The addition rounds to a multiple of the least number.
        let unit = power(1 - layout.bias() + dropped as i32);
        (size + unit).to_bits() - unit.to_bits()
    } else {
        let bits = size.to_bits();
        let half = (1 << (dropped - 1)) - 1 + (bits >> dropped & 1);
        let bias = (FloatLayout::BINARY32.bias() - layout.bias()) as u32;
        ((bits + half) >> dropped) - (bias << layout.fraction)
    };
    sign | bits as u8
}

/// Rounds to a binary32 so that another rounding to a shorter type gives the nearest number: a
/// result that is not exact has an odd last bit.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || near.is_nan() || near.to_bits() & 1 == 1 {
        return near;
    }
    // The neighbour on the other side of the value is odd.
    let away = f64::from(near).abs() < value.abs();
    f32::from_bits(if away { near.to_bits() + 1 } else { near.to_bits() - 1 })
}

#[cfg(test)]
mod tests;
