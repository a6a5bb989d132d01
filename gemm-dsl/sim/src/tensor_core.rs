//! Bit-exact arithmetic of tensor cores.
//!
//! A matrix instruction ([`Mma`](gemm_dsl::ir::Mma)) adds dot products to binary32 accumulators.
//! PTX leaves the order and the rounding open. The behaviour of GPUs is known from measurements (X.
//! Li et al., "MMA-Sim", arXiv:2511.10909; F. Khattak and M. Mikaitis, arXiv:2512.07004).
//! [`AccumulationRules::fused_sum`] implements it: all terms of a group, the addend included, are
//! truncated to a grid that depends on the largest term. They are added exactly, and the sum is
//! truncated to binary32. Nothing is rounded to nearest. If K exceeds the group size, the groups
//! form a chain: the result of one group is the addend of the next ([`AccumulationRules::dot`]).
//!
//! The rules of `sm_90` were compared with `mma.sync` and `wgmma` on an H200 (`tests/kernels`). The
//! rules of `sm_80` and `sm_89` rest on published test vectors (`tests/data/tensor_core`), those of
//! `sm_120` and `sm_100` on published reports.

#[cfg(test)]
mod tests;

use gemm_dsl::target::intrinsic::CANONICAL_NAN;
use gemm_dsl::target::{FloatLayout, Format};

/// Fraction bits of a binary32.
const FRACTION: u32 = FloatLayout::BINARY32.fraction;

/// Exponent of the lowest bit of a binary32.
const LEAST: i32 = 1 - FloatLayout::BINARY32.bias() - FRACTION as i32;

/// Decoded number: `mantissa * 2^(exponent - fraction)`, where the format gives the number of
/// fraction bits. Subnormal numbers are not normalised: their significand is less than 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmaOperand {
    /// Signed integer mantissa, with the hidden bit. For an infinity, the sign; for NaN, 0.
    mantissa: i32,
    /// [`ZERO`] for zero, so that it is not a candidate for the largest exponent of a sum, and
    /// [`SPECIAL`] for a number that is not finite.
    exponent: i32,
}

/// Exponent of zero: below that of any product.
const ZERO: i32 = -(1 << 16);
/// Exponent of an infinity or NaN: its sum with any exponent is above [`FINITE`].
const SPECIAL: i32 = 1 << 20;
/// Number above the exponents of all finite products.
const FINITE: i32 = 1 << 16;

impl MmaOperand {
    pub const NAN: Self = Self { mantissa: 0, exponent: SPECIAL };
    pub const INFINITY: Self = Self { mantissa: 1, exponent: SPECIAL };
    pub const NEG_INFINITY: Self = Self { mantissa: -1, exponent: SPECIAL };

    fn is_finite(self) -> bool {
        self.exponent != SPECIAL
    }

    /// Decodes a word of the given format.
    pub fn decode(format: Format, word: u32) -> Self {
        decode(word >> format.unused_bits(), format.layout())
    }
}

/// Decodes a word of a sign bit, an exponent and a fraction.
fn decode(word: u32, layout: FloatLayout) -> MmaOperand {
    let (fraction, top) = (layout.fraction, layout.top());
    let negative = word >> (layout.bits() - 1) & 1 == 1;
    let exponent = word >> fraction & top;
    let behind = word & ((1 << fraction) - 1);
    if exponent == top {
        return match (behind, negative) {
            (0, false) => MmaOperand::INFINITY,
            (0, true) => MmaOperand::NEG_INFINITY,
            _ => MmaOperand::NAN,
        };
    }
    let mantissa = if exponent == 0 { behind } else { behind | 1 << fraction } as i32;
    let exponent = if mantissa == 0 { ZERO } else { exponent.max(1) as i32 - layout.bias() };
    MmaOperand { mantissa: if negative { -mantissa } else { mantissa }, exponent }
}

