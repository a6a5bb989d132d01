//! Mean and variance in one pass: count, mean, and sum of squared deviations. A thread computes the
//! mean of its loaded elements first, and then their squared deviations. Accumulators of threads
//! are combined after T. Chan, G. Golub and R. LeVeque ("Updating formulae and a pairwise algorithm
//! for computing sample variances", 1979).
//!
//! Squares may leave the range while the variance is in range. A sum of squares that overflows is
//! therefore recomputed from scaled deviations, and kept as a negative number. It stays scaled from
//! then on. The scaling does not change a bit of sums that are in range.

use super::{Cell, LoadedElements};
use crate::ir::{Elem, Expr, KernelBuilder};
use crate::lower::literal::{number, zero};
use crate::plan::Types;
use crate::target::intrinsic::{CANONICAL_NAN, Intrinsic};

fn fma(a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Fma, vec![a.into(), b.into(), c.into()])
}

/// Powers of two and limits of an accumulator type.
struct Range {
    acc: Elem,
    /// Binary exponent by which deviations of an overflowing sum are scaled down. The square of the
    /// largest deviation then does not overflow, and squares of relevant deviations do not
    /// underflow.
    down: i32,
}

impl Range {
    fn new(acc: Elem) -> Self {
        Self { acc, down: if acc == Elem::F64 { 768 } else { 96 } }
    }

    fn literal(&self, value: f64) -> Expr {
        if self.acc == Elem::F64 { Expr::F64(value) } else { Expr::F32(value as f32) }
    }

    fn power(&self, exponent: i32) -> Expr {
        self.literal(2f64.powi(exponent))
    }

    fn most(&self) -> Expr {
        self.literal(if self.acc == Elem::F64 { f64::MAX } else { f32::MAX.into() })
    }

    /// Returns true if a magnitude is finite.
    fn holds(&self, magnitude: Expr) -> Expr {
        magnitude.le(self.most())
    }

    /// Half of the difference of two numbers, which cannot overflow.
    fn half(&self, of: impl Into<Expr>, from: impl Into<Expr>) -> Expr {
        of.into() * self.literal(0.5) - from.into() * self.literal(0.5)
    }

    /// Scaled deviation, from half of it.
    fn scaled(&self, half: Expr) -> Expr {
        half * self.power(1 - self.down)
    }

    /// Magnitude of a scaled sum of squares.
    fn scaled_squares(&self, squares: Expr) -> Expr {
        let (small, none) = (self.power(-self.down), zero(self.acc));
        let scaled = squares.clone() * small.clone() * small;
        squares.clone().lt(none.clone()).select(none - squares, scaled)
    }

    /// A mean of finite numbers, which rounding must not make infinite.
    fn clamped(&self, mean: Expr) -> Expr {
        let least = zero(self.acc) - self.most();
        let below = Expr::Call(Intrinsic::Minimum, vec![mean, self.most()]);
        Expr::Call(Intrinsic::Maximum, vec![below, least])
    }
}

fn abs(value: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Abs, vec![value.into()])
}

