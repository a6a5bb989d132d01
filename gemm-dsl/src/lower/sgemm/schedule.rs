//! The schedule: which tile of C a block computes, and of a batch which product's, or which products'.
//! No other code reads `blockIdx`.

use super::Problem;
use crate::ir::{Const, Expr, KernelBuilder, Special, Var};
use crate::plan::{SgemmPlan, Shape};

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

/// The grid: along x one block for each tile of C, of a batch for each of each product or of as many as a block
/// computes; along y for each range of K.
pub(super) fn grid(plan: &SgemmPlan, problem: &Problem) -> [Expr; 3] {
    let wide = |scalar| Expr::from(scalar).wide();
    let size = [problem.m, problem.n].map(wide);
    [tiles(plan, size, problem.batch.map(wide)), ranges(plan, wide(problem.k)), 1u64.into()]
}

/// The tiles of C, of a batch of all its products, as far as blocks of their own compute them.
pub(super) fn tiles(plan: &SgemmPlan, [m, n]: [Expr; 2], batch: Option<Expr>) -> Expr {
    let (bm, bn) = plan.block_tile();
    let tiles = m.div_ceil(u64::from(bm)) * n.div_ceil(u64::from(bn));
    match (batch, plan.products()) {
        (None, _) => tiles,
        (Some(batch), 1) => tiles * batch,
        (Some(batch), products) => tiles * batch.div_ceil(u64::from(products)),
    }
}

/// How many ranges of so many terms blocks of their own sum: at least one, and none is empty but the only one.
pub(super) fn ranges(plan: &SgemmPlan, terms: Expr) -> Expr {
    let (Shape::Tiled(t), 2..) = (plan.shape(), plan.split_k()) else { return 1u64.into() };
    let tiles = terms.div_ceil(u64::from(t.bk()));
    let tiles = tiles.clone().gt(1u64).select(tiles, 1u64);
    tiles.clone().div_ceil(tiles.div_ceil(u64::from(plan.split_k())))
}

/// The number of a block's tile among all, and of its range of K.
pub(super) fn tile_and_range() -> [Expr; 2] {
    [Special::BlockX, Special::BlockY].map(Expr::from)
}

/// The range of K that a block sums.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    /// The most ranges that there are, and how many there are.
    pub most: Const,
    pub ranges: Var,
    /// Its first term.
    pub begin: Var,
    /// How many terms it has.
    pub depth: Var,
}

impl Range {
    /// The range of this block, in whole tiles of K but for the last.
    pub(super) fn of_block(
        k: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &Problem,
        bk: Const,
    ) -> Self {
        let most = k.constant("SPLIT_K", plan.split_k() as i32, "ranges of K at most");
        k.comment("Block y sums the y-th range of K: whole tiles, as few as it takes for at most SPLIT_K ranges.");
        let terms = Expr::from(problem.k);
        let tiles = k.let_("tiles_k", terms.clone().gt(0).select((terms.clone() - 1) / bk + 1, 1));
        let of_range = k.let_("tiles_of_range", (tiles + (most - 1)) / most);
        let ranges = k.let_("ranges", (tiles + of_range - 1) / of_range);
        let begin = k.let_("k_begin", Expr::from(Special::BlockY) * of_range * bk);
        let depth = k.let_("depth", (terms - begin).min(of_range * bk));
        Self { most, ranges, begin, depth }
    }
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
