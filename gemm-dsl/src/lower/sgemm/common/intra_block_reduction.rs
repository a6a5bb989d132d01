//! Intra-block reduction. Several threads accumulate the same elements over different parts of K,
//! and one of them adds the accumulators of all.
//!
//! The accumulators of a warp's lanes are added by a tree, and those of slices in ascending order.
//! Both orders are fixed, so results are deterministic.

use super::accumulators::Accumulators;
use super::loops::each;
use crate::ir::{
    Access, BufferId, BufferLayout, Change, Const, Expr, For, Intrinsic, KernelBuilder, Unroll, Var,
};
use crate::lower::sgemm::common::accumulator_tile::AccumulatorTile;
use crate::target::arch::WARP;

/// Adds the accumulators of a warp's lanes; lane 0 receives the sums.
pub(crate) fn lanes(b: &mut KernelBuilder, block: &AccumulatorTile<'_>, acc: &Accumulators) {
    b.comment(
        "Shuffle reduction: each lane adds the accumulators of lane + s, or its own if lane + s > \
         31. Such wrong sums never reach lane 0, which ends with the sums of all lanes.",
    );
    let half = For::above(WARP as i32 / 2, 0).change(Change::Div(2.into())).unroll(Unroll::Full);
    b.loop_("s", half, |b, s| {
        each(b, block.elements(), |b, m, n| {
            let sum = acc.value(m, n);
            let above = Expr::Call(Intrinsic::ShuffleDown, vec![sum.clone(), s.into()]);
            acc.set(b, m, n, sum + above);
        });
    });
}

/// Slices of a block (sliced-K): groups of threads that accumulate the same elements over different
/// parts of K.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    /// Index of this thread's slice.
    pub slice: Var,
    pub slices: Const,
}

/// Partial accumulators of all slices except the first, in shared memory.
pub(crate) struct SlicePartials {
    sums: BufferId,
    slices: Slices,
}

impl Slices {
    /// Stores the accumulators of all slices except the first in shared memory. Only threads for
    /// which `has_sums` is true store.
    pub(crate) fn hand_over(
        self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        acc: &Accumulators,
        has_sums: Option<Expr>,
    ) -> SlicePartials {
        let places = block.rows.name * block.cols.name;
        // If a slice is smaller than a warp, the lanes of several slices store at once. The slices
        // of an element are therefore adjacent.
        let dims = [places, self.slices - 1, block.epilogue_threads.clone()];
        let meaning = "accumulators of the other slices";
        let (acc_elem, layout) = (block.plan.types().acc, BufferLayout::row_major(3));
        let sums = b.shared("handed_over", acc_elem, dims, layout, meaning);
        let handed_over = SlicePartials { sums, slices: self };
        b.comment("Slices other than the first store their accumulators to shared memory.");
        let behind = Expr::from(self.slice).gt(0);
        let condition = has_sums.into_iter().fold(behind, Expr::and);
        b.if_(condition, |b| {
            each(b, block.elements(), |b, m, n| {
                b.store(handed_over.at(block, self.slice - 1, m, n), acc.value(m, n));
            });
        });
        b.barrier();
        handed_over
    }
}

impl SlicePartials {
    fn at(&self, block: &AccumulatorTile<'_>, nth: Expr, m: &Expr, n: &Expr) -> Access {
        let place = m.clone() * block.cols.name + n.clone();
        Access::new(self.sums, [place, nth, block.epilogue_thread.clone()])
    }

    /// Adds the stored accumulators to those of the first slice, in the order of the slices.
    pub(crate) fn add(
        &self,
        b: &mut KernelBuilder,
        block: &AccumulatorTile<'_>,
        acc: &Accumulators,
    ) {
        b.comment(
            "The first slice adds the accumulators of the others, in the order of the slices.",
        );
        b.unrolled("other", self.slices.slices - 1, |b, other| {
            each(b, block.elements(), |b, m, n| {
                let sum = acc.value(m, n) + self.at(block, other.into(), m, n).load();
                acc.set(b, m, n, sum);
            });
        });
    }
}
