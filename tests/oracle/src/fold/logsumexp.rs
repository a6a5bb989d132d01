//! Logarithms of sums of exponentials.

use super::exact::{Twice, around, gamma, unit};
use super::{Folded, Number};
use crate::depth::Depth;
use gemm_dsl::ir::Elem;

/// How far the exponential of the kernel is off, relative to it: at 0, and more for each unit below.
const EXPONENTIAL: (f64, f64) = (1.5e-7, 2.75e-9);

/// The logarithm of the sum of exponentials of `f32`.
///
/// With d how far a value is below the greatest, its term is e^−d, a product of one exponential and of those
/// by which it is scaled whenever the greatest value so far grows. Their exponents are differences that round
/// once, u of each, and add up to d; each exponential is off by 1.5e-7 and 2.75e-9 for each unit of its exponent
/// (its range reduction is by one constant), each product by u. With C scalings on the way of a value a
/// term is off by γ(C) + (C + 1)·1.5e-7 + (u + 2.75e-9)·d, and the sum by the mean of that with the terms as
/// weights, and by γ of the additions. Exponents below −87 count as −87: of a sum that is at least 1, n·2^-125
/// at most, a scaling. The logarithm makes of a relative error an absolute one, is itself within a unit in the
/// last place, and the last sum rounds once.
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
    // Products of the parts, each below 1e-3 where this is of use.
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
