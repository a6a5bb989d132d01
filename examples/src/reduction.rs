//! Reductions in `f64`, and how far a result may be off.

use gemm_dsl::ir::Passes;
use gemm_dsl::plan::ReducePlan;
use gemm_runtime::spec::Op;
use rayon::prelude::*;

/// The unit roundoff of `f32`.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// Elements that one thread of the host combines at a time.
const CHUNK: usize = 1 << 16;

/// What a reduction ought to give.
#[derive(Clone, Copy, Debug)]
pub struct Truth {
    op: Op,
    len: usize,
    /// The result in `f64`.
    pub value: f64,
    /// What errors are relative to: Σ|x| of a sum, the magnitude of the value otherwise.
    scale: f64,
}

/// A result compared with the truth.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The error over its scale; infinite for a NaN.
    pub error: f64,
    /// Whether that is no more than rounding explains.
    pub ok: bool,
}

/// The result is beyond the range of `f32`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {op} of these values is beyond the range of float32. Scale them")]
pub struct OutOfRange {
    op: Op,
}

impl Truth {
    /// Reduces finite elements.
    ///
    /// # Errors
    /// [`OutOfRange`] where the sum of the magnitudes, or the product, overflows or underflows.
    pub fn of(op: Op, data: &[f32]) -> Result<Self, OutOfRange> {
        let chunks = data.par_chunks(CHUNK);
        let truth = |value: f64, scale| Self { op, len: data.len(), value, scale };
        let in_range = |value: f64| {
            let range = f64::from(f32::MIN_POSITIVE)..=f64::from(f32::MAX);
            if range.contains(&value.abs()) { Ok(()) } else { Err(OutOfRange { op }) }
        };
        match op {
            Op::Sum => {
                let sum = |chunk: &[f32]| {
                    chunk.iter().fold((0.0, 0.0), |(sum, magnitude), &x| {
                        (sum + f64::from(x), magnitude + f64::from(x).abs())
                    })
                };
                let (value, scale) =
                    chunks.map(sum).reduce(|| (0.0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1));
                if scale > 0.0 {
                    in_range(scale)?;
                }
                Ok(truth(value, scale))
            }
            Op::Prod => {
                let product = |chunk: &[f32]| chunk.iter().fold(1.0, |p, &x| p * f64::from(x));
                let value: f64 = chunks.map(product).product();
                if !data.contains(&0.0) {
                    in_range(value)?;
                }
                Ok(truth(value, value.abs()))
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
        }
    }

    /// Judges the result of a kernel.
    ///
    /// A maximum or minimum must be exact, the sign of a zero included. A sum of n terms that pass
    /// through at most d additions has an error of at most d·2^-24·Σ|x| to first order; twice that
    /// is allowed. Of a product the rounding errors of n factors are taken as independent: √n of
    /// them may add up, with a factor of 16.
    pub fn judge(&self, plan: &ReducePlan, result: f32) -> Verdict {
        let allowed = match self.op {
            Op::Sum => 2.0 * additions(plan, self.len) * UNIT,
            Op::Prod => 16.0 * (self.len as f64).sqrt() * UNIT,
            Op::Max | Op::Min => {
                let exact = f64::from(result).to_bits() == self.value.to_bits();
                let error = if exact { 0.0 } else { self.error(result) };
                return Verdict { error, ok: exact };
            }
        };
        let error = self.error(result);
        Verdict { error, ok: error <= allowed }
    }

    fn error(&self, result: f32) -> f64 {
        let difference = (f64::from(result) - self.value).abs();
        if difference == 0.0 {
            0.0
        } else if difference.is_nan() || self.scale == 0.0 {
            f64::INFINITY
        } else {
            difference / self.scale
        }
    }
}

/// The additions between an element and the result, at most.
fn additions(plan: &ReducePlan, len: usize) -> f64 {
    let passes = Passes::fold_lengths(plan.elements_per_block(), len as u64).len() as u32;
    // A vector's elements are added up one after the other, then the items, then the block's
    // values in a tree.
    let in_a_pass = plan.items() * plan.vector() + plan.block().ilog2() + 1;
    f64::from(passes.max(1) * in_a_pass)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_runtime::ReduceSpec;

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
    fn an_extremum_is_exact_to_the_sign_of_zero() {
        assert!(judge(Op::Max, &[-0.0, 0.0], 0.0).ok);
        assert!(!judge(Op::Max, &[-0.0, 0.0], -0.0).ok);
        assert!(!judge(Op::Min, &[1.0], 1.0000001).ok);
    }

    #[test]
    fn refuses_what_float32_cannot_hold() {
        assert!(Truth::of(Op::Sum, &[f32::MAX, f32::MAX]).is_err());
        assert!(Truth::of(Op::Prod, &[1e30, 1e30]).is_err());
        assert!(Truth::of(Op::Prod, &[1e-30, 1e-30]).is_err());
        assert!(Truth::of(Op::Prod, &[1e-30, 0.0]).is_ok());
    }
}
