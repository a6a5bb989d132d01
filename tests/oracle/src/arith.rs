//! Independent reference for GEMMs on tensor cores in each arithmetic: splits, grouping of
//! products, and values that the split cannot represent.

use gemm_dsl::spec::{Arith, Instruction, SgemmSpec, newer_word};
use gemm_dsl::target::Format;
use gemm_sim::tensor_core::{AccumulationRules, MmaOperand};
use half::{bf16, f16};

/// Rules for the summation of a part of K on tensor cores.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    arith: Arith,
    format: Format,
    /// Extent of the K tile, and number of thread groups that share its steps.
    bk: usize,
    slices: usize,
    /// Number of steps that are summed from zero before promotion. `None` if the accumulator is
    /// never promoted.
    promote: Option<usize>,
    /// True if the loop over pairs of components, smallest first, is outside of the loop over the
    /// steps of a promotion. False if it is inside.
    by_splits: bool,
    /// Exponents of the powers of two by which the numbers of A and of B are scaled.
    exponents: [i32; 2],
    rules: AccumulationRules,
}

impl Cores {
    /// Reference for a spec, or None if it does not use tensor cores.
    pub fn of(spec: &SgemmSpec) -> Option<Self> {
        let format = match spec.arith {
            Arith::F32 => return None,
            Arith::Bf16 | Arith::Bf16x6 | Arith::Bf16x9 => Format::Bf16,
            Arith::F16 | Arith::F16x3 => Format::F16,
            Arith::Tf32 | Arith::Tf32x3 => Format::Tf32,
            arith => newer_word(arith),
        };
        let stands_for_f32 =
            matches!(spec.arith, Arith::Bf16x6 | Arith::Bf16x9 | Arith::Tf32x3 | Arith::F16x3);
        let (bk, slices) = (spec.tile?.k as usize, spec.slices as usize);
        let by_splits = spec.mma == Instruction::Wgmma;
        let promote = match spec.promote {
            Some(terms) => Some(terms as usize / terms_of(format)),
            None if by_splits => stands_for_f32.then_some(bk / terms_of(format)),
            None => stands_for_f32.then_some(1),
        };
        let (arith, rules) = (spec.arith, AccumulationRules::SM_90);
        let exponents = [0, 0];
        Some(Self { arith, format, bk, slices, promote, by_splits, exponents, rules })
    }

    /// Sets the scales for an element of C from the largest magnitudes of its row of A and column
    /// of B.
    #[must_use]
    pub fn of_lines(self, greatest: [f32; 2]) -> Self {
        // The largest magnitude is scaled to the range 2^13 .. 2^14.
        let exponent = |most: f32| if most == 0.0 { 0 } else { 13 - exponent(most) };
        let exponents = if self.arith == Arith::F16x3 { greatest.map(exponent) } else { [0, 0] };
        Self { exponents, ..self }
    }

