//! Reference results of reductions in `f64`, and error bounds.

use crate::UNIT;
use crate::depth::{Depth, passes};
use gemm_dsl::plan::{ReducePlan, Share};
use gemm_dsl::spec::{Op, newer_word};
use rayon::prelude::*;

/// Elements that one host thread combines at a time.
const CHUNK: usize = 1 << 16;

/// Reference result of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    op: Op,
    len: usize,
    /// Result in `f64`.
    pub value: f64,
    /// Number of factors with which a product rounds: all except 0 and powers of two.
    rough: usize,
    /// Scale of the errors: Σ|x| for a sum, otherwise the magnitude of the value.
    scale: f64,
}

/// Result compared with the reference.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// Error relative to its scale. Infinite for a NaN.
    pub error: f64,
    /// Allowed error.
    pub allowed: f64,
    /// True if the error is within the bound.
    pub ok: bool,
}

/// Reason why results cannot be checked. Usually, a correct kernel may exceed the range of `f32` in
/// some order of the operations.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Unjudged {
    /// The operator is not a sum, product or extremum of whole arrays.
    #[error(
        "the result of `op: {0}` is not a float of whole arrays alone, and these bounds are those \
         of sums, products and extrema. Use `sum`, `prod`, `max` or `min`; `rows` has the others"
    )]
    Op(Op),
    #[error(
        "the magnitudes of these values add up to {0:.1e}, and float32 ends at 3.4e38, so that a \
         right kernel may overflow. Scale them"
    )]
    Sum(f64),
    /// A product of some of the factors overflows.
    #[error(
        "the product of those of these values that are beyond ±1 is {0:.1e}, and float32 ends at \
         3.4e38: multiplied in another order, even a product that is small may overflow on the \
         way. Bring the values closer to 1, or give fewer"
    )]
    High(f64),
    /// A product of some of the factors underflows.
    #[error(
        "the product of those of these values that are between -1 and 1 is {0:.1e}, and float32 \
         loses digits below 1.2e-38: multiplied in another order, even a product that is large \
         may vanish on the way. Bring the values closer to 1, or give fewer"
    )]
    Low(f64),
}

impl Truth {
    /// Reduces finite elements.
    ///
    /// # Errors
    /// Returns [`Unjudged`] if a sum or a product of some of the elements overflows, or if a
    /// product underflows (subnormal sums are exact). Also returns it for operators that only
    /// [`crate::fold`] supports.
    pub fn of(op: Op, data: &[f32]) -> Result<Self, Unjudged> {
        let truth = |value: f64, scale| Self { op, len: data.len(), value, rough: 0, scale };
        match op {
            Op::Sum => {
                let sum = |chunk: &[f32]| {
                    chunk.iter().fold((0.0, 0.0), |(sum, magnitude), &x| {
                        (sum + f64::from(x), magnitude + f64::from(x).abs())
                    })
                };
                let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
                let (value, scale) = data.par_chunks(CHUNK).map(sum).reduce(|| (0.0, 0.0), add);
                if scale > f64::from(f32::MAX) {
                    return Err(Unjudged::Sum(scale));
                }
                Ok(truth(value, scale))
            }
            Op::Prod => {
                let factors = Factors::of(data);
                factors.in_range()?;
                let value = factors.value;
                Ok(Self { rough: factors.rough, ..truth(value, value.abs()) })
            }
            Op::Max => {
                let value = data.par_iter().copied().max_by(f32::total_cmp);
                let value = f64::from(value.unwrap_or(f32::NEG_INFINITY));
                Ok(truth(value, value.abs()))
            }
            Op::Min => {
                let value = data.par_iter().copied().min_by(f32::total_cmp);
                let value = f64::from(value.unwrap_or(f32::INFINITY));
                Ok(truth(value, value.abs()))
            }
            Op::Argmax | Op::Argmin | Op::Any | Op::All | Op::MeanVar | Op::Logsumexp => {
                Err(Unjudged::Op(op))
            }
            op => newer_word(op),
        }
    }

