//! Reductions whose result is a single value or an index.

use super::exact::{Twice, around, gamma, greatest, least, unit};
use super::{Folded, Kind, Number};
use crate::depth::Depth;
use gemm_dsl::ir::Elem;

/// Sum of floats.
///
/// *In sequence and in trees.* Each addition changes its result by a factor of 1 ± u. If a value
/// passes d additions, the error is γ(d) = d·u / (1 − d·u), relative to Σ|x|. Adding 0 does not
/// round, so k non-zero values have at most k − 1 roundings.
///
/// *Compensated.* The total error of the sums is at most γ(d)·Σ|x| and is known exactly. It is then
/// summed itself along the same tree, in at most 2d additions, with a relative error of γ(2d). The
/// final addition rounds once. Therefore |r − s| ≤ u·|s| + (1 + u)·γ(2d)·γ(d)·Σ|x|, which has d
/// only together with u².
pub(super) fn sum(values: &[f64], acc: Elem, depth: &Depth, compensated: bool) -> Folded {
    if let Some(special) = sum_of_special(values) {
        return special;
    }
    if values.iter().all(|x| *x == 0.0 && x.is_sign_negative()) {
        return Folded::Exactly(Number::Float(-0.0));
    }
    let (Twice(value, rest), size) = Twice::sums(values.iter().copied());
    let terms = values.iter().filter(|x| **x != 0.0).count() as u64;
    let d = depth.additions().min(terms.saturating_sub(1)) as f64;
    if d == 0.0 {
        return Folded::Exactly(Number::Float(value + 0.0));
    }
    let u = unit(acc);
    if size * (1.0 + gamma(d, u)) > greatest(acc) {
        return Folded::Unjudged;
    }
    let error = match compensated {
        false => gamma(d, u) * size,
        true => u * value.abs() + (1.0 + u) * gamma(2.0 * d, u) * gamma(d, u) * size,
    };
    // The reference has an error of two f64 roundings in the lower half per step.
    let own = values.len() as f64 * f64::EPSILON * f64::EPSILON * size;
    let (low, high) = around(value, error + own + rest.abs(), acc);
    Folded::Between(low, high)
}

/// Result of a sum with NaN or infinities, if there are any.
fn sum_of_special(values: &[f64]) -> Option<Folded> {
    let has = |x: f64| values.contains(&x);
    let (up, down) = (has(f64::INFINITY), has(f64::NEG_INFINITY));
    if values.iter().any(|x| x.is_nan()) || (up && down) {
        return Some(Folded::Nan);
    }
    let infinity = match (up, down) {
        (true, _) => f64::INFINITY,
        (_, true) => f64::NEG_INFINITY,
        _ => return None,
    };
    // A finite partial sum may have overflowed to the other infinity before the infinity is added.
    let size: f64 = values.iter().filter(|x| x.is_finite()).map(|x| x.abs()).sum();
    let judged = size < f64::from(f32::MAX) / 2.0;
    Some(if judged { Folded::Exactly(Number::Float(infinity)) } else { Folded::Unjudged })
}

/// Product of floats. Each multiplication of two factors with more than one significant bit changes
/// the product by a factor of 1 ± u, in any grouping. The number of such multiplications is one
/// less than the number of such factors.
pub(super) fn product(values: &[f64], acc: Elem) -> Folded {
    let (mut high, mut low) = (1.0f64, 1.0f64);
    for x in values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0) {
        (high, low) = (high * x.max(1.0), low * x.min(1.0));
    }
    let has = |is: fn(f64) -> bool| values.iter().any(|x| is(*x));
    let (zero, infinite) = (has(|x| x == 0.0), has(f64::is_infinite));
    if has(f64::is_nan) || (zero && infinite) {
        return Folded::Nan;
    }
    let proper = |x: &&f64| **x != 0.0 && x.is_finite() && x.abs() != 1.0;
    let factors = values.iter().filter(proper).count();
    let many_bits = |x: &&f64| proper(x) && x.to_bits() << 12 != 0;
    let rough = values.iter().filter(many_bits).count().saturating_sub(1) as f64;
    let u = unit(acc);
    let may_grow = 1.0 + gamma(2.0 * rough, u);
    let least_normal = if acc == Elem::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
    if factors > 1 && (high * may_grow > greatest(acc) || low / may_grow < least_normal) {
        return Folded::Unjudged;
    }
    let minus = values.iter().filter(|x| x.is_sign_negative()).count() % 2 == 1;
    let sign = if minus { -1.0 } else { 1.0 };
    if zero || infinite {
        let size = if zero { 0.0 } else { f64::INFINITY };
        return Folded::Exactly(Number::Float(size * sign));
    }
    let Twice(value, rest) = values.iter().fold(Twice::ONE, |product, x| product.times(*x));
    if rough == 0.0 {
        return Folded::Exactly(Number::Float(value));
    }
    let own = values.len() as f64 * 4.0 * f64::EPSILON * f64::EPSILON * value.abs();
    let error = gamma(rough, u) * value.abs() + own + rest.abs() + least(acc) / 2.0;
    let (low, high) = around(value, error, acc);
    Folded::Between(low, high)
}