pub(super) fn absorb(b: &mut KernelBuilder, kept: &[Cell], held: &LoadedElements, types: Types) {
    let acc = types.acc;
    let (none, one) = (number(types.index, 0), number(types.index, 1));
    let inside = |index: Expr| held.ragged.as_ref().map(|n| index.lt(n.clone()));
    let total = b.mut_("total", zero(acc));
    held.each(b, |b, value, _| b.assign(total, total + value));
    let (own, own_mean) = if held.ragged.is_none() {
        let own = b.let_("held", (held.items * held.vector as i32).cast(types.index));
        (own, total / Expr::from(own).cast(acc))
    } else {
        let own = b.mut_("held", none.clone());
        held.each(b, |b, _, index| {
            if let Some(inside) = inside(index) {
                b.assign(own, own + inside.select(one.clone(), none.clone()));
            }
        });
        let mean = total / Expr::from(own).cast(acc);
        (own, Expr::from(own).gt(none.clone()).select(mean, zero(acc)))
    };
    let own_mean = b.mut_("held_mean", own_mean);
    let own_squares = b.mut_("held_squares", zero(acc));
    held.each(b, |b, value, index| {
        let apart = value - own_mean;
        let apart = match inside(index) {
            None => apart,
            Some(inside) => inside.select(apart, zero(acc)),
        };
        let apart = b.let_("apart", apart);
        b.assign(own_squares, fma(apart, apart, own_squares));
    });
    let range = Range::new(acc);
    b.if_(range.holds(own_squares.into()).negated(), |b| {
        b.comment(
            "Overflow: recompute from scaled numbers. The sum of squares is stored as negative.",
        );
        b.if_(range.holds(abs(total)).negated(), |b| {
            b.assign(total, zero(acc));
            held.each(b, |b, value, _| b.assign(total, total + value * range.power(-32)));
            let mean = range.clamped(total / Expr::from(own).cast(acc) * range.power(32));
            // With an infinite element the squares become NaN.
            b.assign(own_mean, range.holds(abs(total)).select(mean, total));
        });
        b.assign(own_squares, zero(acc));
        held.each(b, |b, value, index| {
            let apart = range.scaled(range.half(value, own_mean));
            let apart = match inside(index) {
                None => apart,
                Some(inside) => inside.select(apart, zero(acc)),
            };
            let apart = b.let_("apart", apart);
            b.assign(own_squares, fma(apart, apart, own_squares));
        });
        b.assign(own_squares, zero(acc) - own_squares);
    });
    let now: Vec<Expr> = kept.iter().map(Cell::get).collect();
    let both = combine(b, &now, &[own, own_mean, own_squares].map(Expr::from), types);
    for (part, value) in kept.iter().zip(both) {
        part.set(b, value);
    }
}

pub(super) fn combine(
    b: &mut KernelBuilder,
    left: &[Expr],
    right: &[Expr],
    types: Types,
) -> Vec<Expr> {
    let acc = types.acc;
    let both = b.let_("both", left[0].clone() + right[0].clone());
    let some = Expr::from(both).gt(number(types.index, 0));
    let part = right[0].clone().cast(acc) / Expr::from(both).cast(acc);
    let share = b.let_("share", some.select(part, zero(acc)));
    let apart = b.let_("apart", right[1].clone() - left[1].clone());
    let mean = b.mut_("both_mean", fma(apart, share, left[1].clone()));
    let weight = left[0].clone().cast(acc) * share;
    let squares = left[2].clone() + right[2].clone() + (apart * weight.clone()) * apart;
    let squares = b.mut_("both_squares", squares);
    let range = Range::new(acc);
    let signed = |squares: &Expr| squares.clone().ge(zero(acc));
    let in_range = range.holds(squares.into()).and(signed(&left[2])).and(signed(&right[2]));
    b.if_(in_range.negated(), |b| {
        b.comment("Overflow, here or earlier: recompute from scaled numbers.");
        let half = b.let_("half", range.half(right[1].clone(), left[1].clone()));
        let mean_half = fma(half, share, left[1].clone() * range.literal(0.5));
        b.assign(mean, range.clamped(mean_half * range.literal(2.0)));
        let scaled = b.let_("scaled", range.scaled(half.into()));
        let [own, other] = [&left[2], &right[2]].map(|of| range.scaled_squares(of.clone()));
        b.assign(squares, zero(acc) - (own + other + (scaled * weight) * scaled));
    });
    vec![both.into(), mean.into(), squares.into()]
}

/// Returns mean and variance. Both are NaN if there are no elements. They are also NaN if an
/// element is infinite or NaN, because the squares are then NaN.
pub(super) fn values(b: &mut KernelBuilder, all: &[Expr], types: Types) -> Vec<Expr> {
    let (acc, squares) = (types.acc, all[2].clone());
    let counted = b.let_("counted", all[0].clone().cast(acc));
    let nan = match acc {
        Elem::F64 => Expr::F64(f64::NAN),
        _ => Expr::F32(f32::from_bits(CANONICAL_NAN)),
    };
    let some = Expr::from(counted).gt(zero(acc));
    let finite = squares.clone().equals(squares.clone());
    let mean = some.and(finite).select(all[1].clone(), nan);
    let range = Range::new(acc);
    let up = range.power(range.down);
    let scaled = (zero(acc) - squares.clone()) / counted * up.clone() * up;
    let var = squares.clone().lt(zero(acc)).select(scaled, squares / counted);
    vec![mean, var]
}
