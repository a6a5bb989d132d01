//! Schedule: mapping of blocks to tiles of C and to GEMMs of a batch. Only this code of a GEMM
//! kernel reads `blockIdx`. For the kernels that split operands or compute row maxima,
//! `factor_tiles` does so.

use super::groups::{self, GroupCursor, TileGroup};
use super::problem::GemmProblem;
use super::sharing::TileDistribution;
use crate::ir::{Const, Expr, KernelBuilder, Special, Var};
use crate::plan::{KernelKind, SgemmPlan};
use crate::spec::Sharing;

/// First row and column of C of this block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub row: Var,
    pub col: Var,
    /// Index of the GEMM in a batch.
    pub batch: Option<Var>,
    /// Row after the last one of the tile's group. The tile exists if `row` is before it.
    pub end_of_group: Option<Var>,
    /// Index of the thread's GEMM if it may exceed the batch. Threads without a GEMM then recompute
    /// the last one and store nothing.
    pub nth: Option<Var>,
}

/// GEMM of a thread, if its block computes several GEMMs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockProduct {
    /// Index of the GEMM in the block.
    pub product: Var,
    pub products: Const,
}

/// Grid of a launch. Along x it has one block per tile of C, for each GEMM or group of `products`
/// GEMMs of a batch. Along y it has one block per split-K partition. Under `stream_k`, the launch
/// sets the number of blocks.
pub(crate) fn grid(plan: &SgemmPlan, problem: &GemmProblem) -> [Expr; 3] {
    let wide = |scalar| Expr::from(scalar).wide();
    let along = match problem.distribution {
        Some(TileDistribution::StreamK(of)) => return [wide(of.sharers), 1u64.into(), 1u64.into()],
        Some(TileDistribution::Persistent(of)) => wide(of.sharers),
        None => tiles_of(plan, problem),
    };
    let along = match plan.cluster() {
        1 => along,
        blocks => along * u64::from(blocks),
    };
    [along, partitions_of(plan, problem), 1u64.into()]
}

/// Comments on the extents of a tile of C. A block computes one tile, unless blocks share the tiles
/// or a block computes several GEMMs.
pub(crate) fn tile_meanings(plan: &SgemmPlan, problem: &GemmProblem) -> [&'static str; 2] {
    if problem.distribution.is_some() || plan.products() > 1 {
        ["rows of a tile of C", "columns of a tile of C"]
    } else {
        ["rows of C per block", "columns of C per block"]
    }
}

/// Number of tiles of C, as an expression of the kernel's parameters.
pub(crate) fn tiles_of(plan: &SgemmPlan, problem: &GemmProblem) -> Expr {
    let wide = |scalar| Expr::from(scalar).wide();
    tiles(plan, [problem.m, problem.n].map(wide), problem.batch.map(|batch| wide(batch.count)))
}

/// Number of split-K partitions, as an expression of the kernel's parameters.
pub(crate) fn partitions_of(plan: &SgemmPlan, problem: &GemmProblem) -> Expr {
    let wide = |scalar| Expr::from(scalar).wide();
    let most = match plan.sharing() {
        Sharing::Whole | Sharing::Stream => 1u64.into(),
        Sharing::Partitions(most) => u64::from(most).into(),
        Sharing::AutoPartitions => wide(problem.auto_partitions()),
    };
    partitions(plan, wide(problem.k), most)
}

/// Number of tiles of C, each computed by a block of its own, over the whole batch.
pub(crate) fn tiles(plan: &SgemmPlan, [m, n]: [Expr; 2], batch: Option<Expr>) -> Expr {
    if let Some(tiles) = groups::tiles(plan, [m.clone(), n.clone()], batch.clone()) {
        return tiles;
    }
    let (bm, bn) = plan.cluster_tile();
    let tiles = m.div_ceil(u64::from(bm)) * n.div_ceil(u64::from(bn));
    match (batch, plan.products()) {
        (None, _) => tiles,
        (Some(batch), 1) => tiles * batch,
        (Some(batch), products) => tiles * batch.div_ceil(u64::from(products)),
    }
}

