//! Mean and variance.

use super::Folded;
use super::exact::{Twice, around, gamma, greatest, least, unit};
use crate::depth::Depth;
use gemm_dsl::ir::Elem;

/// Mean and variance of floats.
///
/// A thread takes h values at once: their mean is a sum of h and a quotient, off by γ(h + 1)·M, where M is the
/// greatest magnitude. Two means are combined in C steps on the way of a value, each of them
/// a + (b − a)·share with a quotient, a difference, both rounded, and an fma. What a and b are off by comes in
/// with weights whose sum is 1, so it does not grow; new are 2u + u² of |b − a| ≤ 2M and u of the result: 6u·M.
/// So the mean is off by E = γ(h + 2 + 6C)·M.
///
/// Of the sum of squares S, each square is of a difference from the thread's mean, which rounds once: what h of
/// them come to is off by γ(h + 2) of itself, and, since the mean they are taken from is off by E, by h·E² at
/// most. In a step a²-like term w·(b − a)², w = a's share of b's count, is added: five roundings of it, of the
/// sums so far two, and b − a is off by 2E: w·(2·|b − a|·2E + 4E²). Over all steps of one level Σ w ≤ n, and
/// Σ w·(b − a)² ≤ S, so Σ w·|b − a| ≤ √(n·S) by Cauchy, and there are C levels: √(C·n·S) in all. Together
/// S is off by γ(h + 7 + 2C)·S + 4E·√(C·n·S) + (4C + 1)·n·E², and the variance S / n rounds once more.
pub(super) fn of(values: &[f64], acc: Elem, depth: &Depth) -> [Folded; 2] {
    if values.is_empty() || values.iter().any(|x| !x.is_finite()) {
        return [Folded::Nan; 2];
    }
    let (n, u) = (values.len() as f64, unit(acc));
    // What is combined with what has no elements stays as it is.
    let (h, c) = (depth.held.min(values.len() as u64), depth.combinations());
    let (h, c) = (h as f64, c.min(values.len() as u64 - 1) as f64);
    let size = values.iter().fold(0.0, |size: f64, x| size.max(x.abs()));
    // Differences, and sums of what a thread holds.
    if (h + 2.0) * size * 2.0 > greatest(acc) {
        return [Folded::Unjudged; 2];
    }
    let (sum, _) = Twice::sums(values.iter().copied());
    let Twice(mean, rest) = sum.divided(n);
    let tiny = least(acc) * (h + 6.0 * c + 2.0);
    let off = gamma(h + 2.0 + 6.0 * c, u) * size + tiny;
    let (low, high) = around(mean, off + rest.abs(), acc);
    let mean_between = Folded::Between(low, high);
    // As wide as (b − a)² · w may be.
    if 4.0 * size * size * n * 1.01 > greatest(acc) {
        return [mean_between, Folded::Unjudged];
    }
    let squares = values.iter().map(|x| {
        // What the lower half of the mean is worth would not show in the square of a difference of f32; of
        // f64 it does.
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
