//! The schedule: which tile of C a block computes, and of a batch which product's. No other code reads
//! `blockIdx`.

use super::Problem;
use crate::ir::{Const, Expr, KernelBuilder, Special, Var};
use crate::plan::SgemmPlan;

/// The first row and the first column of C of this block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub row: Var,
    pub col: Var,
    /// Which product of a batch it is.
    pub batch: Option<Var>,
}

/// The grid: one block for each tile of C, of a batch for each of each, in one dimension.
pub(super) fn grid(plan: &SgemmPlan, problem: &Problem) -> [Expr; 3] {
    let (bm, bn) = plan.block_tile();
    let tiles = |extent, tile: u32| Expr::from(extent).wide().div_ceil(u64::from(tile));
    let tiles = tiles(problem.m, bm) * tiles(problem.n, bn);
    let blocks = match problem.batch {
        Some(batch) => tiles * Expr::from(batch).wide(),
        None => tiles,
    };
    [blocks, 1u64.into(), 1u64.into()]
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
            k.comment(match problem.batch {
                None => "Block b computes tile (b / tiles_n, b % tiles_n) of C.",
                Some(_) => {
                    "Block b computes tile (b / tiles_n, b % tiles_n) of the C of its product."
                }
            });
            let tiles_n = k.let_("tiles_n", (problem.n - 1) / bn.clone() + 1);
            let tiles_m =
                |k: &mut KernelBuilder| k.let_("tiles_m", (problem.m - 1) / bm.clone() + 1).into();
            let (batch, block) = product(k, problem, tiles_n, tiles_m);
            let row = k.let_("block_row", block / tiles_n * bm.clone());
            let col = k.let_("block_col", block % tiles_n * bn);
            Origin { row, col, batch }
        }
        Some(rows) => {
            let raster = k.constant("RASTER", rows as i32, "tile rows visited together");
            grouped(k, problem, raster, (bm, bn))
        }
    }
}

/// The product of this block, of a batch, and the block's number among those of the product.
fn product(
    k: &mut KernelBuilder,
    problem: &Problem,
    tiles_n: Var,
    tiles_m: impl FnOnce(&mut KernelBuilder) -> Expr,
) -> (Option<Var>, Var) {
    if problem.batch.is_none() {
        return (None, k.let_("block", Special::BlockX));
    }
    let tiles_m = tiles_m(k);
    let tiles = k.let_("tiles", tiles_m * tiles_n);
    let batch = k.let_("batch", Expr::from(Special::BlockX) / tiles);
    (Some(batch), k.let_("block", Expr::from(Special::BlockX) % tiles))
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
    let (batch, block) = product(k, problem, tiles_n, |_| tiles_m.into());
    let first = k.let_("group_row", block / (raster * tiles_n) * raster);
    let left = tiles_m - first;
    let rows = k.let_("group_rows", left.min(raster));
    let inside = k.let_("in_group", block % (raster * tiles_n));
    let row = k.let_("block_row", (first + inside % rows) * bm);
    let col = k.let_("block_col", inside / rows * bn);
    Origin { row, col, batch }
}