/// Number of split-K partitions of a K of `terms`: at least one, and at most `most`. No partition
/// is empty unless K is 0.
pub(crate) fn partitions(plan: &SgemmPlan, terms: Expr, most: Expr) -> Expr {
    match plan.sharing() {
        Sharing::Whole | Sharing::Stream => 1u64.into(),
        Sharing::Partitions(_) | Sharing::AutoPartitions => {
            let steps = k_steps(terms, plan.k_step());
            steps.clone().div_ceil(steps.div_ceil(most))
        }
    }
}

/// Number of K tiles or rounds of `step` elements: at least one, even for K = 0.
pub(crate) fn k_steps(terms: Expr, step: u32) -> Expr {
    let steps = terms.div_ceil(u64::from(step));
    steps.max(1u64)
}

/// Declares a variable for the number of K tiles or rounds.
pub(crate) fn declare_k_steps(
    b: &mut KernelBuilder,
    whole: &str,
    problem: &GemmProblem,
    depth: Const,
) -> Var {
    let terms = Expr::from(problem.k);
    b.let_(&format!("{whole}_k"), terms.clone().gt(0).select((terms - 1) / depth + 1, 1))
}

/// Maximum number of partitions under `split_k: auto`. It is the number of blocks per tile of C
/// that fills all SMs once, limited by [`most_sharing`].
pub(crate) fn auto_partitions(plan: &SgemmPlan, tiles: Expr, terms: &Expr, sms: Expr) -> Expr {
    let blocks = sms * u64::from(plan.blocks_per_sm());
    let tiles = tiles.max(1u64);
    let fill = blocks / tiles;
    let fill = fill.max(1u64);
    fill.min(most_sharing(terms))
}

/// Maximum number of blocks that should share the K of a tile, which has the extent `terms`. If
/// partitions are too short, combining them takes longer than computing them.
///
/// The block that finishes a tile last reads 4 bytes per element and partition, at 64 bytes per
/// cycle. A multiply-add takes 1/128 cycle. For s partitions this is K / 128 / s + s / 16 cycles
/// per element, with the minimum at s² = K / 8. The function returns this s, rounded down to a
/// power of two. It is at most 8192, because K is below 2^31.
pub(crate) fn most_sharing(terms: &Expr) -> Expr {
    (1..14u32).fold(Expr::U64(1), |root, log| {
        terms.clone().ge(8u64 << (2 * log)).select(1u64 << log, root)
    })
}

/// Index of this block's cluster, if a cluster has `blocks` blocks.
pub(crate) fn cluster(blocks: Const) -> Expr {
    Expr::from(Special::BlockX) / blocks
}

/// Index of this block, if the number of blocks is not the number of tiles.
pub(crate) fn block() -> Expr {
    Special::BlockX.into()
}

/// Index of the block's tile, and of its split-K partition.
pub(crate) fn tile_and_range() -> [Expr; 2] {
    [Special::BlockX, Special::BlockY].map(Expr::from)
}

/// Range of K that a block accumulates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KRange {
    /// First k of the range.
    pub begin: Var,
    /// Number of elements in the range.
    pub depth: Var,
}

/// Split-K partitions of a tile, each computed by its own block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitKPartitions {
    pub count: Var,
    /// Index of the tile, if it is not the block's x index.
    pub tile: Option<Var>,
}

impl SplitKPartitions {
    /// Computes this block's split-K partition and the number of partitions, if the plan uses
    /// split-K. A partition is a multiple of `depth` elements, a K tile or a round, except for the
    /// last partition.
    pub(crate) fn of_block(
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &GemmProblem,
        depth: Const,
    ) -> Option<(Self, KRange)> {
        // Maximum number of partitions, which is a constant or a launch parameter, with its name in
        // the kernel.
        let (most, name): (Expr, _) = match plan.sharing() {
            Sharing::Whole | Sharing::Stream => return None,
            Sharing::Partitions(most) => {
                let name = "SPLIT_K";
                (b.constant(name, most as i32, "maximum number of split-K partitions").into(), name)
            }
            Sharing::AutoPartitions => (problem.auto_partitions().into(), "RANGES"),
        };
        let whole = match plan.kind() {
            KernelKind::Tiled(_) | KernelKind::Wgmma(_) => "tiles",
            KernelKind::Naive(_) | KernelKind::Direct(_) => "rounds",
        };
        b.comment(format!(
            "Split-K: block y computes partition y of K. There are at most {name} partitions,"
        ));
        b.comment(format!("each of one or more whole {whole}."));
        let all = declare_k_steps(b, whole, problem, depth);
        let of_range = (all + (most.clone() - 1)) / most;
        let of_range = b.let_(&format!("{whole}_of_range"), of_range);
        let count = b.let_("ranges", (all + of_range - 1) / of_range);
        let begin = b.let_("k_begin", Expr::from(Special::BlockY) * of_range * depth);
        let depth = b.let_("depth", (problem.k - begin).min(of_range * depth));
        Some((Self { count, tile: None }, KRange { begin, depth }))
    }
}

