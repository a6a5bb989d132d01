//! Matrix instructions that multiply a loaded tile, and the accumulators of a thread.

use super::{ThreadPlace, WgmmaFrame};
use crate::ir::{Access, BufferId, Const, Expr, KernelBuilder, Wgmma};
use crate::lower::sgemm::common::split_products::{products_comment, promotion_comment};
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
                let meaning = "extent along K between promotions";
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

    /// Starts the multiplication of the tile of a stage, and waits for that of the previous tile.
    pub(super) fn multiply_ahead(
        &self,
        b: &mut KernelBuilder,
        sums: WgmmaAccumulators,
        stage: &Expr,
        place: &ThreadPlace,
    ) {
        let terms = self.t.format().terms() as i32;
        let terms = b.constant("WGMMA_K", terms, "K of a wgmma instruction");
        let steps = TileSteps { first: None, count: self.bk / terms, terms };
        self.start_steps(b, sums, stage, place, steps);
        b.wgmma_wait(1, [sums.all]);
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
        self.start_steps(b, sums, stage, place, steps);
        b.wgmma_wait(0, [sums.fresh.unwrap_or(sums.all)]);
    }

    /// Starts the instructions that accumulate the products of the given steps.
    fn start_steps(
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
        products_comment(b, t.arith());
        let several = t.bk() as usize > t.format().terms();
        // Adds the product of a split of A and a split of B; `nth` is the number of the product.
        let product = |b: &mut KernelBuilder, [nth, of_a, of_b]: [Expr; 3]| {
            if several && Factor::BOTH.into_iter().any(|factor| !t.is_mn_major(factor)) {
                b.comment(
                    "Each step starts 32 bytes further on in the rows, despite the swizzle: the \
                     hardware XORs address bits only after it has added all offsets.",
                );
            }
            b.unrolled("step", steps.clone(), |b, step| {
                let at = step * terms;
                let at = first.iter().cloned().fold(at, |at, first| first + at);
                let tile = |of: Factor, split: &Expr, line: &Expr| {
                    self.in_tile(of, stage, [split.clone(), line.clone(), at.clone()])
                };
                let [row, col] = &place.group;
                let is_first = nth == Expr::I32(0);
                let mut tiles = [tile(Factor::A, &of_a, row), tile(Factor::B, &of_b, col)];
                let mut formats = t.splits().formats();
                let mut mn_major = Factor::BOTH.map(|factor| t.is_mn_major(factor));
                if t.swap_ab() {
                    tiles.reverse();
                    mn_major.reverse();
                    formats.reverse();
                }
                let [of_rows, of_columns] = tiles;
                b.wgmma(Wgmma {
                    formats,
                    columns: t.columns(),
                    d: Access::new(into, [0.into()]),
                    a: of_rows,
                    b: of_columns,
                    mn_major,
                    accumulate: match sums.fresh {
                        None => Expr::truth(),
                        Some(_) if is_first => Expr::from(step).gt(0),
                        Some(_) => (nth.clone() + step).gt(0),
                    },
                });
            });
        };
        match t.arith().products() {
            [[of_a, of_b]] => product(b, [0, *of_a, *of_b].map(|n| Expr::I32(n as i32))),
            products => {
                for (nth, [of_a, of_b]) in products.iter().enumerate() {
                    let meaning = "Adds split `of_a` of A times split `of_b` of B. The first \
                                   product replaces the accumulators of the previous tile.";
                    let int = |n: u32| Expr::I32(n as i32);
                    let params =
                        [("nth", int(nth as u32)), ("of_a", int(*of_a)), ("of_b", int(*of_b))];
                    b.section("multiply", meaning, params, |b, params| {
                        product(b, params.map(Expr::from));
                    });
                }
            }
        }
        b.wgmma_commit();
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
        if let Some(promote) = t.promote() {
            let part = if promote < t.bk() { "each range of PROMOTE k" } else { "each K tile" };
            promotion_comment(b, part);
        }
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
