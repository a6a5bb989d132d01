//! Mean and variance in one reading: how many elements there were, their mean, and the sum of the squares of
//! what they differ from it. A thread takes those of its elements at once, as two readings of them would;
//! two of what threads keep are combined as T. Chan, G. Golub and R. LeVeque do ("Updating formulae and a pairwise
//! algorithm for computing sample variances", 1979).

use super::{Cell, Held, number, zero};
use crate::ir::{Elem, Expr, KernelBuilder};
use crate::plan::Types;
use crate::target::intrinsic::{CANONICAL_NAN, Intrinsic};

fn fma(a: impl Into<Expr>, b: impl Into<Expr>, c: impl Into<Expr>) -> Expr {
    Expr::Call(Intrinsic::Fma, vec![a.into(), b.into(), c.into()])
}

pub(super) fn absorb(k: &mut KernelBuilder, kept: &[Cell], held: &Held, types: Types) {
    let acc = types.acc;
    let (none, one) = (number(types.index, 0), number(types.index, 1));
    let inside = |index: Expr| held.ragged.as_ref().map(|n| index.lt(n.clone()));
    let total = k.mut_("total", zero(acc));
    held.each(k, |k, value, _| k.assign(total, total + value));
    let (own, own_mean) = if held.ragged.is_none() {
        let own = k.let_("held", (held.items * held.vector as i32).cast(types.index));
        (own, total / Expr::from(own).cast(acc))
    } else {
        let own = k.mut_("held", none.clone());
        held.each(k, |k, _, index| {
            if let Some(inside) = inside(index) {
                k.assign(own, own + inside.select(one.clone(), none.clone()));
            }
        });
        let mean = total / Expr::from(own).cast(acc);
        (own, Expr::from(own).gt(none.clone()).select(mean, zero(acc)))
    };
    let own_mean = k.let_("held_mean", own_mean);
    let own_squares = k.mut_("held_squares", zero(acc));
    held.each(k, |k, value, index| {
        let apart = value - own_mean;
        let apart = match inside(index) {
            None => apart,
            Some(inside) => inside.select(apart, zero(acc)),
        };
        let apart = k.let_("apart", apart);
        k.assign(own_squares, fma(apart, apart, own_squares));
    });
    let now: Vec<Expr> = kept.iter().map(Cell::get).collect();
    let both = combine(k, &now, &[own, own_mean, own_squares].map(Expr::from), types);
    for (part, value) in kept.iter().zip(both) {
        part.set(k, value);
    }
}

pub(super) fn combine(k: &mut KernelBuilder, a: &[Expr], b: &[Expr], types: Types) -> Vec<Expr> {
    let acc = types.acc;
    let both = k.let_("both", a[0].clone() + b[0].clone());
    let some = Expr::from(both).gt(number(types.index, 0));
    let part = b[0].clone().cast(acc) / Expr::from(both).cast(acc);
    let share = k.let_("share", some.select(part, zero(acc)));
    let apart = k.let_("apart", b[1].clone() - a[1].clone());
    let mean = k.let_("both_mean", fma(apart, share, a[1].clone()));
    let weight = a[0].clone().cast(acc) * share;
    let squares = a[2].clone() + b[2].clone() + (apart * weight) * apart;
    let squares = k.let_("both_squares", squares);
    vec![both.into(), mean.into(), squares.into()]
}

/// Mean and variance; both are NaN of no elements, and where one, or the sum of those that a thread has held at
/// once, was infinite: then squares are NaN.
pub(super) fn values(k: &mut KernelBuilder, all: &[Expr], types: Types) -> Vec<Expr> {
    let counted = k.let_("counted", all[0].clone().cast(types.acc));
    let nan = match types.acc {
        Elem::F64 => Expr::F64(f64::NAN),
        _ => Expr::F32(f32::from_bits(CANONICAL_NAN)),
    };
    let some = Expr::from(counted).gt(zero(types.acc));
    let finite = all[2].clone().equals(all[2].clone());
    let mean = some.and(finite).select(all[1].clone(), nan);
    vec![mean, all[2].clone() / counted]
}
