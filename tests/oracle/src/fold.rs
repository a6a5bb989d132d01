//! Reference for any reduction: its exact result, and the range of acceptable results.
//!
//! Exact results are compared by their bits:
//!
//! * integers, which wrap;
//! * extrema, where NaN exceeds all numbers and −0 is below +0;
//! * indices, where zeros are equal, and the first NaN or the first of equal values wins;
//! * booleans.
//!
//! Sums, products, moments and logarithms of sums must be in an interval of the accumulator type.
//! It contains the true value, computed with twice the digits of `f64`, and has a margin for the
//! roundings of the plan's tree ([`Depth`]). If inputs are NaN or infinite, only these determine
//! the result. A result is not checked if an intermediate value could overflow in some grouping.

mod exact;
mod judge;
mod logsumexp;
mod moments;
mod number;
mod simple;

pub use judge::Finish;
pub use number::Number;

use crate::depth::Depth;
use gemm_dsl::plan::ReducePlan;
use gemm_dsl::spec::{Op, ReduceSpec, newer_word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sum. Without values it is −0, or the integer 0.
    Sum,
    /// Sum with compensation of its rounding errors.
    Compensated,
    /// Product. Without values it is 1.
    Prod,
    /// Maximum. Without values it is the minimum of the type.
    Max,
    /// Minimum. Without values it is the maximum of the type.
    Min,
    /// Index of the maximum. Without values it is the largest index.
    Argmax,
    /// Index of the minimum.
    Argmin,
    /// True if some value is not 0.
    Any,
    /// True if no value is 0.
    All,
    MeanVar,
    /// Logarithm of the sum of exponentials.
    Logsumexp,
}

impl Kind {
    /// Kind of a spec, or None for a user's `fold`, whose meaning is unknown.
    pub fn of(spec: &ReduceSpec) -> Option<Self> {
        Some(match spec.operator()? {
            Op::Sum if spec.compensated => Kind::Compensated,
            Op::Sum => Kind::Sum,
            Op::Prod => Kind::Prod,
            Op::Max => Kind::Max,
            Op::Min => Kind::Min,
            Op::Argmax => Kind::Argmax,
            Op::Argmin => Kind::Argmin,
            Op::Any => Kind::Any,
            Op::All => Kind::All,
            Op::MeanVar => Kind::MeanVar,
            Op::Logsumexp => Kind::Logsumexp,
            op => newer_word(op),
        })
    }
}

/// Acceptable results of a reduction, before a `finish` and before the conversion to the result
/// type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Folded {
    /// Exactly one number: a value of the accumulator type, an index, or 0 or 1.
    Exactly(Number),
    /// NaN with any payload.
    Nan,
    /// Any float of the accumulator type in this closed interval, except −0.
    Between(f64, f64),
    /// Not checked, because an intermediate value may overflow or underflow in some grouping.
    Unjudged,
}

/// Acceptable results of a plan over the values of one result, in ascending index order. The values
/// have the accumulator type, with 0 or 1 for booleans. [`Kind::MeanVar`] has two results.
pub fn folded(kind: Kind, plan: &ReducePlan, values: &[Number]) -> Vec<Folded> {
    let (acc, index) = (plan.types().acc, plan.types().index);
    let depth = Depth::of(plan, values.len() as u64);
    let floats = || -> Vec<f64> { values.iter().map(|value| value.float()).collect() };
    if let (Kind::Argmax | Kind::Argmin, true) = (kind, plan.spec().with_value) {
        return simple::value_and_place(kind == Kind::Argmax, values, acc, index).into();
    }
    vec![match kind {
        Kind::Sum if acc.is_float() => simple::sum(&floats(), acc, &depth, false),
        Kind::Compensated => simple::sum(&floats(), acc, &depth, true),
        Kind::Prod if acc.is_float() => simple::product(&floats(), acc),
        Kind::Sum | Kind::Prod => Folded::Exactly(simple::wrapping(kind, values, acc)),
        Kind::Max | Kind::Min => simple::extremum(kind == Kind::Max, values, acc),
        Kind::Argmax | Kind::Argmin => {
            simple::value_and_place(kind == Kind::Argmax, values, acc, index)[1]
        }
        Kind::Any => truth(values.iter().any(Number::is_true)),
        Kind::All => truth(values.iter().all(Number::is_true)),
        Kind::MeanVar => return moments::of(&floats(), acc, &depth).into(),
        Kind::Logsumexp => logsumexp::of(&floats(), &depth),
    }]
}

