//! Parts of the rows of C that the threads of a GEMM fold: their number, and their array.

use super::workspace::FOLDS;
use crate::ir::program::{Program, Slot};
use crate::ir::{Access, BufferId, Expr, Extent, KernelBuilder, Operand, Scalar, Ty};
use crate::plan::{KernelKind, SgemmPlan};

/// Number of parts of each row that a kernel stores, given the number of columns.
pub(crate) fn parts(plan: &SgemmPlan, columns: Expr) -> Expr {
    let (_, of_tile) = plan.block_tile();
    columns.div_ceil(u64::from(of_tile)) * u64::from(of_tile / columns_of_part(plan))
}

/// Columns of C that one part covers.
pub(super) fn columns_of_part(plan: &SgemmPlan) -> u32 {
    match plan.kind() {
        KernelKind::Naive(naive) => naive.coarsen(),
        KernelKind::Direct(d) => d.tn(),
        KernelKind::Tiled(t) => t.tn() / parts_of_thread(plan),
        KernelKind::Wgmma(t) => t.tn() / parts_of_thread(plan),
    }
}

/// Number of parts of which a thread has columns: two if pairs of lanes have exchanged columns.
pub(super) fn parts_of_thread(plan: &SgemmPlan) -> u32 {
    let exchanges = match plan.kind() {
        KernelKind::Naive(_) | KernelKind::Direct(_) => false,
        KernelKind::Tiled(t) => t.mma().is_some_and(|mma| mma.exchanges()),
        KernelKind::Wgmma(t) => t.has_vectors(),
    };
    if exchanges { 2 } else { 1 }
}

/// Adds the array of parts to a program: for each fold, each row of the batch and each part.
pub(crate) fn slot(program: &mut Program, plan: &SgemmPlan, rows: Expr, parts: Expr) -> Slot {
    let folds = plan.row_folds().len() as u64;
    program.temp("folds", plan.types().value(), [folds.into(), rows, parts])
}

/// Array of parts in a kernel: for each fold, each row of the batch and each part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldParts {
    buffer: BufferId,
    /// Number of parts of a row.
    pub parts: Scalar,
}

impl FoldParts {
    /// Declares the parameters. `rows` is the number of rows of the batch.
    pub(crate) fn declare(b: &mut KernelBuilder, plan: &SgemmPlan, rows: Expr) -> Self {
        let folds = Expr::I32(plan.row_folds().len() as i32);
        let buffer = b.global("folds", plan.types().value(), FOLDS);
        let parts = b.extent("FOLD_PARTS", Ty::I32, Extent::FOLD_PARTS);
        let of_row = Expr::from(parts).wide();
        let of_fold = rows.clone().wide() * of_row.clone();
        b.shape(buffer, [folds, rows, parts.into()], [of_fold, of_row, 1.into()]);
        Self { buffer, parts }
    }

    pub(crate) fn at(self, fold: usize, row: impl Into<Expr>, part: impl Into<Expr>) -> Access {
        Access::new(self.buffer, [Expr::I32(fold as i32), row.into(), part.into()])
    }

    pub(crate) fn operand() -> Operand {
        FOLDS
    }
}