/// Accumulation rules of a generation of tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulationRules {
    /// Fraction bits of each term that are kept, relative to the largest term.
    pub kept: u32,
    /// Number of terms per group for 16-bit operands; half as many for 32-bit operands.
    pub group: usize,
    /// Lower bound of the largest term's exponent.
    pub least: i32,
}

impl AccumulationRules {
    /// Rules of `sm_80`, `sm_86`, `sm_87` and `sm_89`.
    pub const SM_80: AccumulationRules = AccumulationRules { kept: 24, group: 8, least: -132 };

    /// Rules of `sm_90` and later, for `mma.sync` and `wgmma`.
    pub const SM_90: AccumulationRules = AccumulationRules { kept: 25, group: 16, least: -133 };

    /// Returns the rules of an architecture, 90 for `sm_90`. `None` if its tensor cores lack these
    /// formats.
    pub const fn for_arch(arch: u32) -> Option<AccumulationRules> {
        match arch {
            0..80 => None,
            80..90 => Some(Self::SM_80),
            _ => Some(Self::SM_90),
        }
    }

    /// Number of terms per group.
    pub const fn terms(self, format: Format) -> usize {
        match format {
            Format::Bf16 | Format::F16 => self.group,
            Format::Tf32 => self.group / 2,
        }
    }

    /// Adds the dot product of `a` and `b` to `c`, in the order of K, as a chain of groups. The
    /// remainder is a group of its own.
    ///
    /// ```
    /// use gemm_dsl::target::Format;
    /// use gemm_sim::tensor_core::{AccumulationRules, MmaOperand};
    ///
    /// // Terms of 1, 2 and 4 eighths below 2^23: only kept bits count, and the sum is truncated.
    /// let one = MmaOperand::decode(Format::Bf16, 0x3f80);
    /// let b = [0xcb00, 0xbf00, 0xbe80, 0xbe00].map(|word| MmaOperand::decode(Format::Bf16, word));
    /// let c = 8_388_608_f32.to_bits();
    /// let sum = |rules: AccumulationRules| rules.dot(Format::Bf16, &[one; 4], &b, c);
    /// let sums = [AccumulationRules::SM_80, AccumulationRules::SM_90].map(sum);
    /// assert_eq!(sums.map(f32::from_bits), [-0.5, -0.75]);
    /// ```
    #[inline(always)]
    pub fn dot(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let terms = self.terms(format);
        let groups = a.chunks(terms).zip(b.chunks(terms));
        groups.fold(c, |c, (a, b)| self.fused_sum(format, a, b, c))
    }

    /// Returns the sum of `c` and the products of one group.
    #[inline(always)]
    pub fn fused_sum(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        // Loops over a constant number of terms are unrolled.
        match (<&[_; 16]>::try_from(a), <&[_; 16]>::try_from(b)) {
            (Ok(a), Ok(b)) => self.truncated_sum(format, a, b, c),
            _ => self.truncated_sum(format, a, b, c),
        }
    }

    #[inline(always)]
    fn truncated_sum(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let addend = decode(c, FloatLayout::BINARY32);
        let exponents = a.iter().zip(b).map(|(a, b)| a.exponent.wrapping_add(b.exponent));
        let largest = exponents.fold(self.least.max(addend.exponent), i32::max);
        if largest > FINITE {
            return special_sum(a, b, addend);
        }
        let unit = largest - self.kept as i32;
        let mut sum = cut(addend.mantissa.into(), addend.exponent - FRACTION as i32 - unit);
        // All products are shifted left by `most`. Products without the largest exponent are then
        // shifted right.
        let most = self.kept - 2 * format.layout().fraction;
        for (a, b) in a.chunks(HALF_GROUP).zip(b.chunks(HALF_GROUP)) {
            let mut part = 0_i32;
            for (a, b) in a.iter().zip(b) {
                let product = a.mantissa.wrapping_mul(b.mantissa);
                let exponent = a.exponent.wrapping_add(b.exponent);
                let right = largest.wrapping_sub(exponent).min(31) as u32;
                let size = ((product.unsigned_abs() << most) >> right) as i32;
                part = part.wrapping_add(if product < 0 { size.wrapping_neg() } else { size });
            }
            sum += i64::from(part);
        }
        binary32(sum, unit)
    }
}

