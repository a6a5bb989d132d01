//! Bit-exact arithmetic of tensor cores.
//!
//! A matrix instruction ([`Mma`](gemm_dsl::ir::Mma)) adds dot products to binary32 accumulators.
//! PTX leaves the order and the rounding open. The behaviour of GPUs is known from measurements (X.
//! Li et al., "MMA-Sim", arXiv:2511.10909; F. Khattak and M. Mikaitis, arXiv:2512.07004).
//! [`AccumulationRules::dot`] implements it: all terms of a group, the addend included, are
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
use pulp::{Arch, NullaryFnOnce};

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

    /// Decodes a word of the given format. Of a short format, its low bits count.
    pub fn decode(format: Format, word: u32) -> Self {
        match format.layout() {
            Some(layout) => decode(word >> format.unused_bits(), layout),
            None => {
                let byte = word as u8;
                let signed = i32::from(byte as i8);
                let mantissa = if format == Format::I8 { signed } else { byte.into() };
                Self { mantissa, exponent: 0 }
            }
        }
    }
}

/// Decodes a word of a sign bit, an exponent and a fraction, without branches.
#[inline(always)]
fn decode(word: u32, layout: FloatLayout) -> MmaOperand {
    let (fraction, top) = (layout.fraction, layout.top());
    let (exponent, behind) = (word >> fraction & top, word & ((1 << fraction) - 1));
    let hidden = u32::from(exponent != 0) << fraction;
    let size = (behind | hidden) as i32;
    let finite = exponent.max(1) as i32 - layout.bias();
    let finite = if size == 0 { ZERO } else { finite };
    let is_greatest = word & layout.greatest() == layout.greatest();
    let is_special = if layout.infinities { exponent == top } else { is_greatest };
    // An infinity has the mantissa 1 or -1, NaN has 0.
    let size = if is_special { i32::from(behind == 0) } else { size };
    let is_negative = word >> (layout.bits() - 1) & 1 == 1;
    MmaOperand {
        mantissa: if is_negative { -size } else { size },
        exponent: if is_special { SPECIAL } else { finite },
    }
}

/// Accumulation rules of a generation of tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccumulationRules {
    /// Fraction bits of each term that are kept, relative to the largest term.
    pub kept: u32,
    /// Number of terms per group for 16-bit operands; half as many for 32-bit operands, and twice
    /// as many for 8-bit operands.
    pub group: usize,
    /// Lower bound of the largest term's exponent.
    pub least: i32,
    /// Fraction bits of a sum. The others of a binary32 are 0.
    pub fraction: u32,
}

impl AccumulationRules {
    /// Rules of `sm_80`, `sm_86`, `sm_87` and `sm_89`.
    pub const SM_80: AccumulationRules =
        AccumulationRules { kept: 24, group: 8, least: -132, fraction: FRACTION };

    /// Rules of `sm_90` and later, for `mma.sync` and `wgmma`.
    pub const SM_90: AccumulationRules =
        AccumulationRules { kept: 25, group: 16, least: -133, fraction: FRACTION };

    /// Rules of `wgmma` for floating-point operands of 8 bits, on `sm_90`.
    pub const FP8: AccumulationRules =
        AccumulationRules { kept: 13, group: 16, least: -126, fraction: 13 };

    /// Returns the rules of `wgmma` for operands of a format.
    pub fn of_warpgroups(self, format: Format) -> AccumulationRules {
        if format.bits() == 8 { Self::FP8 } else { self }
    }

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
        self.group * 16 / format.bits() as usize
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
    pub fn dot(self, format: Format, a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        self.dot_of([format; 2], a, b, c)
    }

    /// As [`dot`](Self::dot), for `a` and `b` of two formats. Sums of integers wrap.
    pub fn dot_of(self, formats: [Format; 2], a: &[MmaOperand], b: &[MmaOperand], c: u32) -> u32 {
        let mut sum = [c];
        if formats[0].is_integer() {
            add_integers(a, &Lines::new(b, 1), &mut sum);
            return sum[0];
        }
        let (mut largest, mut totals, mut parts) = ([0], [0], [0]);
        let room = Room { largest: &mut largest, totals: &mut totals, parts: &mut parts };
        let mut adder = Adder { rules: self, formats, room };
        let terms = self.terms(formats[0]);
        for (a, b) in a.chunks(terms).zip(b.chunks(terms)) {
            let (mut mantissas, mut exponents) = ([0; Format::MOST_TERMS], [0; Format::MOST_TERMS]);
            for (k, b) in b.iter().enumerate() {
                (mantissas[k], exponents[k]) = (b.mantissa, b.exponent);
            }
            let terms = a.len();
            let b = Terms { mantissas: &mantissas[..terms], exponents: &exponents[..terms] };
            adder.add(a, b, &mut sum);
        }
        sum[0]
    }

