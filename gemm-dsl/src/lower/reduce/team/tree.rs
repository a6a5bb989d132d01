//! The tree in shared memory.

use super::{Done, DoneOf, Team, load, store, values};
use crate::ir::{BufferId, Expr, For, KernelBuilder, Unroll, Var};
use crate::lower::reduce::fold::Cell;
use crate::lower::reduce::place::Columns;
use crate::lower::reduce::{WARP, double, halve};
use crate::spec::Tree;
use std::slice;

impl Team<'_> {
    /// The shared-memory tree, down to `left` values; with one left, it is handed on.
    pub(super) fn by_tree(
        &mut self,
        k: &mut KernelBuilder,
        kept: Vec<Expr>,
        left: i32,
        done: Option<Done<'_>>,
    ) {
        let (block, tid) = (self.block, self.tid.clone());
        let to_the_end = left == 1;
        let all_done = self.plan.block() as i32 <= left;
        let x = self.shared(k, &[block.into()], "one value per thread");
        store(k, &x, slice::from_ref(&tid), kept);
        k.barrier();

        let add =
            |k: &mut KernelBuilder, left: Expr, s: Var| self.add(k, &x, left.clone(), left + s);
        match self.plan.tree() {
            _ if all_done => {}
            Tree::Sequential => {
                k.comment("Tree: the lower half of the threads folds the upper half onto its own.");
                let stop = if to_the_end { 0 } else { left / 2 };
                let half = block / 2;
                k.loop_("s", For::above(half, stop).change(halve()), |k, s| {
                    k.if_(tid.clone().lt(s), |k| add(k, tid.clone(), s));
                    k.barrier();
                });
            }
            Tree::Interleaved => {
                k.comment("Tree: consecutive threads fold pairs that lie s apart.");
                let stop = if to_the_end { block.into() } else { block / left };
                k.loop_("s", For::below(1, stop).change(double()), |k, s| {
                    let left = k.let_("left", Expr::I32(2) * s * tid.clone());
                    k.if_(Expr::from(left).lt(block), |k| add(k, left.into(), s));
                    k.barrier();
                });
            }
            Tree::InterleavedDivergent => {
                k.comment(
                    "Tree: the threads whose index is a multiple of 2s fold the value s above.",
                );
                k.loop_("s", For::below(1, block).change(double()), |k, s| {
                    let active = (tid.clone() % (Expr::I32(2) * s)).equals(0);
                    k.if_(active, |k| add(k, tid.clone(), s));
                    k.barrier();
                });
            }
        }
        if let Some(done) = done {
            k.if_(tid.equals(0), |k| done(k, load(&x, &[0.into()])));
        }
    }

    /// Combines what lies at one place with what lies at another.
    fn add(&self, k: &mut KernelBuilder, x: &[BufferId], at: Expr, other: Expr) {
        let (at, other) = ([at], [other]);
        let sum = self.fold.combine(k, &load(x, &at), &load(x, &other));
        store(k, x, &at, sum);
    }

    /// The last steps of the tree, whose adders are all in the first warp: unrolled, and ordered by
    /// the warp's barriers, one between everybody's read and the writes and one after the writes.
    pub(super) fn by_last_warp(&mut self, k: &mut KernelBuilder, done: Done<'_>) {
        let (block, tid) = (self.block, self.tid.clone());
        let interleaved = self.plan.tree() == Tree::Interleaved;
        let x = self.shared(k, &[block.into()], "one value per thread");
        k.comment("The threads that are left are one warp: its own barriers order each step, one");
        k.comment("between the reads and the writes and one after the writes.");
        k.if_(tid.clone().lt(WARP), |k| {
            if interleaved {
                let from = block / (2 * WARP);
                let head = For::below(from, block).change(double()).unroll(Unroll::Full);
                k.loop_("s", head, |k, s| {
                    let left = k.let_("left", Expr::I32(2) * s * tid.clone());
                    let active = Expr::from(left).lt(block);
                    let (at, other) = ([left.into()], [left + s]);
                    let held = self.held_where(k, &active, (&x, &at, &other));
                    k.warp_barrier();
                    k.if_(active, |k| store(k, &x, &at, held));
                    k.warp_barrier();
                });
            } else {
                let loaded = load(&x, slice::from_ref(&tid));
                let one = loaded.len() == 1;
                let named = loaded.into_iter().zip(self.fold.parts()).map(|(held, part)| {
                    Cell::Var(k.mut_(if one { "value" } else { part.name }, held))
                });
                let kept: Vec<Cell> = named.collect();
                let head = For::above(WARP, 0).change(halve()).unroll(Unroll::Full);
                k.loop_("s", head, |k, s| {
                    self.fold.combine_into(k, &kept, &load(&x, &[tid.clone() + s]));
                    k.warp_barrier();
                    store(k, &x, slice::from_ref(&tid), values(&kept));
                    k.warp_barrier();
                });
            }
            k.if_(tid.clone().equals(0), |k| done(k, load(&x, &[0.into()])));
        });
    }

    /// What an active thread makes of what lies at two places; elsewhere, the identity.
    fn held_where(
        &self,
        k: &mut KernelBuilder,
        active: &Expr,
        (x, at, other): (&[BufferId], &[Expr], &[Expr]),
    ) -> Vec<Expr> {
        if let [identity] = self.identity.as_slice() {
            let sum = self.fold.combine(k, &load(x, at), &load(x, other));
            let held = sum
                .into_iter()
                .map(|sum| k.let_("value", active.clone().select(sum, identity.clone())).into());
            return held.collect();
        }
        let named = self.identity.iter().zip(self.fold.parts());
        let named = named.map(|(identity, part)| {
            Cell::Var(k.mut_(&format!("{}_here", part.name), identity.clone()))
        });
        let held: Vec<Cell> = named.collect();
        k.if_(active.clone(), |k| {
            let sum = self.fold.combine(k, &load(x, at), &load(x, other));
            held.iter().zip(sum).for_each(|(held, sum)| held.set(k, sum));
        });
        values(&held)
    }

    /// The tree over the rows of a block's threads: those of the first row get what those of their columns
    /// keep. `kept` is of one of the columns of a thread, and `done` is what is done with them.
    pub(in crate::lower::reduce) fn by_columns(
        &mut self,
        k: &mut KernelBuilder,
        columns: &Columns,
        kept: &dyn Fn(Option<Expr>) -> Vec<Cell>,
        done: DoneOf<'_>,
    ) {
        if self.plan.group() == 1 {
            return done(k, &|w| values(&kept(w)));
        }
        let dims: Vec<Expr> = [columns.rows.into()]
            .into_iter()
            .chain(columns.width.map(Expr::from))
            .chain([columns.across.into()])
            .collect();
        let x = self.shared(k, &dims, "one value per thread and column");
        let (tx, ty) = (&columns.tx, &columns.ty);
        let at = |row: Expr, w: Option<Expr>| -> Vec<Expr> {
            [row].into_iter().chain(w).chain([tx.clone()]).collect()
        };
        columns.each(k, |k, w| {
            let kept = values(&kept(w.clone()));
            store(k, &x, &at(ty.clone(), w), kept);
        });
        k.barrier();
        k.comment("Tree: the upper half of the threads of a column is folded onto the lower one.");
        k.loop_("s", For::above(columns.rows / 2, 0).change(halve()), |k, s| {
            k.if_(ty.clone().lt(s), |k| {
                columns.each(k, |k, w| {
                    let (here, above) = (at(ty.clone(), w.clone()), at(ty.clone() + s, w));
                    let sum = self.fold.combine(k, &load(&x, &here), &load(&x, &above));
                    store(k, &x, &here, sum);
                });
            });
            k.barrier();
        });
        k.if_(ty.clone().equals(0), |k| done(k, &|w| load(&x, &at(0.into(), w))));
    }
}