/// Rows and columns of a tile of C.
#[derive(Clone)]
pub(crate) struct TileExtents {
    pub rows: Expr,
    pub cols: Expr,
}

/// Numbers of tiles of C, as variables of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileCounts {
    /// Number of tile rows, if the position of a tile depends on it.
    m: Option<Var>,
    n: Var,
    /// Number of tiles of one GEMM in a batch.
    of_product: Option<Var>,
    /// Group that a block has reached which computes tiles of groups in ascending order.
    cursor: Option<GroupCursor>,
}

impl TileCounts {
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &GemmProblem,
        tile: TileExtents,
    ) -> Self {
        let TileExtents { rows, cols } = tile;
        let rows = |b: &mut KernelBuilder| match problem.groups {
            None => b.let_("tiles_m", (problem.m - 1) / rows + 1),
            Some(groups) => b.let_("tiles_m", groups.tile_rows(rows)),
        };
        let batch = problem.batch.filter(|_| problem.groups.is_none());
        let cols = |b: &mut KernelBuilder| b.let_("tiles_n", (problem.n - 1) / cols + 1);
        let (m, n) = match plan.raster() {
            Some(_) => (Some(rows(b)), cols(b)),
            None => {
                let n = cols(b);
                (batch.map(|_| rows(b)), n)
            }
        };
        let of_product = batch.and(m).map(|m| b.let_("tiles", m * n));
        // The tile rows of a raster group do not ascend.
        let ascends = problem.distribution.is_some() && plan.raster().is_none();
        let cursor = problem.groups.filter(|_| ascends).map(|groups| groups.cursor(b));
        Self { m, n, of_product, cursor }
    }
}

/// Computes the origin of this block's tile. With `tile`, computes that of the given tile, for
/// which the counts must already be declared.
pub(crate) fn origin(
    b: &mut KernelBuilder,
    plan: &SgemmPlan,
    problem: &GemmProblem,
    extents: TileExtents,
    part: Option<BlockProduct>,
    tile: Option<(Var, TileCounts)>,
) -> Origin {
    let (tile, counts) = tile.unzip();
    let own = ProductChoice { plan, problem, part, tile };
    let counts = |b: &mut KernelBuilder| {
        counts.unwrap_or_else(|| TileCounts::declare(b, plan, problem, extents.clone()))
    };
    match plan.raster() {
        None => {
            b.comment(match (problem.batch, part) {
                (Some(_), _) if problem.groups.is_some() => {
                    "Block b computes the tile with tile row b / tiles_n and tile column b % \
                     tiles_n. The tile rows are numbered over all groups."
                }
                (None, _) if tile.is_some() => "Tile t of C is (t / tiles_n, t % tiles_n).",
                (Some(_), _) if tile.is_some() => {
                    "Tile t belongs to GEMM t / tiles. With b = t % tiles, it is tile (b / \
                     tiles_n, b % tiles_n) of C."
                }
                (None, _) => "Block b computes tile (b / tiles_n, b % tiles_n) of C.",
                (Some(_), None) => {
                    "Block b works on GEMM b / tiles. With t = b % tiles, it computes tile (t / \
                     tiles_n, t % tiles_n) of C."
                }
                (Some(_), Some(_)) => {
                    "Block b works on PRODUCTS GEMMs, from (b / tiles) * PRODUCTS on. With t = b \
                     % tiles, it computes tile (t / tiles_n, t % tiles_n) of each C."
                }
            });
            let counts = counts(b);
            let (block, [batch, nth]) = own.product(b, counts);
            let own = rows_of(b, problem, counts, block / counts.n, extents.rows);
            let col = b.let_("block_col", block % counts.n * extents.cols);
            own.origin(col, [batch, nth])
        }
        Some(rows) => {
            let raster = b.constant("RASTER", rows as i32, "rows of block tiles per raster group");
            b.comment(
                "Blocks visit C in groups of RASTER tile rows, column by column within each, so \
                 that",
            );
            b.comment("concurrent blocks share rows of A and columns of B in the L2 cache.");
            let counts = counts(b);
            grouped(b, &own, raster, counts, extents)
        }
    }
}