    /// Adds the dot product of each row of `rows` and each line of `lines` to a sum, as
    /// [`dot`](Self::dot) does, with the vector instructions of `arch`. The elements of a row are
    /// adjacent, and so are its sums.
    pub(crate) fn add_products(
        self,
        arch: Arch,
        formats: [Format; 2],
        rows: &[MmaOperand],
        lines: &Lines,
        sums: &mut [u32],
    ) {
        if formats[0].is_integer() {
            return add_integers(rows, lines, sums);
        }
        arch.dispatch(Products { rules: self, formats, rows, lines, sums });
    }
}

/// Arguments of [`AccumulationRules::add_products`]. They are no captures of a closure, because the
/// compiler does not inline every call of a closure, as vector instructions need it.
struct Products<'p> {
    rules: AccumulationRules,
    formats: [Format; 2],
    rows: &'p [MmaOperand],
    lines: &'p Lines,
    sums: &'p mut [u32],
}

impl NullaryFnOnce for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { rules, formats, rows, lines, sums } = self;
        let (width, length) = (lines.count, lines.mantissas.len() / lines.count);
        let (mut largest, mut parts, mut totals) = (vec![0; width], vec![0; width], vec![0; width]);
        let room = Room { largest: &mut largest, parts: &mut parts, totals: &mut totals };
        let mut adder = Adder { rules, formats, room };
        let terms = rules.terms(formats[0]);
        for (row, sums) in rows.chunks(length).zip(sums.chunks_mut(width)) {
            let mantissas = lines.mantissas.chunks(terms * width);
            let exponents = lines.exponents.chunks(terms * width);
            for ((a, mantissas), exponents) in row.chunks(terms).zip(mantissas).zip(exponents) {
                adder.add(a, Terms { mantissas, exponents }, sums);
            }
        }
    }
}

/// Rows of A or columns of B, stored by K: the elements of all lines for the same K are adjacent.
#[derive(Clone, Debug)]
pub(crate) struct Lines {
    count: usize,
    mantissas: Vec<i32>,
    exponents: Vec<i32>,
}

impl Lines {
    /// Transposes `count` lines.
    pub(crate) fn new(lines: &[MmaOperand], count: usize) -> Self {
        let length = lines.len() / count;
        let by_k = |of: fn(&MmaOperand) -> i32| {
            (0..length).flat_map(|k| lines[k..].iter().step_by(length).map(of)).collect()
        };
        Self { count, mantissas: by_k(|of| of.mantissa), exponents: by_k(|of| of.exponent) }
    }
}

/// Terms of one group, of one or more lines, by K.
#[derive(Clone, Copy)]
struct Terms<'t> {
    mantissas: &'t [i32],
    exponents: &'t [i32],
}

/// Intermediate results of each line.
struct Room<'r> {
    /// Largest exponent of a term.
    largest: &'r mut [i32],
    /// Sum of the terms of half a group.
    parts: &'r mut [i32],
    /// Sum of all terms.
    totals: &'r mut [i64],
}

/// Adds groups of products to sums.
struct Adder<'r> {
    rules: AccumulationRules,
    formats: [Format; 2],
    room: Room<'r>,
}

