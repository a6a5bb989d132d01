//! Fold by a tree in shared memory.

use super::{Done, DoneOf, Team, load, store, values};
use crate::ir::{BufferId, Expr, For, KernelBuilder, Unroll, Var};
use crate::lower::reduce::fold::Cell;
use crate::lower::reduce::place::Columns;
use crate::lower::reduce::{WARP, double, halve};
use crate::spec::Tree;
use std::slice;

/// Two positions in shared arrays.
struct Pair<'a> {
    arrays: &'a [BufferId],
    at: &'a [Expr],
    other: &'a [Expr],
}

impl Team<'_> {
    /// Folds by a tree in shared memory until `left` values are left. If the tree runs to the end,
    /// `done` receives the last value.
    pub(super) fn by_tree(
        &mut self,
        b: &mut KernelBuilder,
        kept: Vec<Expr>,
        left: i32,
        done: Option<Done<'_>>,
    ) {
        let (block, tid) = (self.block, self.tid.clone());
        let to_the_end = left == 1;
        let all_done = self.plan.block() as i32 <= left;
        let x = self.shared(b, &[block.into()], "thread");
        store(b, &x, slice::from_ref(&tid), kept);
        b.barrier();

        let add =
            |b: &mut KernelBuilder, left: Expr, s: Var| self.add(b, &x, left.clone(), left + s);
        let [folds_in, fold_in] = self.fold.verbs();
        match self.plan.tree() {
            _ if all_done => {}
            Tree::Sequential => {
                b.comment(format!(
                    "Tree: in each step, a thread i < s {folds_in} the value of thread i + s. The \
                     active threads are adjacent."
                ));
                let stop = if to_the_end { 0 } else { left / 2 };
                let half = block / 2;
                b.loop_("s", For::above(half, stop).change(halve()), |b, s| {
                    b.if_(tid.clone().lt(s), |b| add(b, tid.clone(), s));
                    b.barrier();
                });
            }
            Tree::Interleaved => {
                b.comment("Tree: consecutive threads combine pairs that are s apart.");
                let stop = if to_the_end { block.into() } else { block / left };
                b.loop_("s", For::below(1, stop).change(double()), |b, s| {
                    let left = b.let_("left", Expr::I32(2) * s * tid.clone());
                    b.if_(Expr::from(left).lt(block), |b| add(b, left.into(), s));
                    b.barrier();
                });
            }
            Tree::InterleavedDivergent => {
                b.comment(format!(
                    "Tree: threads whose index is a multiple of 2s {fold_in} the value of thread \
                     + s."
                ));
                b.loop_("s", For::below(1, block).change(double()), |b, s| {
                    let active = (tid.clone() % (Expr::I32(2) * s)).equals(0);
                    b.if_(active, |b| add(b, tid.clone(), s));
                    b.barrier();
                });
            }
        }
        if let Some(done) = done {
            b.if_(tid.equals(0), |b| done(b, load(&x, &[0.into()])));
        }
    }

    /// Combines the values at two positions, and stores the result at the first.
    fn add(&self, b: &mut KernelBuilder, x: &[BufferId], at: Expr, other: Expr) {
        let (at, other) = ([at], [other]);
        let sum = self.fold.combine(b, &load(x, &at), &load(x, &other));
        store(b, x, &at, sum);
    }

    /// Last steps of the tree, in which only the first warp is active. They are unrolled. In each
    /// step, one warp barrier separates the reads from the writes, and a second one follows the
    /// writes.
    pub(super) fn by_last_warp(&mut self, b: &mut KernelBuilder, done: Done<'_>) {
        let (block, tid) = (self.block, self.tid.clone());
        let interleaved = self.plan.tree() == Tree::Interleaved;
        let x = self.shared(b, &[block.into()], "thread");
        b.comment("The remaining threads are one warp. Warp barriers order each step: one between");
        b.comment("the reads and the writes, one after the writes.");
        if !interleaved {
            b.comment("The values that lanes s and above compute in a step are never used.");
        }
        b.if_(tid.clone().lt(WARP), |b| {
            if interleaved {
                let from = block / (2 * WARP);
                let head = For::below(from, block).change(double()).unroll(Unroll::Full);
                b.loop_("s", head, |b, s| {
                    let left = b.let_("left", Expr::I32(2) * s * tid.clone());
                    let active = Expr::from(left).lt(block);
                    let (at, other) = ([left.into()], [left + s]);
                    let held = self.combined_where(
                        b,
                        &active,
                        Pair { arrays: &x, at: &at, other: &other },
                    );
                    b.warp_barrier();
                    b.if_(active, |b| store(b, &x, &at, held));
                    b.warp_barrier();
                });
            } else {
                let loaded = load(&x, slice::from_ref(&tid));
                let one = loaded.len() == 1;
                let named = loaded.into_iter().zip(self.fold.parts()).map(|(held, part)| {
                    Cell::Var(b.mut_(if one { "value" } else { part.name }, held))
                });
                let kept: Vec<Cell> = named.collect();
                let head = For::above(WARP, 0).change(halve()).unroll(Unroll::Full);
                b.loop_("s", head, |b, s| {
                    self.fold.combine_into(b, &kept, &load(&x, &[tid.clone() + s]));
                    b.warp_barrier();
                    store(b, &x, slice::from_ref(&tid), values(&kept));
                    b.warp_barrier();
                });
            }
            b.if_(tid.clone().equals(0), |b| done(b, load(&x, &[0.into()])));
        });
    }

    /// Combines the values at two positions in active threads; other threads get the identity.
    fn combined_where(&self, b: &mut KernelBuilder, active: &Expr, pair: Pair<'_>) -> Vec<Expr> {
        let Pair { arrays: x, at, other } = pair;
        if let [identity] = self.identity.as_slice() {
            let sum = self.fold.combine(b, &load(x, at), &load(x, other));
            let held = sum
                .into_iter()
                .map(|sum| b.let_("value", active.clone().select(sum, identity.clone())).into());
            return held.collect();
        }
        let named = self.identity.iter().zip(self.fold.parts());
        let named = named.map(|(identity, part)| {
            Cell::Var(b.mut_(&format!("{}_here", part.name), identity.clone()))
        });
        let held: Vec<Cell> = named.collect();
        b.if_(active.clone(), |b| {
            let sum = self.fold.combine(b, &load(x, at), &load(x, other));
            held.iter().zip(sum).for_each(|(held, sum)| held.set(b, sum));
        });
        values(&held)
    }

    /// Folds by a tree over the rows of the block's threads, and the first row receives the folded
    /// columns. `kept` returns the accumulator of a column of the thread, and `done` receives the
    /// folded accumulators.
    pub(in crate::lower::reduce) fn by_columns(
        &mut self,
        b: &mut KernelBuilder,
        columns: &Columns,
        kept: &dyn Fn(Option<Expr>) -> Vec<Cell>,
        done: DoneOf<'_>,
    ) {
        if self.plan.group() == 1 {
            return done(b, &|w| values(&kept(w)));
        }
        let dims: Vec<Expr> = [columns.rows.into()]
            .into_iter()
            .chain(columns.width.map(Expr::from))
            .chain([columns.across.into()])
            .collect();
        let x = self.shared(b, &dims, "thread and column");
        let (tx, ty) = (&columns.tx, &columns.ty);
        let at = |row: Expr, w: Option<Expr>| -> Vec<Expr> {
            [row].into_iter().chain(w).chain([tx.clone()]).collect()
        };
        columns.each(b, |b, w| {
            let kept = values(&kept(w.clone()));
            store(b, &x, &at(ty.clone(), w), kept);
        });
        b.barrier();
        let [folds_in, _] = self.fold.verbs();
        b.comment(format!(
            "Tree, per column: in each step, a thread i < s {folds_in} the value of thread i + s."
        ));
        b.loop_("s", For::above(columns.rows / 2, 0).change(halve()), |b, s| {
            b.if_(ty.clone().lt(s), |b| {
                columns.each(b, |b, w| {
                    let (here, above) = (at(ty.clone(), w.clone()), at(ty.clone() + s, w));
                    let sum = self.fold.combine(b, &load(&x, &here), &load(&x, &above));
                    store(b, &x, &here, sum);
                });
            });
            b.barrier();
        });
        b.if_(ty.clone().equals(0), |b| done(b, &|w| load(&x, &at(0.into(), w))));
    }
}
