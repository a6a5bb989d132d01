//! Shuffles between the registers of a warp.

use super::operator::{accumulator, combine};
use super::{Reducer, WARP, halve};
use crate::ir::{Access, Elem, Expr, For, Intrinsic, KernelBuilder, Layout, Special, Unroll, Var};

impl Reducer<'_> {
    /// Shuffles inside each warp, one shared word per warp, shuffles inside the first warp.
    pub(super) fn fold_by_shuffles(&mut self, value: Expr, identity: Var) {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let out = Access::new(self.output, [Special::BlockX.into()]);
        let one_warp = self.plan.block() == WARP as u32;
        let k = &mut self.k;
        let value = match value {
            Expr::Var(var) => var,
            loaded => k.mut_(accumulator(op), loaded),
        };
        let shuffles = |k: &mut KernelBuilder, value: Var| {
            k.loop_("s", For::above(WARP / 2, 0).change(halve()).unroll(Unroll::Full), |k, s| {
                let above = Expr::Call(Intrinsic::ShuffleDown, vec![value.into(), s.into()]);
                k.assign(value, combine(op, value.into(), above));
            });
        };
        k.comment("Each warp folds its registers: a lane takes the value of the lane s above.");
        shuffles(k, value);
        if one_warp {
            k.if_(tid.equals(0), |k| k.store(out, value));
            return;
        }
        let warps = k.constant("WARPS", block / WARP, "warps of a block");
        let x =
            k.shared("x", Elem::F32, [warps.into()], Layout::row_major(1), "one value per warp");
        k.comment("Lane 0 of each warp hands its value to the first warp, which folds them.");
        let handed = Access::new(x, [tid.clone() / WARP]);
        k.if_((tid.clone() % WARP).equals(0), |k| k.store(handed, value));
        k.barrier();
        k.if_(tid.clone().lt(WARP), |k| {
            let held = Access::new(x, [tid.clone()]).load();
            k.assign(value, tid.clone().lt(warps).select(held, identity));
            shuffles(k, value);
            k.if_(tid.equals(0), |k| k.store(out, value));
        });
    }
}