impl Adder<'_> {
    /// Adds the products of one group to the sums. The compiler vectorises the loops over lines:
    /// they have no branches, and wrapping operations, because checks of overflow in debug builds
    /// would prevent it.
    #[inline(always)]
    fn add(&mut self, a: &[MmaOperand], b: Terms<'_>, sums: &mut [u32]) {
        let width = sums.len();
        let Room { largest, parts, totals } = &mut self.room;
        let kept = self.rules.kept;
        for (largest, sum) in largest.iter_mut().zip(&*sums) {
            *largest = self.rules.least.max(decode(*sum, FloatLayout::BINARY32).exponent);
        }
        for (a, exponents) in a.iter().zip(b.exponents.chunks(width)) {
            for (largest, exponent) in largest.iter_mut().zip(exponents) {
                *largest = (*largest).max(a.exponent.wrapping_add(*exponent));
            }
        }
        for (total, (sum, largest)) in totals.iter_mut().zip(sums.iter().zip(&**largest)) {
            let addend = decode(*sum, FloatLayout::BINARY32);
            // With fewer kept bits than those of a binary32, the addend is shifted right.
            let (left, right) = (kept.saturating_sub(FRACTION), FRACTION.saturating_sub(kept));
            let exponent = addend.exponent.wrapping_sub(right as i32);
            *total = aligned(addend.mantissa, left, exponent, *largest).into();
        }
        // All products are shifted left by `left`. Products without the largest exponent are then
        // shifted right.
        let fraction = |format: Format| format.layout().map_or(0, |layout| layout.fraction);
        let left = kept - fraction(self.formats[0]) - fraction(self.formats[1]);
        let mantissas = b.mantissas.chunks(HALF_GROUP * width);
        let halves = mantissas.zip(b.exponents.chunks(HALF_GROUP * width));
        for (a, (mantissas, exponents)) in a.chunks(HALF_GROUP).zip(halves) {
            parts.fill(0);
            let terms = mantissas.chunks(width).zip(exponents.chunks(width));
            for (a, (mantissas, exponents)) in a.iter().zip(terms) {
                let b = mantissas.iter().zip(exponents);
                for (part, ((mantissa, exponent), largest)) in
                    parts.iter_mut().zip(b.zip(&**largest))
                {
                    let product = a.mantissa.wrapping_mul(*mantissa);
                    let exponent = a.exponent.wrapping_add(*exponent);
                    *part = part.wrapping_add(aligned(product, left, exponent, *largest));
                }
            }
            for (total, part) in totals.iter_mut().zip(&**parts) {
                *total = total.wrapping_add((*part).into());
            }
        }
        if largest.iter().any(|largest| *largest > FINITE) {
            self.add_special(a, b, sums);
        } else {
            for (sum, (total, largest)) in sums.iter_mut().zip(totals.iter().zip(&**largest)) {
                *sum = binary32(*total, largest.wrapping_sub(kept as i32), self.rules.fraction);
            }
        }
    }

    /// Stores the sums, some of which have terms that are not finite.
    #[cold]
    fn add_special(&self, a: &[MmaOperand], b: Terms<'_>, sums: &mut [u32]) {
        let width = sums.len();
        for (line, sum) in sums.iter_mut().enumerate() {
            let largest = self.room.largest[line];
            if largest <= FINITE {
                let unit = largest - self.rules.kept as i32;
                *sum = binary32(self.room.totals[line], unit, self.rules.fraction);
                continue;
            }
            let mut special = SpecialTerms::default();
            special.add(decode(*sum, FloatLayout::BINARY32));
            for (k, a) in a.iter().enumerate() {
                let at = k * width + line;
                let b = MmaOperand { mantissa: b.mantissas[at], exponent: b.exponents[at] };
                special.add_product(*a, b);
            }
            *sum = special.result();
        }
    }
}

/// Products whose sum fits in an `i32`: each is less than 2^27.
const HALF_GROUP: usize = 8;

/// `mantissa * 2^left`, shifted right by the distance from `exponent` to `largest` and truncated
/// towards zero.
#[inline(always)]
fn aligned(mantissa: i32, left: u32, exponent: i32, largest: i32) -> i32 {
    let right = largest.wrapping_sub(exponent).min(31) as u32;
    let size = ((mantissa.unsigned_abs() << left) >> right) as i32;
    if mantissa < 0 { size.wrapping_neg() } else { size }
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
            (false, [false, false]) => unreachable!("Adder::add_special: a term is not finite"),
        }
    }
}

/// Adds the dot products of rows and lines of integers to sums, modulo 2^32.
fn add_integers(rows: &[MmaOperand], lines: &Lines, sums: &mut [u32]) {
    let (width, length) = (lines.count, lines.mantissas.len() / lines.count);
    for (row, sums) in rows.chunks(length).zip(sums.chunks_mut(width)) {
        for (a, mantissas) in row.iter().zip(lines.mantissas.chunks(width)) {
            for (sum, b) in sums.iter_mut().zip(mantissas) {
                *sum = sum.wrapping_add(a.mantissa.wrapping_mul(*b) as u32);
            }
        }
    }
}

/// Truncates `sum * 2^unit`, less than 2^32 in size, to a binary32 of which `fraction` bits are
/// kept. A result without bits is +0, regardless of its sign.
#[inline(always)]
fn binary32(sum: i64, unit: i32, fraction: u32) -> u32 {
    let size = sum.unsigned_abs() as u32;
    // For a sum of 0, any exponent gives the mantissa 0.
    let top = 31_i32.wrapping_sub(size.leading_zeros() as i32).wrapping_add(unit);
    // Exponent of the lowest mantissa bit.
    let dropped_bits = FRACTION - fraction;
    let last = top.wrapping_sub(fraction as i32).max(LEAST + dropped_bits as i32);
    let dropped = last.wrapping_sub(unit);
    let mantissa = if dropped > 31 {
        0
    } else if dropped >= 0 {
        size >> (dropped & 31)
    } else {
        size << (dropped.wrapping_neg() & 31)
    };
    let (mantissa, last) = (mantissa << dropped_bits, last.wrapping_sub(dropped_bits as i32));
    // A subnormal number has exponent bits 0; the leading bit of a normal one adds to them.
    let finite = ((last.wrapping_sub(LEAST) as u32) << FRACTION).wrapping_add(mantissa);
    let is_finite = top <= FloatLayout::BINARY32.bias();
    let bits = if is_finite { finite } else { f32::INFINITY.to_bits() };
    let sign = u32::from(sum < 0) << 31;
    if mantissa == 0 { 0 } else { sign | bits }
}
