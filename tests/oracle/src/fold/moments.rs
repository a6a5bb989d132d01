//! Mean and variance.

use super::Folded;
use super::exact::{Twice, around, gamma, greatest, least, unit};
use crate::depth::Depth;
use gemm_dsl::ir::Elem;

/// Power of two. Magnitudes above it are scaled down by it for their sum.
const HUGE: f64 = (1u128 << 100) as f64;

/// Mean and variance of floats.
///
/// A thread combines h values at once. Their mean is a sum of h values and a quotient, with an
/// error of γ(h + 1)·M, where M is the largest magnitude. Two means are combined in C steps on the
/// path of a value. Each step computes a + (b − a)·share with a quotient and a difference, both
/// rounded, and an fma. The weights of the errors of a and b add up to 1, so that the errors do not
/// grow. Each step adds 2u + u² of |b − a| ≤ 2M and u of the result: 6u·M. The error of the mean is
/// therefore E = γ(h + 2 + 6C)·M.
///
/// The sum of squares is S. Each square is that of a difference from the thread's mean, and the
/// difference rounds once. A sum of h squares has a relative error of γ(h + 2). The error E of the
/// mean adds at most h·E². A step adds a term w·(b − a)², where w is a's share of b's count. The
/// term has five roundings, and the sums so far have two. The error 2E of b − a contributes w·(2·|b
/// − a|·2E + 4E²). Over all steps of one level Σ w ≤ n and Σ w·(b − a)² ≤ S. By Cauchy–Schwarz Σ
/// w·|b − a| ≤ √(n·S), and over all C levels √(C·n·S). The total error of S is γ(h + 7 + 2C)·S +
/// 4E·√(C·n·S) + (4C + 1)·n·E². The variance S / n rounds once more.
///
/// Sums and squares that overflow are computed from scaled numbers, with the same roundings. What
/// underflows then is below 2^-80 of the result. In `f64` these results are not checked.
pub(super) fn of(values: &[f64], acc: Elem, depth: &Depth) -> [Folded; 2] {
    if values.is_empty() || values.iter().any(|x| !x.is_finite()) {
        return [Folded::Nan; 2];
    }
    let (n, u) = (values.len() as f64, unit(acc));
    // A combination with an empty part changes nothing, so it is not counted.
    let (h, c) = (depth.held.min(values.len() as u64), depth.combinations());
    let (h, c) = (h as f64, c.min(values.len() as u64 - 1) as f64);
    let size = values.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    // Overflow of differences and sums, in `f64` here too.
    let in_f64 = acc == Elem::F64;
    if in_f64 && (h + 2.0) * size * 2.0 > greatest(acc) {
        return [Folded::Unjudged; 2];
    }
    // The sum of all values may overflow although the kernel, which combines means, does not.
    let scale = if size > HUGE { 1.0 / HUGE } else { 1.0 };
    let (sum, _) = Twice::sums(values.iter().map(|x| x * scale));
    let Twice(mean, rest) = sum.divided(n);
    let (mean, rest) = (mean / scale, rest / scale);
    let tiny = least(acc) * (h + 6.0 * c + 2.0);
    let off = gamma(h + 2.0 + 6.0 * c, u) * size + tiny;
    let (low, high) = around(mean, off + rest.abs(), acc);
    let mean_between = Folded::Between(low, high);
    // Largest possible (b − a)² · w.
    if in_f64 && 4.0 * size * size * n * 1.01 > greatest(acc) {
        return [mean_between, Folded::Unjudged];
    }
    let squares = values.iter().map(|x| {
        // The lower half of the mean does not affect the square of a difference in f32, but does in
        // f64.
        let apart = (x - mean) - rest;
        apart * apart
    });
    let (Twice(squares, _), _) = Twice::sums(squares);
    let error = gamma(h + 8.0 + 2.0 * c, u) * squares
        + 4.0 * off * (c * n * squares).sqrt()
        + (4.0 * c + 1.0) * n * off * off
        + 8.0 * f64::EPSILON * squares
        + tiny * n * (1.0 + 2.0 * size);
    let (low, high) = around(squares / n, error / n + least(acc), acc);
    [mean_between, Folded::Between(low.max(0.0), high)]
}
