//! How tensor cores multiply and add, bit by bit.
//!
//! A matrix instruction ([`Mma`](gemm_dsl::ir::Mma)) adds sums of products to numbers in binary32. PTX leaves open how: in which order, and how it is
//! rounded. What GPUs do was found out by measurement (X. Li et al., "MMA-Sim", arXiv:2511.10909; F. Khattak and
//! M. Mikaitis, arXiv:2512.07004), and [`AccumulationRules::fused_sum`] says it: all terms of a
//! group, the addend among them, are cut to a grid that hangs on the largest of them, are added without an error, and the sum is cut to binary32. Nothing is
//! rounded to nearest. A sum of more terms than a group has is a chain: what one group gives is the addend of the next
//! ([`AccumulationRules::dot`]).
//!
//! Of `sm_90` this was compared with the instructions themselves, `mma.sync` and `wgmma`, on an H200 (`tests/kernels`). Of
//! `sm_80` and `sm_89` it rests on vectors that others have published (`tests/data/tensor_core`), of `sm_120` and `sm_100` on what
//! they report.

#[cfg(test)]
mod tests;

use gemm_dsl::target::Format;
use gemm_dsl::target::intrinsic::CANONICAL_NAN;

/// Bits of the mantissa of a binary32 behind the point.
const FRACTION: u32 = 23;

/// The least exponent of a bit of a binary32.
const LEAST: i32 = -149;

/// A number, taken apart: `mantissa * 2^(exponent - fraction)`, where the format says how many bits are behind the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaOperand {
    /// A number. One that is subnormal is not made normal: its mantissa is less than 1.
    Finite {
        /// Sign and mantissa, without a point.
        mantissa: i32,
        /// The exponent.
        exponent: i32,
    },
    /// An infinity.
    Infinite {
        /// Whether it is below zero.
        negative: bool,
    },
    /// None.
    Nan,
}

impl MmaOperand {
    /// Reads a word.
    pub fn decode(format: Format, word: u32) -> Self {
        let word = if format == Format::Tf32 { word >> 13 } else { word };
        let exponent_bits = if format == Format::F16 { 5 } else { 8 };
        decode(word, exponent_bits, format.fraction(), format.bias())
    }
}

/// A word of one sign, an exponent and a mantissa.
fn decode(word: u32, exponent_bits: u32, fraction: u32, bias: i32) -> MmaOperand {
    let negative = word >> (exponent_bits + fraction) & 1 == 1;
    let top = (1 << exponent_bits) - 1;
    let exponent = word >> fraction & top;
    let behind = word & ((1 << fraction) - 1);
    if exponent == top {
        return if behind == 0 { MmaOperand::Infinite { negative } } else { MmaOperand::Nan };
    }
    let mantissa = if exponent == 0 { behind } else { behind | 1 << fraction } as i32;
    MmaOperand::Finite {
        mantissa: if negative { -mantissa } else { mantissa },
        exponent: exponent.max(1) as i32 - bias,
    }
}

/// How the tensor cores of a generation sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulationRules {
    /// Bits behind the point of the largest term that are kept of every term.
    pub kept: u32,
    /// Terms of a group where words have 16 bits; where they have 32 half as many.
    pub group: usize,
    /// The exponent that the largest term has at least.
    pub least: i32,
}

impl AccumulationRules {
    /// Those of `sm_80`, `sm_86`, `sm_87` and `sm_89`.
    pub const SM_80: AccumulationRules = AccumulationRules { kept: 24, group: 8, least: -132 };

    /// Those of `sm_90` and of what came since, of `mma.sync` and of `wgmma`.
    pub const SM_90: AccumulationRules = AccumulationRules { kept: 25, group: 16, least: -133 };

    /// Those of an architecture, 90 for `sm_90`; none of one whose tensor cores take no numbers like these.
    pub const fn for_arch(arch: u32) -> Option<AccumulationRules> {
        match arch {
            0..80 => None,
            80..90 => Some(Self::SM_80),
            _ => Some(Self::SM_90),
        }
    }

    /// Terms of a group.
    pub const fn terms(self, format: Format) -> usize {
        match format.bits() {
            16 => self.group,
            _ => self.group / 2,
        }
    }

    /// `c` and the products of `a` and `b`, summed in the order of k: a chain of groups. What is left over is a group of
    /// its own.
    ///
    /// ```
    /// use gemm_dsl::target::Format;
    /// use gemm_sim::tensor_core::{AccumulationRules, MmaOperand};
    ///
    /// // Terms of 1, 2 and 4 eighths below 2^23: of them those are seen that are kept, and the sum is cut.
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

