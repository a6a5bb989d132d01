//! Matrix instructions on a tile that has come, and the sums of a thread.

use super::{Place, Tensor};
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Wgmma};
use crate::plan::TensorPlan;

impl Tensor<'_> {
    /// Multiplies the tile of a stage into the sums, or into fresh ones that are then added. `is_read` is what is done
    /// when the tile has been read.
    pub(super) fn multiply(
        &self,
        k: &mut KernelBuilder,
        sums: Sums,
        stage: &Expr,
        place: &Place,
        is_read: impl FnOnce(&mut KernelBuilder),
    ) {
        let (t, bk) = (self.t, self.bk);
        let terms = t.format().terms() as i32;
        let terms = k.constant("WGMMA_K", terms, "terms of a matrix instruction");
        match t.promote().filter(|promote| *promote < t.bk()) {
            None => {
                self.products(k, sums, (stage, place), (None, bk / terms, terms));
                is_read(k);
                sums.add(k, t);
            }
            Some(promote) => {
                let meaning = "terms that are summed from zero on";
                let promote = k.constant("PROMOTE", promote as i32, meaning);
                k.unrolled("part", bk / promote, |k, part| {
                    let first = part * promote;
                    self.products(k, sums, (stage, place), (Some(first), promote / terms, terms));
                    sums.add(k, t);
                });
                is_read(k);
            }
        }
    }

    /// Sums the products of so many steps of a tile, from a term on, and waits for the sums.
    fn products(
        &self,
        k: &mut KernelBuilder,
        sums: Sums,
        (stage, place): (&Expr, &Place),
        (first, steps, terms): (Option<Expr>, Expr, Const),
    ) {
        let (t, into) = (self.t, sums.fresh.unwrap_or(sums.all));
        k.wgmma_fence([into]);
        for (nth, [of_a, of_b]) in t.arith().products().iter().enumerate() {
            k.unrolled("step", steps.clone(), |k, step| {
                let at = step * terms;
                let at = first.iter().cloned().fold(at, |at, first| first + at);
                let tile = |of: usize, plane: u32, line: &Expr| {
                    self.in_tile(of, stage, [Expr::I32(plane as i32), line.clone(), at.clone()])
                };
                let [row, col] = &place.group;
                let begins = nth == 0 && sums.fresh.is_some();
                k.wgmma(Wgmma {
                    format: t.format(),
                    columns: t.columns(),
                    d: Access::new(into, [0.into()]),
                    a: tile(0, *of_a, row),
                    b: tile(1, *of_b, col),
                    accumulate: if begins { Expr::from(step).gt(0) } else { Expr::truth() },
                });
            });
        }
        k.wgmma_commit();
        k.wgmma_wait(0, [into]);
    }
}

/// The sums of a thread: all, and those of the last terms, where these are summed from zero on.
#[derive(Clone, Copy)]
pub(super) struct Sums {
    pub all: BufferId,
    fresh: Option<BufferId>,
}

impl Sums {
    pub fn declare(k: &mut KernelBuilder, t: &TensorPlan) -> Self {
        let count = [Expr::I32(t.columns() as i32 / 2)];
        k.comment("The sums of this thread, as instructions have them.");
        let all = k.zeroed_registers("acc", Elem::F32, count.clone(), "");
        let meaning = "sums of terms that are not added yet";
        let fresh = t.promote().map(|_| k.zeroed_registers("fresh", Elem::F32, count, meaning));
        Self { all, fresh }
    }

    /// Adds those that are fresh to the others, if there are some.
    fn add(self, k: &mut KernelBuilder, t: &TensorPlan) {
        let Some(fresh) = self.fresh else { return };
        k.unrolled("i", t.columns() as i32 / 2, |k, i| {
            let of = |sums| Access::new(sums, [i.into()]);
            k.store(of(self.all), of(self.all).load() + of(fresh).load());
        });
    }
}