    /// Checks the result of a kernel.
    ///
    /// A maximum or minimum must be exact, including the sign of a zero. A product must be exact if
    /// at most one factor has more than one significant bit. Each rounding changes a value by at
    /// most a factor of 1 ± 2^-24. Therefore d roundings change it by at most d·2^-24 / (1 −
    /// d·2^-24). For a sum, the error is relative to Σ|x|, and d is the number of additions that an
    /// element passes. In a product all roundings add up. A multiplication rounds only if both
    /// factors have more than one significant bit, so d is one less than the number of such
    /// elements.
    pub fn judge(&self, plan: &ReducePlan, result: f32) -> Verdict {
        let roundings = match self.op {
            Op::Sum => additions(plan, self.len),
            Op::Prod => self.rough.saturating_sub(1) as f64,
            _ => 0.0,
        };
        let error = self.error(result);
        if roundings == 0.0 {
            let ok = f64::from(result).to_bits() == self.value.to_bits();
            return Verdict { error, allowed: 0.0, ok };
        }
        let share = roundings * UNIT;
        let allowed = if share < 1.0 { share / (1.0 - share) } else { f64::INFINITY };
        Verdict { error, allowed, ok: error <= allowed }
    }

    fn error(&self, result: f32) -> f64 {
        let result = f64::from(result);
        let difference = (result - self.value).abs();
        if result == self.value {
            0.0
        } else if difference.is_nan() || self.scale == 0.0 {
            f64::INFINITY
        } else {
            difference / self.scale
        }
    }
}

/// Largest and smallest products of subsets of the factors.
#[derive(Clone, Copy)]
struct Factors {
    value: f64,
    /// Magnitude of the product of the factors beyond ±1.
    high: f64,
    /// Magnitude of the product of the non-zero factors between −1 and 1.
    low: f64,
    /// Number of factors that are neither 0 nor ±1.
    proper: usize,
    /// Number of factors with more than one significant bit.
    rough: usize,
}

impl Factors {
    const NONE: Self = Self { value: 1.0, high: 1.0, low: 1.0, proper: 0, rough: 0 };

    fn of(data: &[f32]) -> Self {
        let times = |a: Self, b: Self| Self {
            value: a.value * b.value,
            high: a.high * b.high,
            low: a.low * b.low,
            proper: a.proper + b.proper,
            rough: a.rough + b.rough,
        };
        let one = |&x: &f32| {
            let (value, size) = (f64::from(x), f64::from(x).abs());
            Self {
                value,
                high: size.max(1.0),
                low: if x == 0.0 { 1.0 } else { size.min(1.0) },
                proper: usize::from(size != 1.0 && x != 0.0),
                rough: usize::from(x != 0.0 && !is_power_of_two(x)),
            }
        };
        let product = |chunk: &[f32]| chunk.iter().map(one).fold(Self::NONE, times);
        data.par_chunks(CHUNK).map(product).reduce(|| Self::NONE, times)
    }

    /// Returns an error unless every rounded product of some of the factors is a normal `f32`.
    fn in_range(&self) -> Result<(), Unjudged> {
        // A single factor is unchanged.
        if self.proper <= 1 {
            return Ok(());
        }
        let rounded = 1.0 + 2.0 * self.rough as f64 * UNIT;
        if self.high * rounded > f64::from(f32::MAX) {
            Err(Unjudged::High(self.high))
        } else if self.low / rounded < f64::from(f32::MIN_POSITIVE) {
            Err(Unjudged::Low(self.low))
        } else {
            Ok(())
        }
    }
}

fn is_power_of_two(x: f32) -> bool {
    x.is_normal() && x.to_bits() & 0x007f_ffff == 0
}

