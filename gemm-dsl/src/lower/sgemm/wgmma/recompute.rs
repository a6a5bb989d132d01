//! Recomputation in `f32` of sums that leave the range of `f32` in FP32 emulation.
//!
//! A product of remainders may overflow with another sign than the product of the values, which
//! no later product undoes. A sum of part of K may overflow while all of K is in range. Scaled
//! arithmetic multiplies small numbers, so neither can happen.

use super::WgmmaFrame;
use crate::ir::{Expr, For, Intrinsic, KernelBuilder, Unroll};
use crate::lower::sgemm::common::accumulator_tile::AccumulatorTile;
use crate::lower::sgemm::common::accumulators::{Accumulators, is_finite};
use crate::lower::sgemm::common::loops::each;
use crate::lower::sgemm::common::problem::GemmProblem;

/// Emits the recomputation of accumulators that are not finite, as chains of multiply-adds of A and
/// B themselves. `factors` is the problem of the whole batch, with A and B.
pub(super) fn recompute(
    b: &mut KernelBuilder,
    frame: &WgmmaFrame<'_>,
    factors: &GemmProblem,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
) {
    b.comment(
        "Recompute overflowed sums in f32: partial sums can overflow although the result does not. \
         Bits of magnitudes are ordered like the magnitudes, so the greatest tells if all \
         accumulators are finite.",
    );
    let not_finite = acc.not_finite(b, block.elements());
    b.if_(not_finite.any_bit(), |b| {
        let [of_a, of_b] = factors.factors_of(b, &block.problem);
        let rolled = |end: Expr| For::below(0, end).unroll(Unroll::By(1));
        let (rows, cols) = (block.rows.name, block.cols.name);
        b.loop_("i", rolled(rows * cols), |b, i| {
            let sum = b.mut_("sum", 0.0);
            b.comment("The scan uses constant indices, which keep acc in registers.");
            each(b, block.elements(), |b, m, n| {
                let own = (m.clone() * cols + n.clone()).equals(i);
                b.if_(own, |b| b.assign(sum, acc.value(m, n)));
            });
            b.if_(is_finite(sum.into()).negated(), |b| {
                let row = block.origin.row + block.rows.element(i / cols);
                let col = block.origin.col + block.cols.element(i % cols);
                let row = b.let_("row", row.min(block.problem.m - 1));
                let col = b.let_("col", col.min(block.problem.n - 1));
                b.assign(sum, Expr::F32(0.0));
                b.loop_("k", rolled(frame.depth()), |b, k| {
                    let term = Expr::from(b.let_("term", frame.k_of_range(k.into())));
                    let fma = vec![
                        of_a.at(row, term.clone()).load(),
                        of_b.at(term, col).load(),
                        sum.into(),
                    ];
                    b.assign(sum, Expr::Call(Intrinsic::Fma, fma));
                });
                each(b, block.elements(), |b, m, n| {
                    let own = (m.clone() * cols + n.clone()).equals(i);
                    b.if_(own, |b| acc.set(b, m, n, sum.into()));
                });
            });
        });
    });
}
