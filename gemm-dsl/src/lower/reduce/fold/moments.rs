//! Mean and variance in one pass: count, mean, and sum of squared deviations. A thread computes the
//! mean of its loaded elements first, and then their squared deviations. Accumulators of threads
//! are combined after T. Chan, G. Golub and R. LeVeque ("Updating formulae and a pairwise algorithm
//! for computing sample variances", 1979).

use super::{Cell, LoadedElements};
use crate::ir::{Elem, Expr, KernelBuilder};
use crate::lower::reduce::literal::{number, zero};
use crate::plan::Types;
use crate::target::intrinsic::{CANONICAL_NAN, Intrinsic};

fn fma(a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Fma, vec![a.into(), b.into(), c.into()])
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
    let own_mean = b.let_("held_mean", own_mean);
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
    let mean = b.let_("both_mean", fma(apart, share, left[1].clone()));
    let weight = left[0].clone().cast(acc) * share;
    let squares = left[2].clone() + right[2].clone() + (apart * weight) * apart;
    let squares = b.let_("both_squares", squares);
    vec![both.into(), mean.into(), squares.into()]
}

/// Returns mean and variance. Both are NaN if there are no elements. They are also NaN if an
/// element, or the sum of the elements that a thread loads at once, is infinite, because the
/// squares are then NaN.
pub(super) fn values(b: &mut KernelBuilder, all: &[Expr], types: Types) -> Vec<Expr> {
    let counted = b.let_("counted", all[0].clone().cast(types.acc));
    let nan = match types.acc {
        Elem::F64 => Expr::F64(f64::NAN),
        _ => Expr::F32(f32::from_bits(CANONICAL_NAN)),
    };
    let some = Expr::from(counted).gt(zero(types.acc));
    let finite = all[2].clone().equals(all[2].clone());
    let mean = some.and(finite).select(all[1].clone(), nan);
    vec![mean, all[2].clone() / counted]
}
