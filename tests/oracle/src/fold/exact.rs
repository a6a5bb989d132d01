//! Sums with twice the digits of `f64`, error bounds, and intervals rounded to a type.

use gemm_dsl::ir::Elem;

/// Number as a sum of two numbers. The second is at most half a unit in the last place of the
/// first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Twice(pub(super) f64, pub(super) f64);

impl Twice {
    pub(super) const ONE: Self = Self(1.0, 0.0);

    /// Sum of two numbers without error (Knuth's TwoSum).
    fn sum(a: f64, b: f64) -> Self {
        let s = a + b;
        let added = s - a;
        Self(s, (a - (s - added)) + (b - added))
    }

    pub(super) fn plus(self, x: f64) -> Self {
        let Self(high, low) = Self::sum(self.0, x);
        Self::sum(high, low + self.1)
    }

    pub(super) fn times(self, x: f64) -> Self {
        let high = self.0 * x;
        let low = self.0.mul_add(x, -high);
        Self::sum(high, self.1.mul_add(x, low))
    }

    pub(super) fn divided(self, x: f64) -> Self {
        let high = self.0 / x;
        let rest = (-high).mul_add(x, self.0) + self.1;
        Self::sum(high, rest / x)
    }

    /// Sum of some values, and sum of their magnitudes.
    pub(super) fn sums(values: impl Iterator<Item = f64>) -> (Self, f64) {
        let add = |(sum, size): (Self, f64), x: f64| (sum.plus(x), size + x.abs());
        values.fold((Self(0.0, 0.0), 0.0), add)
    }
}

/// Unit roundoff of a type: the maximal relative error of one rounding.
pub(super) fn unit(acc: Elem) -> f64 {
    if acc == Elem::F64 { f64::EPSILON / 2.0 } else { crate::UNIT }
}

/// Relative error of n roundings: Higham's γ.
pub(super) fn gamma(n: f64, unit: f64) -> f64 {
    if n * unit < 1.0 { n * unit / (1.0 - n * unit) } else { f64::INFINITY }
}

/// Largest number of a type.
pub(super) fn greatest(acc: Elem) -> f64 {
    if acc == Elem::F64 { f64::MAX } else { f32::MAX.into() }
}

/// Smallest positive number of a type. It is twice the maximum rounding error of a subnormal
/// result.
pub(super) fn least(acc: Elem) -> f64 {
    if acc == Elem::F64 { f64::from_bits(1) } else { f32::from_bits(1).into() }
}

/// Returns the interval of a type that contains a value, which is known up to `error`.
pub(super) fn around(value: f64, error: f64, acc: Elem) -> (f64, f64) {
    // The margin covers the rounding of these two operations in `f64`.
    let (low, high) = ((value - error).next_down(), (value + error).next_up());
    if acc == Elem::F64 {
        return (low, high);
    }
    let (mut below, mut above) = (low as f32, high as f32);
    if f64::from(below) > low {
        below = below.next_down();
    }
    if f64::from(above) < high {
        above = above.next_up();
    }
    (below.into(), above.into())
}
