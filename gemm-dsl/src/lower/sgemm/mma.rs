//! Multiplication of a tile by tensor cores with `mma.sync`. The lanes of a warp convert elements
//! of A and B to the 32-bit words of fragments. The instruction adds the products to accumulators
//! that are distributed over the lanes.
//!
//! The result does not depend on the assignment of k indices to lanes. The assignment must be the
//! same for A and B, and must not move an index to the other half of an instruction's K. Of each
//! eight consecutive k, lane t of a group of four takes k = t and k = t + 4. At these positions,
//! 4-byte loads and `ldmatrix` are free of bank conflicts.
//!
//! FP32 emulation splits a value into several values of a smaller format, the largest first. Each
//! split is the rounded remainder after the previous splits. Tensor cores truncate when they
//! accumulate. They therefore sum only a short extent of K in a fresh accumulator, which an IEEE
//! addition then adds to the main one.

mod recompute;
mod words;

pub(crate) use recompute::{recompute, seen_by_slices};

use super::shared::accumulators::{MmaAccumulators, UnrepresentableBits};
use super::shared::loops::over;
use super::shared::mma_layout::{MmaCounts, WarpMma};
use super::shared::tile::Tiled;
use crate::ir::{Access, BufferId, Expr, KernelBuilder, Mma};
use words::WordReader;

impl MmaAccumulators {
    /// Declares the accumulators, all zero.
    pub fn declare(b: &mut KernelBuilder, tiled: &Tiled<'_>, of: &WarpMma) -> Self {
        let dims = || [of.counts.rows.into(), of.counts.cols.into(), (Mma::OF_D as i32).into()];
        b.comment("acc[i][j] is this lane's fragment of mma tile (i, j) of the warp tile.");
        let elem = tiled.plan.types().acc;
        let sums = b.zeroed_registers("acc", elem, dims(), "");
        let several = of.counts.plan.promote().is_some_and(|steps| steps > 1);
        let meaning = "accumulators since the last promotion";
        let fresh = several.then(|| b.zeroed_registers("fresh", elem, dims(), meaning));
        let unrepresentable =
            of.counts.plan.arith().is_emulation().then(|| UnrepresentableBits::declare(b, tiled));
        Self { sums, fresh, unrepresentable }
    }

    /// Adds the fresh accumulators to the main ones, and clears them.
    fn promote(&self, b: &mut KernelBuilder, counts: &MmaCounts, fresh: BufferId) {
        over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
            over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| {
                b.unrolled("e", Mma::OF_D as i32, |b, e| {
                    let of = |sums| Access::new(sums, [i.clone(), j.clone(), e.into()]);
                    b.store(of(self.sums), of(self.sums).load() + of(fresh).load());
                    b.store(of(fresh), 0.0);
                });
            });
        });
    }
}

/// Warp tile and accumulators of a warp's `mma` instructions.
#[derive(Clone, Copy)]
pub(crate) struct MmaContext<'a> {
    pub warp: &'a WarpMma,
    pub accumulators: &'a MmaAccumulators,
}

/// Multiplies step `i` of the tile in buffer `slot`.
pub(crate) fn step(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    context: MmaContext<'_>,
    slot: &Expr,
    i: &Expr,
) {
    let MmaContext { warp: of, accumulators: mma } = context;
    let at = tiled.step(i.clone());
    let (a_words, b_words) =
        (WordReader::of_a(b, tiled, of, &at), WordReader::of_b(b, tiled, of, &at));
    let b_words = b_words.all(b, context, slot);
    let counts = &of.counts;
    over(b, "i", counts.rows.into(), counts.plan.rows(), |b, i| {
        let row = MmaRow { a: a_words.one(b, context, slot, &i), b: b_words, counts };
        let of_row = |sums| move |j: &Expr, e: Expr| Access::new(sums, [i.clone(), j.clone(), e]);
        match (mma.fresh, counts.plan.promote()) {
            (Some(fresh), _) => row.multiply(b, of_row(fresh)),
            (None, None) => row.multiply(b, of_row(mma.sums)),
            (None, Some(_)) => {
                b.comment(
                    "Fresh accumulators, small products first, which are then added to the main \
                     ones.",
                );
                let dims = [counts.cols.into(), (Mma::OF_D as i32).into()];
                let fresh = b.zeroed_registers("fresh", tiled.plan.types().acc, dims, "");
                let own = move |j: &Expr, e| Access::new(fresh, [j.clone(), e]);
                row.multiply(b, own);
                row.add(b, of_row(mma.sums), own);
            }
        }
    });
    if let (Some(fresh), Some(steps)) = (mma.fresh, counts.plan.promote()) {
        let meaning = "K steps between promotions of fresh accumulators";
        let together = b.constant("PROMOTE", steps as i32, meaning);
        let last = ((i.clone() + 1) % together).equals(0);
        b.if_(last, |b| mma.promote(b, counts, fresh));
    }
}

/// Row of `mma` instructions: one fragment of A, and the fragments of all columns of B.
struct MmaRow<'c> {
    a: BufferId,
    b: BufferId,
    counts: &'c MmaCounts,
}

impl MmaRow<'_> {
    /// Accumulates the products of all splits. Consecutive instructions use different columns,
    /// because instructions on the same accumulator depend on each other.
    fn multiply(&self, b: &mut KernelBuilder, sums: impl Fn(&Expr, Expr) -> Access) {
        let format = self.counts.plan.format();
        for [of_a, of_b] in self.counts.plan.arith().products() {
            let split = |split: u32| self.counts.splits.map(|_| Expr::I32(split as i32));
            let a_words = Access::new(self.a, split(*of_a).into_iter().chain([0.into()]));
            self.each(b, |b, j| {
                let index = split(*of_b).into_iter().chain([j.clone(), 0.into()]);
                let b_words = Access::new(self.b, index);
                b.mma(Mma { format, d: sums(j, 0.into()), a: a_words.clone(), b: b_words });
            });
        }
    }

    /// Adds fresh accumulators to the main ones.
    fn add(
        &self,
        b: &mut KernelBuilder,
        to: impl Fn(&Expr, Expr) -> Access,
        sums: impl Fn(&Expr, Expr) -> Access,
    ) {
        self.each(b, |b, j| {
            b.unrolled("e", Mma::OF_D as i32, |b, e| {
                let to = to(j, e.into());
                b.store(to.clone(), to.load() + sums(j, e.into()).load());
            });
        });
    }

    fn each(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder, &Expr)) {
        let counts = self.counts;
        over(b, "j", counts.cols.into(), counts.plan.cols(), |b, j| body(b, &j));
    }
}
