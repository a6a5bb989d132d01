//! Logarithms of sums of exponentials.

use super::exact::{Twice, around, gamma, unit};
use super::{Folded, Number};
use crate::depth::Depth;
use gemm_dsl::ir::Elem;

/// Relative error of the kernel's exponential: at 0, and the increase per unit below 0.
const EXPONENTIAL: (f64, f64) = (1.5e-7, 2.75e-9);

/// Logarithm of the sum of exponentials of `f32`.
///
/// Let d be the difference between the maximum and a value. The term of the value is e^−d. It is a
/// product of one exponential and of the scale factors that are applied whenever the running
/// maximum grows. The exponents are differences, each with a rounding error of u, and add up to d.
/// Each exponential has an error of 1.5e-7, plus 2.75e-9 per unit of its exponent, because the
/// range reduction uses one constant. Each product has an error of u. With C scalings on the path
/// of a value, the error of a term is γ(C) + (C + 1)·1.5e-7 + (u + 2.75e-9)·d. The error of the sum
/// is the mean of these errors, weighted by the terms, plus γ of the additions. Exponents below −87
/// count as −87. In a sum of at least 1, this adds at most n·2^-125 per scaling. The logarithm
/// turns a relative error into an absolute error and adds an error of one unit in the last place.
/// The final sum rounds once.
pub(super) fn of(values: &[f64], depth: &Depth) -> Folded {
    if values.iter().any(|x| x.is_nan()) {
        return Folded::Nan;
    }
    let top = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return Folded::Exactly(Number::Float(top));
    }
    let u = unit(Elem::F32);
    let below = || values.iter().map(|x| top - x).filter(|d| d.is_finite());
    let (Twice(sum, _), _) = Twice::sums(below().map(|d| (-d).exp()));
    let (Twice(weighted, _), _) = Twice::sums(below().map(|d| d * (-d).exp()));
    let scalings = depth.combinations() as f64;
    let relative = gamma(scalings + depth.additions() as f64, u)
        + (scalings + 1.0) * EXPONENTIAL.0
        + (u + EXPONENTIAL.1) * weighted / sum
        + values.len() as f64 * (scalings + 1.0) * 2f64.powi(-125);
    // Products of the error terms; each is below 1e-3 if the bound is useful.
    let relative = relative * 1.001 + relative * relative;
    if relative > 0.1 {
        return Folded::Unjudged;
    }
    let (log, off) = (sum.ln(), relative / (1.0 - relative));
    let value = top + log;
    let error = off + 2.0 * u * (log.abs() + off) + u * (value.abs() + off + 2.0 * u) + 1e-15;
    let (low, high) = around(value, error + value.abs() * 4.0 * f64::EPSILON, Elem::F32);
    Folded::Between(low, high)
}
