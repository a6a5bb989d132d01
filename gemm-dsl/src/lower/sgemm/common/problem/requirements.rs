//! Launch requirements of a GEMM.

use super::{DeclaredArray, GemmProblem};
use crate::ir::{KernelBuilder, Requirement, Variant};
use crate::lower::sgemm::common::sharing::{
    MAX_PARTITIONS, TileDistribution, TileSharers, most_columns,
};
use crate::plan::{KernelKind, Pipeline, SgemmPlan};
use crate::spec::{Pairs, Sharing};

impl GemmProblem {
    /// Adds the launch requirements: alignment of 16-byte accesses, divisibility for kernels
    /// without guards, and limits of extents that keep indices inside an `int`.
    pub(super) fn requirements(
        &self,
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        arrays: &[DeclaredArray; 3],
    ) {
        let (bm, bn) = plan.cluster_tile();
        // Divisor of K without guards, which is also the distance by which the loop over K may pass
        // K.
        let bk = plan.k_step();
        let reach = match plan.kind() {
            // The loop of a naive kernel ends at K. Its step is the greater of the unroll factor
            // and the number of partial accumulators.
            KernelKind::Naive(_) => plan.unroll().unwrap_or(1).max(plan.partials()),
            KernelKind::Direct(_) => bk,
            KernelKind::Tiled(t) => match t.pipeline() {
                Pipeline::Async { stages, .. } => bk * (stages + 1),
                _ => bk * 2,
            },
            KernelKind::Wgmma(t) => bk * (t.stages() + 1),
        };
        // Rounding up to whole partitions adds at most `MAX_PARTITIONS` tiles or rounds.
        let reach = match plan.sharing() {
            Sharing::Whole | Sharing::Stream => reach,
            Sharing::Partitions(_) | Sharing::AutoPartitions => reach + MAX_PARTITIONS,
        };
        let passed = |step: u32| u64::from(i32::MAX as u32 - step);
        let columns = passed(bn).min(most_columns(plan));
        for (scalar, max) in [(self.m, passed(bm)), (self.n, columns), (self.k, passed(reach))] {
            b.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.partitions {
            let max = u64::from(MAX_PARTITIONS);
            b.require(Requirement::Range { scalar, min: 1, max });
        }
        if plan.spec().pairs() != Pairs::None {
            b.require(Requirement::Multiple { scalar: self.n, of: 2 });
        }
        let shared = self.distribution.map(TileDistribution::sharers);
        let shared = shared.map(|TileSharers { tiles, sharers }| [tiles, sharers]);
        for scalar in shared.into_iter().flatten() {
            // The index of the last tile of a round of blocks, and that of the next round, must fit
            // in an `int`.
            let max = u64::from(i32::MAX as u32 / 2);
            b.require(Requirement::Range { scalar, min: 0, max });
        }
        if let Some(scalar) = self.batch.map(|batch| batch.count).filter(|_| plan.products() > 1) {
            // In the last block, the GEMM index may exceed the batch.
            b.require(Requirement::Range { scalar, min: 0, max: passed(plan.products()) });
        }
        // The accepted M and N must not depend on the variant that K selects. If alpha is zero, K
        // may be arbitrary, because the guarded variant is launched with K = 0.
        if !plan.guarded() || plan.variant() == Variant::Guarded {
            let products = self.batch.map(|batch| (batch.count, plan.products()));
            for (scalar, of) in
                [(self.m, bm), (self.n, bn), (self.k, bk)].into_iter().chain(products)
            {
                if of > 1 {
                    b.require(Requirement::Multiple { scalar, of: of.into() });
                }
            }
        }
        self.vector_requirements(b, plan, arrays);
    }

    /// Adds the launch requirements of 16-byte accesses.
    fn vector_requirements(
        &self,
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        arrays: &[DeclaredArray; 3],
    ) {
        let [a_width, b_width, c] = match plan.kind() {
            KernelKind::Naive(_) => return,
            KernelKind::Wgmma(t) => [1, 1, t.epilogue().store_width()],
            KernelKind::Direct(d) => [d.a().width(), d.b().width(), d.epilogue().width()],
            KernelKind::Tiled(t) => t.widths(),
        };
        let groups = plan.epilogue_plan().map_or(0, |epilogue| epilogue.groups());
        for (array, width) in arrays.iter().zip([a_width, b_width, c]) {
            if array.buffer.is_none() || width == 1 {
                continue;
            }
            if groups > 0 {
                // A vector must not pass the end of a row.
                b.require(Requirement::Multiple { scalar: self.n, of: (2 * groups).into() });
            } else if array.halves {
                // Single elements of C are stored. A vector of accumulators must not pass the end
                // of a row.
                if !plan.pitched() {
                    b.require(Requirement::Multiple { scalar: self.n, of: width.into() });
                }
                continue;
            }
            b.require(Requirement::Aligned { operand: array.operand, bytes: 16 });
            for scalar in std::iter::once(array.stride).chain(array.apart.iter().copied()) {
                b.require(Requirement::Multiple { scalar, of: width.into() });
            }
        }
    }
}
