//! The schedule: which tile of C a block computes. No other code reads `blockIdx`.

use super::Problem;
use crate::ir::{Const, Expr, KernelBuilder, Special, Var};
use crate::plan::SgemmPlan;

/// The first row and the first column of C of this block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub row: Var,
    pub col: Var,
}

/// The grid: one block for each tile of C, in one dimension.
pub(super) fn grid(plan: &SgemmPlan, problem: &Problem) -> [Expr; 3] {
    let (bm, bn) = plan.block_tile();
    let tiles = |extent, tile: u32| Expr::from(extent).wide().div_ceil(u64::from(tile));
    [tiles(problem.m, bm) * tiles(problem.n, bn), 1u64.into(), 1u64.into()]
}

/// The most columns of C: the tiles of a group of tile rows are counted in an `int`, also where the
/// group is larger than C.
pub(super) fn most_columns(plan: &SgemmPlan) -> u64 {
    let (_, bn) = plan.block_tile();
    let tiles = i32::MAX as u32 / plan.raster().unwrap_or(1);
    u64::from(tiles) * u64::from(bn)
}

/// Finds this block's tile.
pub(super) fn origin(
    k: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &Problem,
    (bm, bn): (Expr, Expr),
) -> Origin {
    match plan.raster() {
        None => {
            k.comment("Block b computes tile (b / tiles_n, b % tiles_n) of C.");
            let tiles_n = k.let_("tiles_n", (problem.n - 1) / bn.clone() + 1);
            let block = k.let_("block", Special::BlockX);
            let row = k.let_("block_row", block / tiles_n * bm);
            let col = k.let_("block_col", block % tiles_n * bn);
            Origin { row, col }
        }
        Some(rows) => {
            let raster = k.constant("RASTER", rows as i32, "tile rows visited together");
            grouped(k, problem, raster, (bm, bn))
        }
    }
}

/// Tiles in groups of `raster` tile rows, column by column inside a group, so that the blocks that
/// run at one time share rows of A and columns of B in the L2 cache.
fn grouped(
    k: &mut KernelBuilder,
    problem: &Problem,
    raster: Const,
    (bm, bn): (Expr, Expr),
) -> Origin {
    k.comment(
        "Blocks visit C in groups of RASTER tile rows, column by column inside a group: those",
    );
    k.comment("that run at the same time share rows of A and columns of B in the L2 cache.");
    let tiles_m = k.let_("tiles_m", (problem.m - 1) / bm.clone() + 1);
    let tiles_n = k.let_("tiles_n", (problem.n - 1) / bn.clone() + 1);
    let block = k.let_("block", Special::BlockX);
    let first = k.let_("group_row", block / (raster * tiles_n) * raster);
    let left = tiles_m - first;
    let rows = k.let_("group_rows", left.min(raster));
    let inside = k.let_("in_group", block % (raster * tiles_n));
    let row = k.let_("block_row", (first + inside % rows) * bm);
    let col = k.let_("block_col", inside / rows * bn);
    Origin { row, col }
}