/// Inputs that select the GEMM of a block or of a part of a block.
struct ProductChoice<'a> {
    plan: &'a SgemmPlan,
    problem: &'a GemmProblem,
    part: Option<BlockProduct>,
    /// Index of the tile among all tiles, if it is not the block's index.
    tile: Option<Var>,
}

impl ProductChoice<'_> {
    /// Index of the block among those of its GEMM, and the index of the GEMM in a batch. The second
    /// index is returned twice: clamped for reading, and unclamped for a check before storing.
    fn product(&self, b: &mut KernelBuilder, counts: TileCounts) -> (Var, [Option<Var>; 2]) {
        let found = self.problem.batch.zip(counts.of_product);
        let Some((count, tiles)) = found.map(|(batch, tiles)| (batch.count, tiles)) else {
            let block = self.tile.unwrap_or_else(|| b.let_("block", Special::BlockX));
            return (block, [None; 2]);
        };
        let number = self.tile.map_or(Special::BlockX.into(), Expr::from);
        let first = number.clone() / tiles;
        let products = match self.part {
            None => [Some(b.let_("batch", first)), None],
            Some(BlockProduct { product, products }) => {
                let nth = first * products + product;
                if self.plan.guarded() {
                    b.comment("Threads without a GEMM repeat the last one and store nothing.");
                    let nth = b.let_("nth", nth);
                    [Some(b.let_("batch", Expr::from(nth).min(count - 1))), Some(nth)]
                } else {
                    [Some(b.let_("batch", nth)), None]
                }
            }
        };
        (b.let_("block", number % tiles), products)
    }
}

/// Orders tiles in groups of `raster` tile rows, and column by column inside a group. Concurrent
/// blocks then share rows of A and columns of B in the L2 cache.
fn grouped(
    b: &mut KernelBuilder,
    own: &ProductChoice<'_>,
    raster: Const,
    counts: TileCounts,
    extents: TileExtents,
) -> Origin {
    let tiles_m = counts
        .m
        .unwrap_or_else(|| unreachable!("TileCounts: a `raster` needs the number of tile rows"));
    let (block, [batch, nth]) = own.product(b, counts);
    let first = b.let_("group_row", block / (raster * counts.n) * raster);
    let left = tiles_m - first;
    let rows = b.let_("group_rows", left.min(raster));
    let inside = b.let_("in_group", block % (raster * counts.n));
    let rows_of_tile = rows_of(b, own.problem, counts, first + inside % rows, extents.rows);
    let col = b.let_("block_col", inside / rows * extents.cols);
    rows_of_tile.origin(col, [batch, nth])
}

/// Rows of a tile: the first one, and the group in a grouped GEMM.
struct TileRows {
    first: Var,
    group: Option<TileGroup>,
}

/// Computes the rows of the tile in a tile row.
fn rows_of(
    b: &mut KernelBuilder,
    problem: &GemmProblem,
    counts: TileCounts,
    tile_row: Expr,
    rows: Expr,
) -> TileRows {
    match problem.groups {
        None => TileRows { first: b.let_("block_row", tile_row * rows), group: None },
        Some(groups) => {
            let (first, group) = match counts.cursor {
                None => groups.find(b, tile_row, &rows),
                Some(cursor) => groups.advance(b, cursor, tile_row, &rows),
            };
            TileRows { first, group: Some(group) }
        }
    }
}

impl TileRows {
    fn origin(self, col: Var, [batch, nth]: [Option<Var>; 2]) -> Origin {
        let batch = self.group.map(|group| group.index).or(batch);
        let end_of_group = self.group.map(|group| group.end);
        Origin { row: self.first, col, batch, end_of_group, nth }
    }
}
