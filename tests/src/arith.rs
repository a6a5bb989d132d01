//! What a product in each arithmetic of tensor cores sums, said from scratch: how a number is taken apart, which products
//! are summed together, and which numbers are too hard to take apart.

use gemm_dsl::spec::{Arith, SgemmSpec};
use gemm_dsl::tensor_core::{Format, Operand, Rules};
use half::{bf16, f16};

/// How tensor cores sum a part of K.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    arith: Arith,
    format: Format,
    /// Terms of a tile, and groups of threads that share its steps.
    bk: usize,
    slices: usize,
    /// Steps that are summed from zero on; `None` where all are.
    promote: Option<usize>,
    rules: Rules,
}

impl Cores {
    /// Of a spec that asks them.
    pub fn of(spec: &SgemmSpec) -> Option<Self> {
        let format = match spec.arith {
            Arith::F32 => return None,
            Arith::Bf16 | Arith::Bf16x6 | Arith::Bf16x9 => Format::Bf16,
            Arith::F16 => Format::F16,
            Arith::Tf32 | Arith::Tf32x3 => Format::Tf32,
        };
        let stands_for_f32 = matches!(spec.arith, Arith::Bf16x6 | Arith::Bf16x9 | Arith::Tf32x3);
        let promote = match spec.promote {
            Some(terms) => Some(terms as usize / terms_of(format)),
            None => stands_for_f32.then_some(1),
        };
        let (bk, slices) = (spec.tile?.k as usize, spec.slices as usize);
        Some(Self { arith: spec.arith, format, bk, slices, promote, rules: Rules::SM_90 })
    }

    /// The sum of the terms of a part, in ascending K.
    pub fn sum(&self, terms: &[(f32, f32)]) -> f32 {
        let is_lost = |&(a, b): &(f32, f32)| is_lost(self.arith, a) || is_lost(self.arith, b);
        if terms.iter().any(is_lost) {
            return terms.iter().fold(0.0, |sum, (a, b)| f32::mul_add(*a, *b, sum));
        }
        let of_slice = |slice| self.of_slice(slice, terms);
        (0..self.slices).map(of_slice).reduce(|all, next| all + next).unwrap_or(0.0)
    }

    fn of_slice(&self, slice: usize, terms: &[(f32, f32)]) -> f32 {
        let mut sum = 0f32;
        for tile in terms.chunks(self.bk) {
            let width = terms_of(self.format);
            let mut steps: Vec<&[(f32, f32)]> = tile.chunks(width).collect();
            steps.resize(self.bk / width, &[]);
            let own: Vec<_> = steps.into_iter().skip(slice).step_by(self.slices).collect();
            match self.promote {
                None => sum = own.into_iter().fold(sum, |sum, step| self.step(step, sum)),
                Some(together) => {
                    for steps in own.chunks(together) {
                        sum += steps.iter().fold(0.0, |sum, step| self.step(step, sum));
                    }
                }
            }
        }
        sum
    }

    /// The products of one step, small ones first, added to a sum.
    fn step(&self, terms: &[(f32, f32)], sum: f32) -> f32 {
        let planes: Vec<_> =
            terms.iter().map(|(a, b)| [planes(self.arith, *a), planes(self.arith, *b)]).collect();
        let products: &[[usize; 2]] = match self.arith {
            Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => &[[0, 0]],
            Arith::Tf32x3 => &[[1, 0], [0, 1], [0, 0]],
            Arith::Bf16x6 => &[[1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]],
            Arith::Bf16x9 => {
                &[[2, 2], [2, 1], [1, 2], [1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]]
            }
        };
        let sum = products.iter().fold(sum.to_bits(), |sum, [of_a, of_b]| {
            let mut a: Vec<Operand> = planes.iter().map(|[a, _]| self.decoded(a[*of_a])).collect();
            let mut b: Vec<Operand> = planes.iter().map(|[_, b]| self.decoded(b[*of_b])).collect();
            let zero = self.decoded(0.0);
            a.resize(terms_of(self.format), zero);
            b.resize(terms_of(self.format), zero);
            self.rules.dot(self.format, &a, &b, sum)
        });
        f32::from_bits(sum)
    }

    fn decoded(&self, value: f32) -> Operand {
        self.format.decode(match self.format {
            Format::Bf16 => bf16::from_f32(value).to_bits().into(),
            Format::F16 => f16::from_f32(value).to_bits().into(),
            Format::Tf32 => value.to_bits(),
        })
    }
}

/// Terms of one matrix instruction.
fn terms_of(format: Format) -> usize {
    match format {
        Format::Bf16 | Format::F16 => 16,
        Format::Tf32 => 8,
    }
}

/// A number as the sum of numbers of a smaller format, the largest first.
fn planes(arith: Arith, value: f32) -> Vec<f32> {
    let count = match arith {
        Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => 1,
        Arith::Tf32x3 => 2,
        Arith::Bf16x6 | Arith::Bf16x9 => 3,
    };
    let mut rest = value;
    let mut next = || {
        let plane = rounded(arith, rest);
        rest -= plane;
        plane
    };
    (0..count).map(|_| next()).collect()
}

/// A number of the format of an arithmetic.
fn rounded(arith: Arith, value: f32) -> f32 {
    match arith {
        Arith::F32 => value,
        Arith::Bf16 | Arith::Bf16x6 | Arith::Bf16x9 => bf16::from_f32(value).to_f32(),
        Arith::F16 => f16::from_f32(value).to_f32(),
        Arith::Tf32 | Arith::Tf32x3 if value.is_finite() => {
            // Half of the last bit that is kept is added to the magnitude, and what is behind it cut.
            f32::from_bits((value.to_bits() + (1 << 12)) & !0x1fff)
        }
        Arith::Tf32 | Arith::Tf32x3 => value,
    }
}

/// Whether a number is none that the formats of an arithmetic hold, though it stands for `f32`.
fn is_lost(arith: Arith, value: f32) -> bool {
    match arith {
        Arith::F32 | Arith::Bf16 | Arith::F16 | Arith::Tf32 => false,
        Arith::Bf16x6 | Arith::Bf16x9 => {
            let sum: f64 = planes(arith, value).into_iter().map(f64::from).sum();
            sum != f64::from(value)
        }
        Arith::Tf32x3 => {
            let least = 2f32.powi(-112);
            let rounds_to_infinity = rounded(arith, value).is_infinite();
            value != 0.0 && (value.is_nan() || rounds_to_infinity || value.abs() < least)
        }
    }
}
