//! The epilogue: visits the sums of a thread as (row, column, value). It alone knows C.

use super::fragment::Accumulators;
use super::tile::Tiled;
use crate::ir::{Expr, KernelBuilder};
use crate::plan::Guards;

/// Writes the elements of C that exist.
pub(super) fn store(k: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators) {
    match tiled.t.epilogue().guards() {
        Guards::None => {
            k.comment("Write the outputs.");
            outputs(k, tiled, acc, false);
        }
        Guards::Inline => {
            k.comment("Write the outputs that exist.");
            outputs(k, tiled, acc, true);
        }
        Guards::Hoisted => {
            k.comment("Write the outputs that exist.");
            let (p, origin) = (tiled.problem, &tiled.origin);
            let inside = (origin.row + tiled.bm).le(p.m).and((origin.col + tiled.bn).le(p.n));
            k.if_else(inside, |k| outputs(k, tiled, acc, false), |k| outputs(k, tiled, acc, true));
        }
    }
}

fn outputs(k: &mut KernelBuilder, tiled: &Tiled<'_>, acc: &Accumulators, guards: bool) {
    let p = tiled.problem;
    over(k, "m", tiled.tm.into(), tiled.t.tm(), |k, m| {
        let row = k.let_("row", tiled.origin.row + tiled.rows.element(m.clone()));
        guarded(k, guards, Expr::from(row).lt(p.m), |k| {
            if tiled.t.epilogue().width() == 4 {
                over(k, "v", tiled.tn / 4, tiled.t.tn() / 4, |k, v| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.vector(v.clone()));
                    vector(k, tiled, acc, guards, (&m, row.into()), (&(v * 4), col.into()));
                });
            } else {
                over(k, "n", tiled.tn.into(), tiled.t.tn(), |k, n| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.element(n.clone()));
                    guarded(k, guards, Expr::from(col).lt(p.n), |k| {
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
    guards: bool,
    (m, row): (&Expr, Expr),
    (n, col): (&Expr, Expr),
) {
    let p = tiled.problem;
    let whole = |k: &mut KernelBuilder| {
        k.store(p.c.at(row.clone(), col.clone()).vector(), acc.vector(m, n));
    };
    if !tiled.t.epilogue().straddles() || !guards {
        // A vector lies in C as a whole or not at all.
        return guarded(k, guards, col.clone().lt(p.n), whole);
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
    guards: bool,
    inside: Expr,
    body: impl FnOnce(&mut KernelBuilder),
) {
    if guards {
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
