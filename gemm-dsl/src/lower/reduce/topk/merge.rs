//! Merges of sorted and unsorted elements into the best elements of a warp.

use super::{Candidates, WarpBest};
use crate::ir::{BufferId, Expr, For, Intrinsic, KernelBuilder, Unroll, Var};
use crate::lower::reduce::role::Role;
use crate::lower::reduce::team::{load, store};
use crate::lower::reduce::{WARP, double, halve};

impl WarpBest<'_> {
    /// Index of an element of the warp's buffer.
    pub(super) fn at(&self, index: Expr) -> Vec<Expr> {
        self.warp.iter().cloned().chain([index]).collect()
    }

    /// Rank of the element in a slot of the lane.
    pub(super) fn rank(&self, s: Var) -> Expr {
        match self.slots {
            1 => self.lane.clone(),
            _ => s * WARP + self.lane.clone(),
        }
    }

    fn slot(&self, s: impl Into<Expr>) -> Vec<Expr> {
        load(&self.best, &[s.into()])
    }

    fn wins(&self, element: &[Expr], best: &[Expr]) -> Expr {
        self.fold.wins(element, best)
    }

    /// Reads each part from another lane.
    fn exchanged(&self, b: &mut KernelBuilder, parts: &[Expr], stride: Var) -> Vec<Expr> {
        let parts = parts.iter().zip(self.fold.parts()).map(|(value, part)| {
            let other = Expr::Call(Intrinsic::ShuffleXor, vec![value.clone(), stride.into()]);
            b.let_(&format!("other_{}", part.name), other).into()
        });
        parts.collect()
    }

    /// Merges other sorted elements into the best. `read` reads the other element of a rank.
    /// `is_repeated` is true if the kernel has several such merges.
    pub(super) fn merge_sorted(
        &self,
        b: &mut KernelBuilder,
        is_repeated: bool,
        mut read: impl FnMut(&mut KernelBuilder, Expr) -> Vec<Expr>,
    ) {
        b.unrolled("s", self.all_slots, |b, s| {
            let rank = b.let_("rank", Expr::I32(WARP * self.slots - 1) - self.rank(s));
            let other = read(b, rank.into());
            let wins = self.wins(&other, &self.slot(s));
            b.if_(wins, |b| store(b, &self.best, &[s.into()], other));
        });
        if !is_repeated {
            return self.sort_bitonic(b);
        }
        let meaning = "Sorts the elements of the warp, best first, if they are bitonic.";
        b.section("sort_best", meaning, [], |b, []| self.sort_bitonic(b));
    }

    /// Sorts the elements of the warp, which are bitonic: the last stage of a bitonic network.
    fn sort_bitonic(&self, b: &mut KernelBuilder) {
        if self.slots == 2 {
            let [first, second] = [0, 1].map(|s: i32| self.slot(s));
            b.if_(self.wins(&second, &first), |b| {
                let parts = self.fold.parts().iter();
                let first = parts.zip(first).map(|(part, first)| {
                    let name = if part.plural == "indices" { "first_at" } else { "first" };
                    b.let_(name, first).into()
                });
                let first: Vec<Expr> = first.collect();
                store(b, &self.best, &[0.into()], second);
                store(b, &self.best, &[1.into()], first);
            });
        }
        let strides = For::above(WARP / 2, 0).change(halve()).unroll(Unroll::Full);
        b.loop_("stride", strides, |b, stride| {
            b.unrolled("s", self.all_slots, |b, s| {
                let own = self.slot(s);
                let other = self.exchanged(b, &own, stride);
                let is_lower = (self.lane.clone() & stride).equals(0);
                self.keep(b, &self.best, &[s.into()], (other, own), is_lower);
            });
        });
    }

    /// Stores the better of two elements if the condition is true, else the worse. `own` is the one
    /// that is stored already.
    fn keep(
        &self,
        b: &mut KernelBuilder,
        arrays: &[BufferId],
        at: &[Expr],
        (other, own): (Vec<Expr>, Vec<Expr>),
        keeps_better: Expr,
    ) {
        let wins = b.let_("other_wins", self.wins(&other, &own));
        let takes = keeps_better.select(wins, Expr::from(wins).negated());
        b.if_(takes, |b| store(b, arrays, at, other));
    }

    /// Merges the best elements of the block's warps; the first warp receives the result.
    pub(super) fn merge_warps(&self, b: &mut KernelBuilder, role: Role) {
        let (Some(warp), Some(warps)) = (&self.warp, &self.all_warps) else {
            unreachable!("Selection::build: the block has several warps")
        };
        if role.reads() {
            b.comment("The buffers of candidates are free: pass the best through them.");
        }
        b.comment(
            "Tree: in each step, a warp w < half merges the best of warp w + half, read backwards. \
             The better of each pair are the best of both, and bitonic.",
        );
        let from = For::above(warps.clone() / 2, 0).change(halve());
        b.loop_("half", from, |b, half| {
            let passes = warp.clone().ge(half).and(warp.clone().lt(Expr::I32(2) * half));
            b.if_(passes, |b| {
                b.unrolled("s", self.all_slots, |b, s| {
                    store(b, &self.buffer, &self.at(self.rank(s)), self.slot(s));
                });
            });
            b.barrier();
            b.if_(warp.clone().lt(half), |b| {
                self.merge_sorted(b, !role.reads(), |b, rank| {
                    let others = load(&self.buffer, &[warp.clone() + half, rank]);
                    let others = others.into_iter().zip(self.fold.parts());
                    let others = others
                        .map(|(other, part)| b.let_(&format!("other_{}", part.name), other).into());
                    others.collect()
                });
            });
        });
    }
}

