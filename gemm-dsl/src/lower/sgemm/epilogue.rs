//! The epilogue: visits the sums of a thread as (row, column, value). It alone knows C.

use super::fragment::Accumulators;
use super::tile::Tiled;
use crate::ir::{Expr, KernelBuilder};

/// Writes the elements of C that exist.
pub(super) fn store(k: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators) {
    let p = tiled.problem;
    k.comment(if tiled.plan.guarded() {
        "Write the outputs that exist."
    } else {
        "Write the outputs."
    });
    over(k, "m", tiled.tm.into(), tiled.t.tm(), |k, m| {
        let row = k.let_("row", tiled.origin.row + tiled.rows.element(m.clone()));
        guarded(k, tiled, Expr::from(row).lt(p.m), |k| {
            if tiled.t.c_vector() {
                over(k, "v", tiled.tn / 4, tiled.t.tn() / 4, |k, v| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.vector(v.clone()));
                    vector(k, tiled, acc, (&m, row.into()), (&(v * 4), col.into()));
                });
            } else {
                over(k, "n", tiled.tn.into(), tiled.t.tn(), |k, n| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.element(n.clone()));
                    guarded(k, tiled, Expr::from(col).lt(p.n), |k| {
                        k.store(p.c.at(row, col), acc.value(&m, &n));
                    });
                });
            }
        });
    });
}

/// Four adjacent outputs of a row.
fn vector(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    (m, row): (&Expr, Expr),
    (n, col): (&Expr, Expr),
) {
    let p = tiled.problem;
    let whole = |k: &mut KernelBuilder| {
        k.store(p.c.at(row.clone(), col.clone()).vector(), acc.vector(m, n));
    };
    if !tiled.plan.pitched() || !tiled.plan.guarded() {
        // N is a multiple of 4: a vector lies in C as a whole or not at all.
        return guarded(k, tiled, col.clone().lt(p.n), whole);
    }
    k.if_else((col.clone() + 3).lt(p.n), whole, |k| {
        for j in 0..4 {
            let n = n.clone() + j;
            k.if_((col.clone() + j).lt(p.n), |k| {
                k.store(p.c.at(row.clone(), col.clone() + j), acc.value(m, &n));
            });
        }
    });
}

fn guarded(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    inside: Expr,
    body: impl FnOnce(&mut KernelBuilder),
) {
    if tiled.plan.guarded() {
        k.if_(inside, body);
    } else {
        body(k);
    }
}

/// An unrolled loop, or its body alone where there is one round.
fn over(
    k: &mut KernelBuilder,
    name: &str,
    count: Expr,
    number: u32,
    body: impl FnOnce(&mut KernelBuilder, Expr),
) {
    if number == 1 {
        body(k, 0.into());
    } else {
        k.unrolled(name, count, |k, i| body(k, i.into()));
    }
}
