//! Where blocks of their own sum ranges of K: each leaves its sums, and the last of a tile adds them in the order
//! of the ranges, and stores.
//!
//! Sums lie as threads hold them, those of one place in all threads next to one another: whatever the fragment,
//! neighbours write and read neighbours, and the edge of C is the epilogue's business alone.

use super::fragment::{Accumulators, over};
use super::schedule::{self, Range};
use super::tile::Tiled;
use crate::ir::program::{Program, Slot};
use crate::ir::{Access, BufferId, Elem, Expr, For, KernelBuilder, Operand};
use crate::lower::tickets::{self, Tickets};
use crate::plan::{SgemmPlan, Shape};

/// The arrays of a program by which its blocks share sums.
pub(super) fn slots(
    program: &mut Program,
    plan: &SgemmPlan,
    size: [Expr; 2],
    batch: Option<Expr>,
) -> Vec<(Operand, Slot)> {
    let t = match plan.shape() {
        Shape::Tiled(t) if plan.split_k() > 1 => t,
        Shape::Tiled(_) | Shape::Naive(_) => return Vec::new(),
    };
    let tiles = schedule::tiles(plan, size, batch);
    // The sums by tile, range, place in a thread, and thread.
    let of_thread = u64::from(t.tm()) * u64::from(t.tn());
    let of_tile = [u64::from(plan.split_k()), of_thread, u64::from(t.threads())];
    let dims = [tiles.clone()].into_iter().chain(of_tile.map(Expr::from));
    let partials = program.temp("partials", Elem::F32, dims);
    let tickets = tickets::slot(program, tiles);
    vec![(Operand::Temp(0), partials), (Operand::Temp(1), tickets)]
}

/// The sums of all blocks.
pub(super) struct Split {
    partials: BufferId,
    tickets: BufferId,
    range: Range,
}

impl Split {
    /// Declares the arrays, behind all other parameters.
    pub(super) fn declare(k: &mut KernelBuilder, tiled: &Tiled<'_>) -> Option<Self> {
        let (range, problem) = (tiled.range?, &tiled.problem);
        let wide = |scalar| Expr::from(scalar).wide();
        let size = [problem.m, problem.n].map(wide);
        let tiles = schedule::tiles(tiled.plan, size, problem.batch.map(wide));
        let partials = k.global("partials", Elem::F32, Operand::Temp(0));
        let tickets = tickets::parameter(k, Operand::Temp(1));
        let threads = match tiled.part {
            None => tiled.threads.into(),
            Some(part) => part.products * tiled.threads,
        };
        let (ranges, places) = (Expr::from(range.most), tiled.tm * tiled.tn);
        let of_range = places.clone() * threads.clone();
        let strides =
            [ranges.clone().wide() * of_range.clone(), of_range, threads.clone(), 1.into()];
        k.shape(partials, [tiles.clone(), ranges.wide(), places.wide(), threads.wide()], strides);
        tickets::shape(k, tickets, tiles);
        Some(Self { partials, tickets, range })
    }

    /// Leaves the sums of this block; the last block of a tile goes on with those of all.
    pub(super) fn gather(
        &self,
        k: &mut KernelBuilder,
        tiled: &Tiled<'_>,
        acc: &Accumulators,
        store: impl FnOnce(&mut KernelBuilder, &Accumulators),
    ) {
        let [tile, range] = schedule::tile_and_range();
        let (thread, first_thread) = match tiled.part {
            None => (Expr::from(tiled.tid), Expr::from(tiled.tid).equals(0)),
            Some(part) => {
                let first = Expr::from(tiled.tid).equals(0).and(Expr::from(part.product).equals(0));
                (part.product * tiled.threads + tiled.tid, first)
            }
        };
        let at = |range: Expr, m: &Expr, n: &Expr| {
            let place = m.clone() * tiled.tn + n.clone();
            Access::new(self.partials, [tile.clone(), range, place, thread.clone()])
        };
        let each = |k: &mut KernelBuilder,
                    body: &mut dyn FnMut(&mut KernelBuilder, &Expr, &Expr)| {
            over(k, "m", tiled.tm.into(), tiled.t.tm(), |k, m| {
                over(k, "n", tiled.tn.into(), tiled.t.tn(), |k, n| body(k, &m, &n));
            });
        };
        k.comment("Leave the sums of this range of K, as threads hold them.");
        each(k, &mut |k, m, n| k.store(at(range.clone(), m, n), acc.value(m, n)));
        let word = Access::new(self.tickets, [tile.clone()]);
        let ranges = Expr::from(self.range.ranges);
        let tickets = Tickets::new(k, word, ranges.clone(), first_thread);
        tickets.take_for_all(k);
        tickets.by_last(k, |k| {
            k.comment("Add the sums of all ranges in their order.");
            let all = Accumulators::sums(k, tiled);
            each(k, &mut |k, m, n| all.set(k, (m, n), at(0.into(), m, n).load()));
            let others = For::below(1, ranges);
            k.loop_("other", others, |k, other| {
                each(k, &mut |k, m, n| {
                    let sum = all.value(m, n) + at(other.into(), m, n).load();
                    all.set(k, (m, n), sum);
                });
            });
            store(k, &all);
        });
    }
}
