//! The schedule: which tile of C a block computes, and of a batch which product's, or which products'.
//! No other code reads `blockIdx`.

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
    /// The number of the thread's product where that may be one that the batch has not: its threads
    /// then compute the last one again, and store nothing.
    pub nth: Option<Var>,
}

/// One of the products of a block that computes several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Which one it is.
    pub product: Var,
    /// How many there are.
    pub products: Const,
}

/// The grid: one block for each tile of C, of a batch for each of each product or of as many as a block
/// computes, in one dimension.
pub(super) fn grid(plan: &SgemmPlan, problem: &Problem) -> [Expr; 3] {
    let (bm, bn) = plan.block_tile();
    let tiles = |extent, tile: u32| Expr::from(extent).wide().div_ceil(u64::from(tile));
    let tiles = tiles(problem.m, bm) * tiles(problem.n, bn);
    let blocks = match problem.batch {
        Some(batch) => {
            let blocks = Expr::from(batch).wide();
            let products = plan.products();
            tiles * if products > 1 { blocks.div_ceil(u64::from(products)) } else { blocks }
        }
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
    part: Option<Part>,
) -> Origin {
    let own = Own { plan, problem, part };
    match plan.raster() {
        None => {
            k.comment(match (problem.batch, part) {
                (None, _) => "Block b computes tile (b / tiles_n, b % tiles_n) of C.",
                (Some(_), None) => {
                    "Block b computes tile (b / tiles_n, b % tiles_n) of the C of its product."
                }
                (Some(_), Some(_)) => {
                    "Block b computes tile (b / tiles_n, b % tiles_n) of the C of each of its products."
                }
            });
            let tiles_n = k.let_("tiles_n", (problem.n - 1) / bn.clone() + 1);
            let tiles_m =
                |k: &mut KernelBuilder| k.let_("tiles_m", (problem.m - 1) / bm.clone() + 1).into();
            let (block, [batch, nth]) = own.product(k, tiles_n, tiles_m);
            let row = k.let_("block_row", block / tiles_n * bm.clone());
            let col = k.let_("block_col", block % tiles_n * bn);
            Origin { row, col, batch, nth }
        }
        Some(rows) => {
            let raster = k.constant("RASTER", rows as i32, "tile rows visited together");
            grouped(k, &own, raster, (bm, bn))
        }
    }
}

/// What says which product a block, or a part of one, computes.
struct Own<'a> {
    plan: &'a SgemmPlan,
    problem: &'a Problem,
    part: Option<Part>,
}

impl Own<'_> {
    /// The block's number among those of its product, and of a batch which product that is: the one that
    /// is read, and the one that would be stored.
    fn product(
        &self,
        k: &mut KernelBuilder,
        tiles_n: Var,
        tiles_m: impl FnOnce(&mut KernelBuilder) -> Expr,
    ) -> (Var, [Option<Var>; 2]) {
        let Some(count) = self.problem.batch else {
            return (k.let_("block", Special::BlockX), [None; 2]);
        };
        let tiles_m = tiles_m(k);
        let tiles = k.let_("tiles", tiles_m * tiles_n);
        let first = Expr::from(Special::BlockX) / tiles;
        let products = match self.part {
            None => [Some(k.let_("batch", first)), None],
            Some(Part { product, products }) => {
                let nth = first * products + product;
                if self.plan.guarded() {
                    k.comment(
                        "Threads without a product compute the last one again, and store nothing.",
                    );
                    let nth = k.let_("nth", nth);
                    [Some(k.let_("batch", Expr::from(nth).min(count - 1))), Some(nth)]
                } else {
                    [Some(k.let_("batch", nth)), None]
                }
            }
        };
        (k.let_("block", Expr::from(Special::BlockX) % tiles), products)
    }
}

/// Tiles in groups of `raster` tile rows, column by column inside a group, so that the blocks that
/// run at one time share rows of A and columns of B in the L2 cache.
fn grouped(k: &mut KernelBuilder, own: &Own<'_>, raster: Const, (bm, bn): (Expr, Expr)) -> Origin {
    let problem = own.problem;
    k.comment(
        "Blocks visit C in groups of RASTER tile rows, column by column inside a group: those",
    );
    k.comment("that run at the same time share rows of A and columns of B in the L2 cache.");
    let tiles_m = k.let_("tiles_m", (problem.m - 1) / bm.clone() + 1);
    let tiles_n = k.let_("tiles_n", (problem.n - 1) / bn.clone() + 1);
    let (block, [batch, nth]) = own.product(k, tiles_n, |_| tiles_m.into());
    let first = k.let_("group_row", block / (raster * tiles_n) * raster);
    let left = tiles_m - first;
    let rows = k.let_("group_rows", left.min(raster));
    let inside = k.let_("in_group", block % (raster * tiles_n));
    let row = k.let_("block_row", (first + inside % rows) * bm);
    let col = k.let_("block_col", inside / rows * bn);
    Origin { row, col, batch, nth }
}