    /// True if the split cannot represent one of these numbers. The GEMM then uses the f32
    /// fallback.
    pub fn refuse<'a>(&self, mut numbers: impl Iterator<Item = &'a f32>) -> bool {
        self.by_splits && numbers.any(|number| is_lost(self.arith, *number))
    }

    /// True if a row of A or a column of B with this largest magnitude cannot be scaled.
    pub fn refuse_line(&self, greatest: f32) -> bool {
        self.arith == Arith::F16x3 && greatest != 0.0 && exponent(greatest) < 14 - 127
    }

    /// Sum of the products of a part, in ascending K.
    pub fn sum(&self, terms: &[(f32, f32)]) -> f32 {
        let is_lost = |&(a, b): &(f32, f32)| is_lost(self.arith, a) || is_lost(self.arith, b);
        let in_f32 = || terms.iter().fold(0.0, |sum, (a, b)| f32::mul_add(*a, *b, sum));
        if terms.iter().any(is_lost) {
            return in_f32();
        }
        if self.exponents != [0, 0] {
            let [of_a, of_b] = self.exponents.map(|exponent| 2f32.powi(exponent));
            let scaled: Vec<_> = terms.iter().map(|(a, b)| (a * of_a, b * of_b)).collect();
            let sum = Self { exponents: [0, 0], ..*self }.sum(&scaled);
            // If the combined scale is a normal number, there is one multiplication. Otherwise the
            // smaller factor is applied first.
            let [a, b] = self.exponents.map(|exponent| 2f32.powi(-exponent));
            let is_normal = (a * b).is_normal();
            return if is_normal { sum * (a * b) } else { sum * a.min(b) * a.max(b) };
        }
        let of_slice = |slice| self.of_slice(slice, terms);
        let sum = (0..self.slices).map(of_slice).reduce(|all, next| all + next).unwrap_or(0.0);
        // FP32 emulation recomputes sums that leave the range.
        let emulates = matches!(self.arith, Arith::Bf16x6 | Arith::Bf16x9 | Arith::Tf32x3);
        if emulates && !sum.is_finite() { in_f32() } else { sum }
    }

    fn of_slice(&self, slice: usize, terms: &[(f32, f32)]) -> f32 {
        let mut sum = 0f32;
        for tile in terms.chunks(self.bk) {
            let width = terms_of(self.format);
            let mut steps: Vec<&[(f32, f32)]> = tile.chunks(width).collect();
            steps.resize(self.bk / width, &[]);
            let own: Vec<_> = steps.into_iter().skip(slice).step_by(self.slices).collect();
            match self.promote {
                None => sum = self.steps(&own, sum),
                Some(together) => {
                    for steps in own.chunks(together) {
                        sum += self.steps(steps, 0.0);
                    }
                }
            }
        }
        sum
    }

    /// Adds the products of several steps to a sum, the smallest components first.
    fn steps(&self, steps: &[&[(f32, f32)]], sum: f32) -> f32 {
        let products: &[[usize; 2]] = match self.arith {
            Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => &[[0, 0]],
            Arith::Tf32x3 | Arith::F16x3 => &[[1, 0], [0, 1], [0, 0]],
            Arith::Bf16x6 => &[[1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]],
            Arith::Bf16x9 => {
                &[[2, 2], [2, 1], [1, 2], [1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]]
            }
            arith => newer_word(arith),
        };
        let of_steps = |sum, splits: &[[usize; 2]]| {
            let each = steps.iter().flat_map(|step| splits.iter().map(move |of| (step, *of)));
            each.fold(sum, |sum, (step, of)| self.product(step, of, sum))
        };
        let sum = match self.by_splits {
            false => of_steps(sum.to_bits(), products),
            true => products.iter().fold(sum.to_bits(), |sum, of| of_steps(sum, &[*of])),
        };
        f32::from_bits(sum)
    }

    /// Adds the products of two components in one step to a sum.
    fn product(&self, terms: &[(f32, f32)], [of_a, of_b]: [usize; 2], sum: u32) -> u32 {
        let split = |value: f32, of: usize| self.decoded(splits(self.arith, value)[of]);
        let mut a: Vec<MmaOperand> = terms.iter().map(|(a, _)| split(*a, of_a)).collect();
        let mut b: Vec<MmaOperand> = terms.iter().map(|(_, b)| split(*b, of_b)).collect();
        let zero = self.decoded(0.0);
        a.resize(terms_of(self.format), zero);
        b.resize(terms_of(self.format), zero);
        self.rules.dot(self.format, &a, &b, sum)
    }

    fn decoded(&self, value: f32) -> MmaOperand {
        MmaOperand::decode(
            self.format,
            match self.format {
                Format::Bf16 => bf16::from_f32(value).to_bits().into(),
                Format::F16 => f16::from_f32(value).to_bits().into(),
                Format::Tf32 => value.to_bits(),
                other => unreachable!("no number in `f32` is converted to {other:?}"),
            },
        )
    }
}

/// Exponent of a non-zero number. All subnormals have the exponent −127.
fn exponent(value: f32) -> i32 {
    (value.abs().to_bits() >> 23) as i32 - 127
}

/// Extent of K of one matrix instruction.
fn terms_of(format: Format) -> usize {
    256 / format.bits() as usize
}

/// Splits a number into components of a smaller format, the largest first. Their sum approximates
/// the number.
fn splits(arith: Arith, value: f32) -> Vec<f32> {
    let count = match arith {
        Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => 1,
        Arith::Tf32x3 | Arith::F16x3 => 2,
        Arith::Bf16x6 | Arith::Bf16x9 => 3,
        arith => newer_word(arith),
    };
    let mut rest = value;
    let mut next = || {
        let split = rounded(arith, rest);
        rest -= split;
        split
    };
    (0..count).map(|_| next()).collect()
}

/// Rounds a number to the format of an arithmetic.
fn rounded(arith: Arith, value: f32) -> f32 {
    match arith {
        Arith::F32 => value,
        Arith::Bf16 | Arith::Bf16x6 | Arith::Bf16x9 => bf16::from_f32(value).to_f32(),
        Arith::F16 | Arith::F16x3 => f16::from_f32(value).to_f32(),
        Arith::Tf32 | Arith::Tf32x3 if value.is_finite() => {
            // Half of the last kept bit is added to the magnitude, and the rest is truncated.
            f32::from_bits((value.to_bits() + (1 << 12)) & !0x1fff)
        }
        Arith::Tf32 | Arith::Tf32x3 => value,
        arith => newer_word(arith),
    }
}

/// True if the split of an emulation arithmetic cannot represent the number.
fn is_lost(arith: Arith, value: f32) -> bool {
    match arith {
        Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => false,
        Arith::Bf16x6 | Arith::Bf16x9 => {
            let sum: f64 = splits(arith, value).into_iter().map(f64::from).sum();
            sum != f64::from(value)
        }
        Arith::F16x3 => !value.is_finite(),
        Arith::Tf32x3 => {
            let least = 2f32.powi(-112);
            let rounds_to_infinity = rounded(arith, value).is_infinite();
            value != 0.0 && (value.is_nan() || rounds_to_infinity || value.abs() < least)
        }
        arith => newer_word(arith),
    }
}
