//! Matrix instructions that multiply a loaded tile, and the accumulators of a thread.

use super::{ThreadPlace, WgmmaFrame};
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Wgmma};
use crate::spec::Factor;

impl WgmmaFrame<'_> {
    /// Multiplies the tile of a stage, and adds the products to the accumulators, directly or
    /// through fresh accumulators. `is_read` is emitted after the last read of the tile.
    pub(super) fn multiply(
        &self,
        b: &mut KernelBuilder,
        sums: WgmmaAccumulators,
        stage: &Expr,
        place: &ThreadPlace,
        is_read: impl FnOnce(&mut KernelBuilder),
    ) {
        let (t, bk) = (self.t, self.bk);
        let terms = t.format().terms() as i32;
        let terms = b.constant("WGMMA_K", terms, "K of a wgmma instruction");
        match t.promote().filter(|promote| *promote < t.bk()) {
            None => {
                let steps = TileSteps { first: None, count: bk / terms, terms };
                self.multiply_steps(b, sums, stage, place, steps);
                is_read(b);
                sums.add(b, self.accumulators);
            }
            Some(promote) => {
                let meaning = "elements of K between promotions";
                let promote = b.constant("PROMOTE", promote as i32, meaning);
                b.unrolled("part", bk / promote, |b, part| {
                    let first = part * promote;
                    let steps = TileSteps { first: Some(first), count: promote / terms, terms };
                    self.multiply_steps(b, sums, stage, place, steps);
                    sums.add(b, self.accumulators);
                });
                is_read(b);
            }
        }
    }

    /// Accumulates the products of the given steps, and waits for the results.
    fn multiply_steps(
        &self,
        b: &mut KernelBuilder,
        sums: WgmmaAccumulators,
        stage: &Expr,
        place: &ThreadPlace,
        steps: TileSteps,
    ) {
        let TileSteps { first, count: steps, terms } = steps;
        let (t, into) = (self.t, sums.fresh.unwrap_or(sums.all));
        b.comment(
            "The fence orders earlier accesses to the accumulators before wgmma, which runs \
             asynchronously until the wait.",
        );
        b.wgmma_fence([into]);
        for (nth, [of_a, of_b]) in t.arith().products().iter().enumerate() {
            b.unrolled("step", steps.clone(), |b, step| {
                let at = step * terms;
                let at = first.iter().cloned().fold(at, |at, first| first + at);
                let tile = |of: Factor, split: u32, line: &Expr| {
                    self.in_tile(of, stage, [Expr::I32(split as i32), line.clone(), at.clone()])
                };
                let [row, col] = &place.group;
                let begins = nth == 0 && sums.fresh.is_some();
                b.wgmma(Wgmma {
                    format: t.format(),
                    columns: t.columns(),
                    d: Access::new(into, [0.into()]),
                    a: tile(Factor::A, *of_a, row),
                    b: tile(Factor::B, *of_b, col),
                    accumulate: if begins { Expr::from(step).gt(0) } else { Expr::truth() },
                });
            });
        }
        b.wgmma_commit();
        b.wgmma_wait(0, [into]);
    }
}

/// Steps of a tile: the first k, the number of steps, and the extent of K of each step.
struct TileSteps {
    first: Option<Expr>,
    count: Expr,
    terms: Const,
}

/// Accumulators of a thread: the main ones, and fresh ones if only a short extent of K is summed at
/// once.
#[derive(Clone, Copy)]
pub(super) struct WgmmaAccumulators {
    pub all: BufferId,
    fresh: Option<BufferId>,
}

impl WgmmaAccumulators {
    pub fn declare(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>) -> Self {
        let (t, elem) = (frame.t, frame.plan.types().acc);
        let count = [Expr::from(frame.accumulators)];
        b.comment("Accumulators of this thread, in the register layout of wgmma.");
        let all = b.zeroed_registers("acc", elem, count.clone(), "");
        let meaning = "accumulators since the last promotion";
        let fresh = t.promote().map(|_| b.zeroed_registers("fresh", elem, count, meaning));
        Self { all, fresh }
    }

    /// Adds the fresh accumulators, if there are any, to the main ones.
    fn add(self, b: &mut KernelBuilder, count: Const) {
        let Some(fresh) = self.fresh else { return };
        b.unrolled("i", count, |b, i| {
            let of = |sums| Access::new(sums, [i.into()]);
            b.store(of(self.all), of(self.all).load() + of(fresh).load());
        });
    }
}