    /// `c` and the products of one group.
    pub fn fused_sum(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let addend = decode(c, 8, FRACTION, 127);
        let mut special = SpecialTerms::default();
        let mut largest = self.least;
        if let Some((mantissa, exponent)) = special.finite(addend)
            && mantissa != 0
        {
            largest = largest.max(exponent);
        }
        for (a, b) in a.iter().zip(b) {
            if let Some((mantissa, exponent)) = special.product(*a, *b)
                && mantissa != 0
            {
                largest = largest.max(exponent);
            }
        }
        if let Some(bits) = special.result() {
            return bits;
        }
        // From here on all are finite.
        let mut sum = self.cut(special.finite(addend), FRACTION, largest);
        for (a, b) in a.iter().zip(b) {
            sum += self.cut(special.product(*a, *b), 2 * format.fraction(), largest);
        }
        binary32(sum, largest - self.kept as i32)
    }

    /// A term of `behind` bits behind its point as a multiple of the last bit that is kept, the rest cut off.
    fn cut(self, term: Option<(i64, i32)>, behind: u32, largest: i32) -> i64 {
        let Some((mantissa, exponent)) = term.filter(|(mantissa, _)| *mantissa != 0) else {
            return 0;
        };
        let left = self.kept as i32 - behind as i32 - (largest - exponent);
        let size = mantissa.unsigned_abs();
        let size = match u32::try_from(left) {
            Ok(left) => size << left,
            Err(_) => size.checked_shr(left.unsigned_abs()).unwrap_or(0),
        };
        if mantissa < 0 { -(size as i64) } else { size as i64 }
    }
}

/// What is not finite among the terms of a sum.
#[derive(Clone, Copy, Debug, Default)]
struct SpecialTerms {
    nan: bool,
    /// An infinity above zero, one below.
    infinite: [bool; 2],
}

impl SpecialTerms {
    /// A term that is a number of its own.
    fn finite(&mut self, term: MmaOperand) -> Option<(i64, i32)> {
        match term {
            MmaOperand::Finite { mantissa, exponent } => {
                return Some((mantissa.into(), exponent));
            }
            MmaOperand::Infinite { negative } => self.infinite[usize::from(negative)] = true,
            MmaOperand::Nan => self.nan = true,
        }
        None
    }

    /// A term that is a product.
    fn product(&mut self, a: MmaOperand, b: MmaOperand) -> Option<(i64, i32)> {
        let negative = |term| match term {
            MmaOperand::Finite { mantissa: 0, .. } | MmaOperand::Nan => None,
            MmaOperand::Finite { mantissa, .. } => Some(mantissa < 0),
            MmaOperand::Infinite { negative } => Some(negative),
        };
        match (a, b) {
            (
                MmaOperand::Finite { mantissa: a, exponent: of_a },
                MmaOperand::Finite { mantissa: b, exponent: of_b },
            ) => return Some((i64::from(a) * i64::from(b), of_a + of_b)),
            // An infinity times zero is none, too.
            (a, b) => match (negative(a), negative(b)) {
                (Some(a), Some(b)) => self.infinite[usize::from(a != b)] = true,
                _ => self.nan = true,
            },
        }
        None
    }

    /// The sum, where it is not finite.
    fn result(self) -> Option<u32> {
        match (self.nan, self.infinite) {
            (true, _) | (_, [true, true]) => Some(CANONICAL_NAN),
            (_, [true, false]) => Some(f32::INFINITY.to_bits()),
            (_, [false, true]) => Some(f32::NEG_INFINITY.to_bits()),
            (false, [false, false]) => None,
        }
    }
}

/// `sum * 2^unit`, cut to a binary32. What has no bit left is +0, whatever its sign was.
fn binary32(sum: i64, unit: i32) -> u32 {
    let Some(length) = sum.unsigned_abs().checked_ilog2() else { return 0 };
    let top = length as i32 + unit;
    let sign = u32::from(sum < 0) << 31;
    if top >= 128 {
        return f32::INFINITY.to_bits() | sign;
    }
    // The last bit of the mantissa.
    let last = (top - FRACTION as i32).max(LEAST);
    let size = sum.unsigned_abs();
    let mantissa = match u32::try_from(last - unit) {
        Ok(dropped) => size.checked_shr(dropped).unwrap_or(0),
        Err(_) => size << (unit - last),
    } as u32;
    match mantissa {
        0 => 0,
        // A subnormal one has the exponent bits 0, and a normal one adds its leading bit to them.
        _ => sign | ((((last - LEAST) as u32) << FRACTION) + mantissa),
    }
}