/// Products whose sum fits in an `i32`: each is less than 2^27. The loop over them uses wrapping
/// operations, because checks of overflow would prevent its vectorisation in debug builds.
const HALF_GROUP: usize = 8;

/// `mantissa * 2^left`, truncated towards zero. For a nonzero mantissa the result fits.
fn cut(mantissa: i64, left: i32) -> i64 {
    let size = mantissa.unsigned_abs();
    let size = match u32::try_from(left) {
        // A zero may have any exponent.
        Ok(left) => size.wrapping_shl(left),
        Err(_) => size.checked_shr(left.unsigned_abs()).unwrap_or(0),
    };
    if mantissa < 0 { -(size as i64) } else { size as i64 }
}

/// Sum with at least one term that is not finite.
#[cold]
fn special_sum(a: &[MmaOperand], b: &[MmaOperand], addend: MmaOperand) -> u32 {
    let mut special = SpecialTerms::default();
    special.add(addend);
    for (a, b) in a.iter().zip(b) {
        special.add_product(*a, *b);
    }
    special.result()
}

/// Non-finite terms of a sum.
#[derive(Clone, Copy, Debug, Default)]
struct SpecialTerms {
    nan: bool,
    /// True if there is a positive infinity, and a negative one.
    infinite: [bool; 2],
}

impl SpecialTerms {
    /// Records a term that is not finite; a finite one is ignored.
    fn add(&mut self, term: MmaOperand) {
        match term.mantissa {
            _ if term.is_finite() => {}
            0 => self.nan = true,
            sign => self.infinite[usize::from(sign < 0)] = true,
        }
    }

    /// Records a product that is not finite; a finite one is ignored. An infinity times zero is
    /// NaN.
    fn add_product(&mut self, a: MmaOperand, b: MmaOperand) {
        // NaN and zero have the mantissa 0.
        match a.mantissa.signum() * b.mantissa.signum() {
            _ if a.is_finite() && b.is_finite() => {}
            0 => self.nan = true,
            sign => self.infinite[usize::from(sign < 0)] = true,
        }
    }

    /// Result of the sum: NaN or an infinity.
    fn result(self) -> u32 {
        match (self.nan, self.infinite) {
            (false, [true, false]) => f32::INFINITY.to_bits(),
            (false, [false, true]) => f32::NEG_INFINITY.to_bits(),
            (true, _) | (false, [true, true]) => CANONICAL_NAN,
            (false, [false, false]) => unreachable!("fused_sum: a term is not finite"),
        }
    }
}

/// Truncates `sum * 2^unit` to a binary32. A result without bits is +0, regardless of its sign.
fn binary32(sum: i64, unit: i32) -> u32 {
    let Some(length) = sum.unsigned_abs().checked_ilog2() else { return 0 };
    let top = length as i32 + unit;
    let sign = u32::from(sum < 0) << 31;
    if top > FloatLayout::BINARY32.bias() {
        return f32::INFINITY.to_bits() | sign;
    }
    // Exponent of the lowest mantissa bit.
    let last = (top - FRACTION as i32).max(LEAST);
    let size = sum.unsigned_abs();
    let mantissa = match u32::try_from(last - unit) {
        Ok(dropped) => size.checked_shr(dropped).unwrap_or(0),
        Err(_) => size << (unit - last),
    } as u32;
    match mantissa {
        0 => 0,
        // A subnormal number has exponent bits 0; the leading bit of a normal one adds to them.
        _ => sign | ((((last - LEAST) as u32) << FRACTION) + mantissa),
    }
}