/// The `k` best values of a selection, or their indices, or both: one list for each result of the
/// spec. There are at least `k` values.
pub fn selected(kind: Kind, plan: &ReducePlan, values: &[Number], k: usize) -> Vec<Vec<Folded>> {
    let best = &simple::order(kind, values)[..k];
    let value = |at: &usize| match values[*at] {
        Number::Float(x) if x.is_nan() => Folded::Nan,
        value => Folded::Exactly(value),
    };
    let index = |at: &usize| Folded::Exactly(Number::Int(*at as i128));
    let (values, indices) = (best.iter().map(value).collect(), best.iter().map(index).collect());
    match (kind, plan.spec().with_value) {
        (Kind::Max | Kind::Min, _) => vec![values],
        (_, true) => vec![values, indices],
        (_, false) => vec![indices],
    }
}

fn truth(holds: bool) -> Folded {
    Folded::Exactly(Number::Int(holds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gemm_dsl::ir::Elem;

    fn of(line: &str, values: &[f64]) -> Vec<Folded> {
        let spec: ReduceSpec = line.parse().expect("a line");
        let plan = spec.plan().expect("a sound spec");
        let values: Vec<Number> = values.iter().copied().map(Number::Float).collect();
        folded(Kind::of(&spec).expect("an operator"), &plan, &values)
    }

    fn takes(line: &str, values: &[f64], result: f32) -> bool {
        of(line, values)[0].judge(result.to_bits().into(), Elem::F32).is_ok()
    }

    #[test]
    fn nothing_is_folded_to_the_identity() {
        for (op, none) in [
            ("sum", -0.0),
            ("prod", 1.0),
            ("max", f32::NEG_INFINITY),
            ("min", f32::INFINITY),
            ("mean_var", f32::NAN),
            ("logsumexp", f32::NEG_INFINITY),
        ] {
            assert!(takes(&format!("op: {op}"), &[], none), "{op}");
            assert!(!takes(&format!("op: {op}"), &[], 0.5), "{op}");
        }
        assert!(!takes("op: sum", &[], 0.0));
        let exactly = |line: &str| of(line, &[])[0];
        assert_eq!(exactly("op: argmax"), Folded::Exactly(Number::Int(u32::MAX.into())));
        assert_eq!(
            exactly("op: argmin, index: u64"),
            Folded::Exactly(Number::Int(u64::MAX.into()))
        );
        assert_eq!(exactly("op: any"), Folded::Exactly(Number::Int(0)));
        assert_eq!(exactly("op: all"), Folded::Exactly(Number::Int(1)));
    }

    #[test]
    fn places_and_extrema_know_nan_and_zeros() {
        let nan = f64::NAN;
        let at = |line: &str, values: &[f64]| match of(line, values)[0] {
            Folded::Exactly(Number::Int(at)) => at,
            other => panic!("{other:?}"),
        };
        assert_eq!(at("op: argmax", &[-0.0, 0.0, -1.0]), 0);
        assert_eq!(at("op: argmin", &[0.0, -0.0]), 0);
        assert_eq!(at("op: argmax", &[1.0, nan, nan, f64::INFINITY]), 1);
        assert_eq!(at("op: argmin", &[f64::INFINITY; 3]), 0);
        assert!(takes("op: max", &[-0.0, 0.0], 0.0) && !takes("op: max", &[-0.0, 0.0], -0.0));
        assert!(takes("op: min", &[1.0, nan], f32::NAN) && !takes("op: min", &[1.0, nan], 1.0));
    }

    #[test]
    fn a_sum_may_be_off_by_what_its_tree_rounds_and_a_compensated_one_by_a_rounding() {
        let values = [1.0; 1000].map(|x: f64| x / 3.0 - 0.2);
        let values = values.map(|x| f64::from(x as f32));
        let sum: f64 = values.iter().sum();
        for (line, far, near) in [("items: 2", 1e-3, 1e-6), ("compensated", 1e-4, 0.0)] {
            assert!(takes(line, &values, (sum + near) as f32), "{line}");
            assert!(!takes(line, &values, (sum + far) as f32), "{line}");
        }
        // Without compensation, small values are lost in the cancellation.
        let cancels = [1e8, 1.0, -1e8, 1e-3];
        assert!(takes("items: 4, over: rows, group: 1", &cancels, 0.0));
        assert!(!takes("compensated, items: 4, over: rows, group: 1", &cancels, 0.0));
        assert!(takes("compensated, items: 4, over: rows, group: 1", &cancels, 1.001));
        assert!(takes("op: sum", &[1.0, -1.0], 0.0) && takes("op: sum", &[-0.0, 0.0], 0.0));
        assert!(!takes("op: sum", &[-0.0, 0.0], -0.0) && takes("op: sum", &[-0.0; 3], -0.0));
    }

    #[test]
    fn moments_and_logarithms_are_within_what_they_say() {
        let values: Vec<f64> = (0..500).map(|n| f64::from((n * 37 % 101) as f32) / 8.0).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let var = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let [is_mean, is_var] = of("op: mean_var, over: rows", &values)[..] else { panic!("two") };
        for (is, value) in [(is_mean, mean), (is_var, var)] {
            let judged = |x: f64| is.judge((x as f32).to_bits().into(), Elem::F32).is_ok();
            assert!(judged(value) && judged(value * (1.0 + 1e-7)), "{is:?}");
            assert!(!judged(value * 1.0005) && !judged(value * (1.0 - 5e-4)), "{is:?}");
        }
        let sum = values.iter().map(|x| x.exp()).sum::<f64>().ln() as f32;
        assert!(takes("op: logsumexp", &values, sum));
        assert!(!takes("op: logsumexp", &values, sum * 1.00001));
        assert!(takes("op: logsumexp", &[f64::NEG_INFINITY, 1.0], 1.0));
        assert!(takes("op: logsumexp", &[f64::INFINITY, f64::NEG_INFINITY], f32::INFINITY));
        assert!(takes("op: logsumexp", &[f64::INFINITY, f64::NAN], f32::NAN));
        assert!(takes("op: mean_var", &[f64::INFINITY, 1.0], f32::NAN));
    }

    /// The sum of these values overflows, but not the means that a kernel combines.
    #[test]
    fn a_mean_is_judged_if_the_sum_overflows() {
        let value = 2f64.powi(1014);
        let [mean, var] = of("op: mean_var, type: f64, over: rows", &[value; 5000])[..] else {
            panic!("two results")
        };
        assert!(mean.judge(value.to_bits(), Elem::F64).is_ok(), "{mean:?}");
        assert!(mean.judge((value * 1.001).to_bits(), Elem::F64).is_err(), "{mean:?}");
        assert!(mean.judge(f64::INFINITY.to_bits(), Elem::F64).is_err(), "{mean:?}");
        assert_eq!(var, Folded::Unjudged);
    }

    #[test]
    fn integers_wrap_and_narrow_results_overflow() {
        let spec: ReduceSpec = "type: i32".parse().expect("a line");
        let plan = spec.plan().expect("a sound spec");
        let values = [i32::MAX, 1, 1].map(|n| Number::Int(n.into()));
        let sum = folded(Kind::Sum, &plan, &values)[0];
        assert_eq!(sum, Folded::Exactly(Number::Int(-2_147_483_647)));
        let product = folded(Kind::Prod, &plan, &values.map(|_| Number::Int(65_537)))[0];
        assert_eq!(product, Folded::Exactly(Number::Int(i128::from(65_537i32.wrapping_pow(3)))));
        let large = Folded::Between(65_519.0, 65_521.0);
        // Rounding to the largest f16, and to infinity.
        assert!(large.judge(0x7bff, Elem::F16).is_ok() && large.judge(0x7c00, Elem::F16).is_ok());
        assert!(Folded::Exactly(Number::Float(1e6)).judge(0x7c00, Elem::F16).is_ok());
        assert!(Folded::Exactly(Number::Float(1e6)).judge(0x7bff, Elem::F16).is_err());
    }
}
