//! Bit-exact arithmetic of tensor cores.
//!
//! A matrix instruction ([`Mma`](gemm_dsl::ir::Mma)) adds dot products to binary32 accumulators.
//! PTX does not specify the order or the rounding. The behaviour of GPUs is known from measurements
//! (X. Li et al., "MMA-Sim", arXiv:2511.10909; F. Khattak and M. Mikaitis, arXiv:2512.07004).
//! [`AccumulationRules::fused_sum`] implements it. All terms of a group, including the addend, are
//! truncated to a grid that depends on the largest term. They are added exactly, and the sum is
//! truncated to binary32. Nothing is rounded to nearest. If K exceeds the group size, the groups
//! form a chain: the result of one group is the addend of the next ([`AccumulationRules::dot`]).
//!
//! The rules of `sm_90` were compared with `mma.sync` and `wgmma` on an H200 (`tests/kernels`). The
//! rules of `sm_80` and `sm_89` are based on published test vectors (`tests/data/tensor_core`), and
//! the rules of `sm_120` and `sm_100` on published reports.

#[cfg(test)]
mod tests;

use gemm_dsl::target::intrinsic::CANONICAL_NAN;
use gemm_dsl::target::{FloatLayout, Format};

/// Fraction bits of a binary32.
const FRACTION: u32 = FloatLayout::BINARY32.fraction;

/// Exponent of the lowest bit of a binary32.
const LEAST: i32 = 1 - FloatLayout::BINARY32.bias() - FRACTION as i32;

/// Decoded number: `mantissa * 2^(exponent - fraction)`, where `fraction` is the format's number of
/// fraction bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaOperand {
    /// Finite number. Subnormal numbers are not normalised, so their significand is less than 1.
    Finite {
        /// Signed integer mantissa, including the hidden bit.
        mantissa: i32,
        exponent: i32,
    },
    Infinite {
        negative: bool,
    },
    Nan,
}

impl MmaOperand {
    /// Decodes a word of the given format.
    pub fn decode(format: Format, word: u32) -> Self {
        decode(word >> format.unused_bits(), format.layout())
    }
}

/// Decodes a word that consists of a sign bit, an exponent and a fraction.
fn decode(word: u32, layout: FloatLayout) -> MmaOperand {
    let (fraction, top) = (layout.fraction, layout.top());
    let negative = word >> (layout.bits() - 1) & 1 == 1;
    let exponent = word >> fraction & top;
    let behind = word & ((1 << fraction) - 1);
    if exponent == top {
        return if behind == 0 { MmaOperand::Infinite { negative } } else { MmaOperand::Nan };
    }
    let mantissa = if exponent == 0 { behind } else { behind | 1 << fraction } as i32;
    MmaOperand::Finite {
        mantissa: if negative { -mantissa } else { mantissa },
        exponent: exponent.max(1) as i32 - layout.bias(),
    }
}

/// Accumulation rules of a generation of tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulationRules {
    /// Number of fraction bits of each term that are kept, relative to the largest term.
    pub kept: u32,
    /// Number of terms per group for 16-bit operands; half as many for 32-bit operands.
    pub group: usize,
    /// Lower bound for the exponent of the largest term.
    pub least: i32,
}

impl AccumulationRules {
    /// Rules of `sm_80`, `sm_86`, `sm_87` and `sm_89`.
    pub const SM_80: AccumulationRules = AccumulationRules { kept: 24, group: 8, least: -132 };

    /// Rules of `sm_90` and later, for `mma.sync` and `wgmma`.
    pub const SM_90: AccumulationRules = AccumulationRules { kept: 25, group: 16, least: -133 };

    /// Returns the rules of an architecture, for example 90 for `sm_90`. `None` if its tensor cores
    /// do not have these formats.
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
    /// last group may be shorter.
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
    pub fn dot(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let terms = self.terms(format);
        let groups = a.chunks(terms).zip(b.chunks(terms));
        groups.fold(c, |c, (a, b)| self.fused_sum(format, a, b, c))
    }

