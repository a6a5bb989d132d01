//! Folds by shuffles between the registers of a warp.

use super::{Done, Team, load, store, values};
use crate::ir::{Expr, For, Intrinsic, KernelBuilder, Unroll, listed};
use crate::lower::reduce::fold::Cell;
use crate::lower::reduce::{WARP, halve};
use std::slice;

impl Team<'_> {
    /// Folds the accumulators of each group of `group` neighbouring lanes into that of the first
    /// lane.
    pub(in crate::lower::reduce) fn by_group(
        &self,
        b: &mut KernelBuilder,
        kept: &[Cell],
        group: i32,
    ) {
        let from = For::above(group / 2, 0).change(halve()).unroll(Unroll::Full);
        b.loop_("s", from, |b, s| {
            let above = |part: Expr| Expr::Call(Intrinsic::ShuffleDown, vec![part, s.into()]);
            let others = kept.iter().zip(self.fold.parts()).map(|(part, about)| {
                let above = above(part.get());
                // A value that is read only once needs no variable.
                match kept {
                    [_] if self.fold.reads_once() => above,
                    _ => b.let_(&format!("other_{}", about.name), above).into(),
                }
            });
            let others: Vec<Expr> = others.collect();
            self.fold.combine_into(b, kept, &others);
        });
    }

    /// Folds by shuffles inside each warp, passes one value per warp through shared memory, and
    /// folds these by shuffles in the first warp.
    pub(super) fn by_shuffles(&mut self, b: &mut KernelBuilder, kept: Vec<Expr>, done: Done<'_>) {
        let (block, tid) = (self.block, self.tid.clone());
        let named = kept.into_iter().zip(self.fold.parts()).map(|(value, part)| match value {
            Expr::Var(var) => Cell::Var(var),
            loaded => Cell::Var(b.mut_(part.name, loaded)),
        });
        let kept: Vec<Cell> = named.collect();
        let [folds, _] = self.fold.verbs();
        let shuffle = format!(
            "Warp shuffle reduction: each lane {folds} the value of lane + s, or its own if lane + \
             s > 31. Such wrong results never reach lane 0."
        );
        if self.plan.block() == WARP as u32 {
            b.comment(shuffle);
            self.by_group(b, &kept, WARP);
            b.if_(tid.equals(0), |b| done(b, values(&kept)));
            return;
        }
        let warps = b.constant("WARPS", block / WARP, "warps per block");
        let x = self.shared(b, &[warps.into()], "warp");
        let by_warps = |b: &mut KernelBuilder, last: &mut dyn FnMut(&mut KernelBuilder)| {
            b.comment(shuffle);
            self.by_group(b, &kept, WARP);
            b.comment(
                "Lane 0 of each warp passes its result to the first warp, which reduces them all.",
            );
            b.if_((tid.clone() % WARP).equals(0), |b| {
                store(b, &x, &[tid.clone() / WARP], values(&kept));
            });
            b.barrier();
            b.if_(tid.clone().lt(WARP), |b| {
                let held = load(&x, slice::from_ref(&tid));
                for ((part, held), identity) in kept.iter().zip(held).zip(&self.identity) {
                    part.set(b, tid.clone().lt(warps).select(held, identity.clone()));
                }
                self.by_group(b, &kept, WARP);
                last(b);
            });
        };
        if self.folds_twice {
            let parts = self.fold.parts();
            let meaning = format!(
                "Reduces {} in place over the block; thread 0 gets the result. All threads must \
                 call it, and a barrier must separate two calls: both use {}.",
                listed(&parts.iter().map(|part| part.name).collect::<Vec<_>>()),
                listed(&parts.iter().map(|part| part.plural).collect::<Vec<_>>()),
            );
            b.section("reduce_block", &meaning, [], |b, []| by_warps(b, &mut |_| {}));
            b.if_(tid.clone().equals(0), |b| done(b, values(&kept)));
        } else {
            by_warps(b, &mut |b| b.if_(tid.clone().equals(0), |b| done(b, values(&kept))));
        }
    }
}
