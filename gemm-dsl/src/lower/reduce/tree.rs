//! The tree in shared memory.

use super::operator::combine;
use super::{Reducer, WARP, double, halve};
use crate::ir::{Access, BufferId, Elem, Expr, For, KernelBuilder, Layout, Special, Unroll, Var};
use crate::spec::Tree;

impl Reducer<'_> {
    /// The shared-memory tree, down to `left` values; with one left, it is stored.
    pub(super) fn fold_by_tree(&mut self, value: Expr, left: i32) -> BufferId {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let to_the_end = left == 1;
        let all_done = self.plan.block() as i32 <= left;
        let k = &mut self.k;
        let x =
            k.shared("x", Elem::F32, [block.into()], Layout::row_major(1), "one value per thread");
        let at = |i: Expr| Access::new(x, [i]);
        k.store(at(tid.clone()), value);
        k.barrier();

        let add = |k: &mut KernelBuilder, left: Expr, s: Var| {
            let sum = combine(op, at(left.clone()).load(), at(left.clone() + s).load());
            k.store(at(left), sum);
        };
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
        if to_the_end {
            let out = Access::new(self.output, [Special::BlockX.into()]);
            k.if_(tid.equals(0), |k| k.store(out, at(0.into()).load()));
        }
        x
    }

    /// The last steps of the tree, whose adders are all in the first warp: unrolled, and ordered by
    /// the warp's barriers, one between everybody's read and the writes and one after the writes.
    pub(super) fn unrolled_warp(&mut self, x: BufferId, identity: Var) {
        let (op, block, tid) = (self.plan.op(), self.block, self.tid.clone());
        let at = |i: Expr| Access::new(x, [i]);
        let out = Access::new(self.output, [Special::BlockX.into()]);
        let interleaved = self.plan.tree() == Tree::Interleaved;
        let k = &mut self.k;
        k.comment("The threads that are left are one warp: its own barriers order each step, one");
        k.comment("between the reads and the writes and one after the writes.");
        k.if_(tid.clone().lt(WARP), |k| {
            if interleaved {
                let from = block / (2 * WARP);
                k.loop_(
                    "s",
                    For::below(from, block).change(double()).unroll(Unroll::Full),
                    |k, s| {
                        let left = k.let_("left", Expr::I32(2) * s * tid.clone());
                        let active = Expr::from(left).lt(block);
                        let sum = combine(op, at(left.into()).load(), at(left + s).load());
                        let value = k.let_("value", active.clone().select(sum, identity));
                        k.warp_barrier();
                        k.if_(active, |k| k.store(at(left.into()), value));
                        k.warp_barrier();
                    },
                );
            } else {
                let value = k.mut_("value", at(tid.clone()).load());
                k.loop_("s", For::above(WARP, 0).change(halve()).unroll(Unroll::Full), |k, s| {
                    k.assign(value, combine(op, value.into(), at(tid.clone() + s).load()));
                    k.warp_barrier();
                    k.store(at(tid.clone()), value);
                    k.warp_barrier();
                });
            }
            k.if_(tid.clone().equals(0), |k| k.store(out, at(0.into()).load()));
        });
    }
}