impl Candidates<'_> {
    /// Merges up to 32 candidates, the `count` ones from the index `from`.
    pub(super) fn merge(&self, b: &mut KernelBuilder, from: Expr, count: Expr) {
        let meaning = "Merges `filled` candidates, at most 32, into the best elements of the warp. \
                       All lanes must call it.";
        let params = [("from", from), ("filled", count)];
        b.section("merge", meaning, params, |b, [from, filled]| self.merge_all(b, from, filled));
    }

    fn merge_all(&self, b: &mut KernelBuilder, from: Var, filled: Var) {
        let of = self.of;
        b.warp_barrier();
        let own = load(&of.buffer, &of.at(from + of.lane.clone()));
        let own = own.into_iter().zip(&of.identity).zip(of.fold.parts());
        let own = own.map(|((value, identity), part)| {
            let name = if part.plural == "indices" { "own_at" } else { "own" };
            let has = of.lane.clone().lt(filled);
            b.mut_(name, has.select(value, identity.clone()))
        });
        let own: Vec<Var> = own.collect();
        let values = || -> Vec<Expr> { own.iter().map(|var| (*var).into()).collect() };
        b.comment("The buffer may be overwritten. Sort the candidates, worst first.");
        b.warp_barrier();
        let sizes = For::new(2, |size| Expr::from(size).le(WARP)).change(double());
        b.loop_("size", sizes.unroll(Unroll::Full), |b, size| {
            let strides = For::above(size / 2, 0).change(halve()).unroll(Unroll::Full);
            b.loop_("stride", strides, |b, stride| {
                let other = of.exchanged(b, &values(), stride);
                let wins = b.let_("other_wins", of.wins(&other, &values()));
                let is_upper = b.let_("is_upper", (of.lane.clone() & stride).differs(0));
                let ascends = (of.lane.clone() & size).equals(0);
                let is_upper = Expr::from(is_upper);
                let keeps = ascends.select(is_upper.clone(), is_upper.negated());
                let keeps = b.let_("keeps_better", keeps);
                let wins = Expr::from(wins);
                b.if_(Expr::from(keeps).select(wins.clone(), wins.negated()), |b| {
                    own.iter().zip(other).for_each(|(own, other)| b.assign(*own, other));
                });
            });
        });
        b.comment(
            "Keep the better of each candidate and the element of the last slot: all kept elements \
             are then bitonic.",
        );
        let last: [Expr; 1] = [(of.slots - 1).into()];
        let wins = of.wins(&values(), &load(&of.best, &last));
        b.if_(wins, |b| store(b, &of.best, &last, values()));
        of.sort_bitonic(b);
        let kth = of.last;
        let kept = of.slot(kth / WARP);
        for (worst, kept) in self.worst.iter().zip(kept) {
            let from = vec![kept, (kth % WARP).into()];
            b.assign(*worst, Expr::Call(Intrinsic::ShuffleFrom, from));
        }
    }
}