    /// Returns the sum of `c` and the products of one group.
    pub fn fused_sum(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let addend = decode(c, FloatLayout::BINARY32);
        let MmaOperand::Finite { mantissa, exponent } = addend else {
            return special_sum(a, b, addend);
        };
        let mut largest = if mantissa == 0 { self.least } else { self.least.max(exponent) };
        for (&of_a, &of_b) in a.iter().zip(b) {
            let Some((product, exponent)) = finite_product(of_a, of_b) else {
                return special_sum(a, b, addend);
            };
            if product != 0 {
                largest = largest.max(exponent);
            }
        }
        let unit = largest - self.kept as i32;
        let mut sum = cut(mantissa.into(), exponent - FRACTION as i32 - unit);
        let behind = 2 * format.layout().fraction as i32 + unit;
        for (&a, &b) in a.iter().zip(b) {
            let Some((product, exponent)) = finite_product(a, b) else {
                unreachable!("the loop above returns for a product that is not finite")
            };
            sum += cut(product, exponent - behind);
        }
        binary32(sum, unit)
    }
}

/// Exact product of two finite operands: mantissa and exponent.
fn finite_product(a: MmaOperand, b: MmaOperand) -> Option<(i64, i32)> {
    match (a, b) {
        (
            MmaOperand::Finite { mantissa: a, exponent: of_a },
            MmaOperand::Finite { mantissa: b, exponent: of_b },
        ) => Some((i64::from(a) * i64::from(b), of_a + of_b)),
        _ => None,
    }
}

/// Returns `mantissa * 2^left`, truncated towards zero. For a nonzero mantissa, `left` must be such
/// that the result fits.
fn cut(mantissa: i64, left: i32) -> i64 {
    let size = mantissa.unsigned_abs();
    let size = match u32::try_from(left) {
        // Zero may have any exponent.
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
    /// Two flags: the sum has a positive infinity; the sum has a negative infinity.
    infinite: [bool; 2],
}

impl SpecialTerms {
    /// Records a term if it is not finite.
    fn add(&mut self, term: MmaOperand) {
        match term {
            MmaOperand::Finite { .. } => {}
            MmaOperand::Infinite { negative } => self.infinite[usize::from(negative)] = true,
            MmaOperand::Nan => self.nan = true,
        }
    }

    /// Records a product if it is not finite. An infinity times zero is NaN.
    fn add_product(&mut self, a: MmaOperand, b: MmaOperand) {
        let negative = |term| match term {
            MmaOperand::Finite { mantissa: 0, .. } | MmaOperand::Nan => None,
            MmaOperand::Finite { mantissa, .. } => Some(mantissa < 0),
            MmaOperand::Infinite { negative } => Some(negative),
        };
        if finite_product(a, b).is_some() {
            return;
        }
        match (negative(a), negative(b)) {
            (Some(a), Some(b)) => self.infinite[usize::from(a != b)] = true,
            _ => self.nan = true,
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

/// Truncates `sum * 2^unit` to a binary32. A result that truncates to zero is +0, also if the
/// sum is negative.
fn binary32(sum: i64, unit: i32) -> u32 {
    let Some(length) = sum.unsigned_abs().checked_ilog2() else { return 0 };
    let top = length as i32 + unit;
    let sign = u32::from(sum < 0) << 31;
    if top > FloatLayout::BINARY32.bias() {
        return f32::INFINITY.to_bits() | sign;
    }
    // Exponent of the mantissa's lowest bit.
    let last = (top - FRACTION as i32).max(LEAST);
    let size = sum.unsigned_abs();
    let mantissa = match u32::try_from(last - unit) {
        Ok(dropped) => size.checked_shr(dropped).unwrap_or(0),
        Err(_) => size << (unit - last),
    } as u32;
    match mantissa {
        0 => 0,
        // A subnormal number has exponent bits 0. The leading bit of a normal number is added to
        // the exponent bits.
        _ => sign | ((((last - LEAST) as u32) << FRACTION) + mantissa),
    }
}