/// Maximum number of additions between an element and the result. Each pass has one addition for
/// each item of a thread, two more for a vector, and one for each halving of the block. [`Depth`]
/// counts the additions of rounds.
fn additions(plan: &ReducePlan, len: usize) -> f64 {
    if plan.share() != Share::Tiles {
        return Depth::of(plan, len as u64).additions() as f64;
    }
    let in_a_pass = plan.items() + plan.vector().ilog2() + plan.block().ilog2();
    passes(plan, len) as f64 * f64::from(in_a_pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::spec::ReduceSpec;

    fn judge(op: Op, data: &[f32], result: f32) -> Verdict {
        let plan = ReduceSpec::default().op(op).plan().expect("a sound spec");
        Truth::of(op, data).expect("values in range").judge(&plan, result)
    }

    #[test]
    fn knows_the_value_of_each_operator() {
        let data = [3.0, -2.0, 0.5, -0.0];
        for (op, value) in [(Op::Sum, 1.5), (Op::Prod, 0.0), (Op::Max, 3.0), (Op::Min, -2.0)] {
            let verdict = judge(op, &data, value);
            assert!(verdict.ok && verdict.error == 0.0, "{op}: {verdict:?}");
        }
    }

    #[test]
    fn the_empty_array_gives_the_identity() {
        assert!(judge(Op::Sum, &[], 0.0).ok);
        assert!(judge(Op::Prod, &[], 1.0).ok);
        assert!(judge(Op::Max, &[], f32::NEG_INFINITY).ok);
        assert!(judge(Op::Min, &[], f32::INFINITY).ok);
    }

    #[test]
    fn a_sum_may_round_and_no_more() {
        let data = [1.0; 1000];
        assert!(judge(Op::Sum, &data, 1000.0001).ok);
        assert!(!judge(Op::Sum, &data, 1000.1).ok);
        assert!(!judge(Op::Sum, &data, f32::NAN).ok);
    }

    #[test]
    fn a_product_rounds_only_where_both_factors_have_more_than_one_bit() {
        let data = [2.0, -0.5, 4.0];
        assert!(judge(Op::Prod, &data, -4.0).ok);
        assert!(!judge(Op::Prod, &data, -4.000001).ok);
        let next = f32::from_bits(1.1_f32.to_bits() + 1);
        assert!(judge(Op::Prod, &[1.1, 1.0, 2.0], 2.2).ok);
        assert!(!judge(Op::Prod, &[1.1, 1.0, 2.0], 2.0 * next).ok);
        assert!(judge(Op::Prod, &[1.1, 1.1], 1.1 * 1.1).ok);
        assert!(!judge(Op::Prod, &[1.1, 1.1], 1.1 * next).ok);
        assert!(!judge(Op::Prod, &[1.1, 1.1], f32::NAN).ok);
    }

    #[test]
    fn an_extremum_is_exact_to_the_sign_of_zero() {
        assert!(judge(Op::Max, &[-0.0, 0.0], 0.0).ok);
        assert!(!judge(Op::Max, &[-0.0, 0.0], -0.0).ok);
        assert!(!judge(Op::Min, &[1.0], 1.0000001).ok);
    }

    #[test]
    fn a_sum_is_refused_only_where_it_may_overflow() {
        assert!(Truth::of(Op::Sum, &[f32::MAX, f32::MAX]).is_err());
        assert!(Truth::of(Op::Sum, &[f32::MAX, -f32::MAX]).is_err());
        assert!(judge(Op::Sum, &[f32::MAX], f32::MAX).ok);
        // Subnormal sums are exact.
        let tiny = [1e-39, 2e-39];
        assert!(judge(Op::Sum, &tiny, tiny[0] + tiny[1]).ok);
    }

    #[test]
    fn a_product_is_refused_where_it_may_leave_the_range_on_the_way() {
        let refused = |data: &[f32]| Truth::of(Op::Prod, data).expect_err("out of range");
        assert!(matches!(refused(&[1e30, 1e30]), Unjudged::High(_)));
        assert!(matches!(refused(&[1e-30, 1e-30]), Unjudged::Low(_)));
        // The result itself would be 1, or 0.
        assert!(matches!(refused(&[1e30, 1e30, 1e-30, 1e-30]), Unjudged::High(_)));
        assert!(matches!(refused(&[1e30, 1e30, 0.0]), Unjudged::High(_)));
        let message = refused(&[1e30, 1e30]).to_string();
        assert!(message.contains("1.0e60") && message.contains("closer to 1"), "{message}");
        for data in [&[1e30, 1e-30][..], &[1e-30, 0.0], &[1e-40, 1.0, -1.0], &[f32::MAX]] {
            assert!(Truth::of(Op::Prod, data).is_ok(), "{data:?}");
        }
    }

    #[test]
    fn passes_go_on_until_one_value_is_left() {
        let plan = ReduceSpec::default().block(32).plan().expect("a sound spec");
        let cases = [(0, 1), (1, 1), (32, 1), (33, 2), (1024, 2), (1025, 3), ((1 << 16) + 1, 4)];
        for (len, expected) in cases {
            assert_eq!(passes(&plan, len), expected, "{len}");
        }
    }
}
