//! The epilogue: visits the sums of a thread as (row, column, value). Of the builders of a tiled
//! kernel it alone knows C; `naive` stores what [`Finish`] makes of a sum by itself.

use super::Problem;
use super::fragment::{Accumulators, over};
use super::tile::Tiled;
use crate::ir::{Expr, KernelBuilder};
use crate::plan::{Guards, SgemmPlan};
use crate::value::Lowered;

/// What becomes of a sum before it is stored.
pub(super) struct Finish<'p> {
    closure: Option<Lowered>,
    problem: &'p Problem,
}

impl<'p> Finish<'p> {
    pub(super) fn declare(k: &mut KernelBuilder, plan: &SgemmPlan, problem: &'p Problem) -> Self {
        let closure = plan.epilogue().map(|epilogue| epilogue.closure().lower(k));
        Self { closure, problem }
    }

    /// Whether a sum is stored as it is.
    fn is_identity(&self) -> bool {
        self.closure.is_none()
    }

    /// What is stored for the sum of an element of C.
    pub(super) fn value(&self, sum: Expr, row: &Expr, col: &Expr) -> Expr {
        let Some(closure) = &self.closure else { return sum };
        let p = self.problem;
        closure.apply([sum], |name| match name {
            "m" => p.m.into(),
            "n" => p.n.into(),
            "k" => p.k.into(),
            "row" => row.clone(),
            "col" => col.clone(),
            other => unreachable!("the environment of an epilogue has no `{other}`"),
        })
    }
}

/// Writes the elements of C that exist.
pub(super) fn store(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    finish: &Finish<'_>,
) {
    match tiled.t.epilogue().guards() {
        Guards::None => {
            k.comment("Write the outputs.");
            outputs(k, tiled, acc, finish, false);
        }
        Guards::Inline => {
            k.comment("Write the outputs that exist.");
            outputs(k, tiled, acc, finish, true);
        }
        Guards::Hoisted => {
            k.comment("Write the outputs that exist.");
            let (p, origin) = (tiled.problem, &tiled.origin);
            let inside = (origin.row + tiled.bm).le(p.m).and((origin.col + tiled.bn).le(p.n));
            k.if_else(
                inside,
                |k| outputs(k, tiled, acc, finish, false),
                |k| outputs(k, tiled, acc, finish, true),
            );
        }
    }
}

fn outputs(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    acc: &Accumulators,
    finish: &Finish<'_>,
    guards: bool,
) {
    let p = tiled.problem;
    over(k, "m", tiled.tm.into(), tiled.t.tm(), |k, m| {
        let row = k.let_("row", tiled.origin.row + tiled.rows.element(m.clone()));
        guarded(k, guards, Expr::from(row).lt(p.m), |k| {
            if tiled.t.epilogue().width() == 4 {
                over(k, "v", tiled.tn / 4, tiled.t.tn() / 4, |k, v| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.vector(v.clone()));
                    vector(k, tiled, acc, finish, guards, (&m, row.into()), (&(v * 4), col.into()));
                });
            } else {
                over(k, "n", tiled.tn.into(), tiled.t.tn(), |k, n| {
                    let col = k.let_("col", tiled.origin.col + tiled.cols.element(n.clone()));
                    guarded(k, guards, Expr::from(col).lt(p.n), |k| {
                        let value = finish.value(acc.value(&m, &n), &row.into(), &col.into());
                        k.store(p.c.at(row, col), value);
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
    finish: &Finish<'_>,
    guards: bool,
    (m, row): (&Expr, Expr),
    (n, col): (&Expr, Expr),
) {
    let p = tiled.problem;
    let whole = |k: &mut KernelBuilder| {
        let values = match finish.is_identity() {
            true => acc.vector(m, n),
            false => {
                let value =
                    |j: i32| finish.value(acc.value(m, &(n.clone() + j)), &row, &(col.clone() + j));
                Expr::Pack((0..4).map(value).collect())
            }
        };
        k.store(p.c.at(row.clone(), col.clone()).vector(), values);
    };
    if !tiled.t.epilogue().straddles() || !guards {
        // A vector lies in C as a whole or not at all.
        return guarded(k, guards, col.clone().lt(p.n), whole);
    }
    k.if_else((col.clone() + 3).lt(p.n), whole, |k| {
        for j in 0..4 {
            let n = n.clone() + j;
            k.if_((col.clone() + j).lt(p.n), |k| {
                let col = col.clone() + j;
                let value = finish.value(acc.value(m, &n), &row, &col);
                k.store(p.c.at(row.clone(), col), value);
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