/// Wrapping sum or product of integers.
pub(super) fn wrapping(kind: Kind, values: &[Number], acc: Elem) -> Number {
    let bits = values.iter().map(|value| value.bits(acc));
    let folded = match kind {
        Kind::Prod => bits.fold(1, u64::wrapping_mul),
        _ => bits.fold(0, u64::wrapping_add),
    };
    Number::Int(folded.into()).cast(acc)
}

/// Maximum or minimum as defined by IEEE 754-2019.
pub(super) fn extremum(greatest: bool, values: &[Number], acc: Elem) -> Folded {
    if values.iter().any(|value| value.float().is_nan()) {
        return Folded::Nan;
    }
    // Without NaN this is the order of numbers, with −0 below +0.
    let order = |a: &&Number, b: &&Number| match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(b),
        (a, b) => a.float().total_cmp(&b.float()),
    };
    let found = if greatest { values.iter().max_by(order) } else { values.iter().min_by(order) };
    Folded::Exactly(found.copied().unwrap_or_else(|| none_of(greatest, acc)))
}

fn none_of(greatest: bool, acc: Elem) -> Number {
    if acc.is_float() {
        return Number::Float(if greatest { f64::NEG_INFINITY } else { f64::INFINITY });
    }
    let bits = 8 * acc.size() - u32::from(acc.is_signed());
    let most = (1i128 << bits) - 1;
    Number::Int(match (greatest, acc.is_signed()) {
        (false, _) => most,
        (true, true) => -most - 1,
        (true, false) => 0,
    })
}

/// Maximum or minimum with its index, of type `index`.
pub(super) fn value_and_place(
    greatest: bool,
    values: &[Number],
    acc: Elem,
    index: Elem,
) -> [Folded; 2] {
    let nowhere = if index == Elem::U64 { u64::MAX } else { u32::MAX.into() };
    let at = place(greatest, values);
    let value = at.map_or_else(|| none_of(greatest, acc), |at| values[at]);
    let value = if value.float().is_nan() { Folded::Nan } else { Folded::Exactly(value) };
    [value, Folded::Exactly(Number::Int(at.map_or(nowhere.into(), |at| at as i128)))]
}

/// Index of the maximum or minimum. Of equal values, the first is chosen.
pub(super) fn place(greatest: bool, values: &[Number]) -> Option<usize> {
    let is_nan = |value: &Number| value.float().is_nan();
    if let Some(first) = values.iter().position(is_nan) {
        return Some(first);
    }
    let beyond = |a: &Number, b: &Number| match (*a, *b) {
        (Number::Int(a), Number::Int(b)) if greatest => a > b,
        (Number::Int(a), Number::Int(b)) => a < b,
        (a, b) if greatest => a.float() > b.float(),
        (a, b) => a.float() < b.float(),
    };
    let mut best = None;
    for (at, value) in values.iter().enumerate() {
        if best.is_none_or(|best: usize| beyond(value, &values[best])) {
            best = Some(at);
        }
    }
    best
}

/// Indices of the values in the order of a selection: NaNs, then the others from the best to the
/// worst. Equal values are in the order of their indices. Only `max` and `min` distinguish the
/// zeros.
pub(super) fn order(kind: Kind, values: &[Number]) -> Vec<usize> {
    let greatest = matches!(kind, Kind::Max | Kind::Argmax);
    let by_sign = matches!(kind, Kind::Max | Kind::Min);
    let ascending = |a: Number, b: Number| match (a, b) {
        (Number::Int(a), Number::Int(b)) => a.cmp(&b),
        (a, b) if by_sign => a.float().total_cmp(&b.float()),
        (a, b) => (a.float() + 0.0).total_cmp(&(b.float() + 0.0)),
    };
    let is_nan = |at: &usize| values[*at].float().is_nan();
    let (mut order, mut others): (Vec<usize>, Vec<usize>) = (0..values.len()).partition(is_nan);
    others.sort_by(|a, b| {
        let by_value = ascending(values[*a], values[*b]);
        if greatest { by_value.reverse() } else { by_value }
    });
    order.extend(others);
    order
}
