//! Groups of rows of a grouped GEMM, which `batch: grouped` computes. Each group has a matrix B of
//! its own. The kernel reads the first row of each group from an array in global memory.
//!
//! Tile rows are numbered over all groups: group g with the first row `o` has its first tile row at
//! `o / BM + g`. The next group's first tile row is at least as far away as this group has tiles,
//! whatever the rows. So a block finds its group by a binary search of the offsets, and at most one
//! tile row per group is without rows.
//!
//! A persistent block computes tiles in ascending order. It steps from group to group instead, and
//! counts the tile rows of each, so that all tile rows without rows are the last ones.

use crate::ir::{
    Access, BufferId, Change, Elem, Expr, For, KernelBuilder, Operand, Requirement, Scalar, Unroll,
    Var,
};
use crate::plan::SgemmPlan;
use crate::spec::Batch;

/// Binary logarithm of the greatest number of groups.
const LOG_GROUPS: u32 = 20;
/// Greatest number of rows. The number of the row after the last tile then fits in an `int`.
const MAX_ROWS: u32 = 1 << 30;

/// Groups of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    /// First row of each group, then the row after the last group.
    offsets: BufferId,
    count: Scalar,
    /// Rows of A and C.
    m: Scalar,
}

/// Group of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileGroup {
    pub index: Var,
    /// Row after the last one of the group.
    pub end: Var,
}

impl Groups {
    /// Declares the parameter for the offsets of `count` groups, and the limits of the launch.
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        count: Scalar,
        rows: Scalar,
    ) -> Option<Self> {
        let nth = plan.spec().offsets_input()?;
        let offsets = b.global("offsets", Elem::U32, Operand::Input(nth));
        b.shape(offsets, [Expr::from(count) + 1], [1.into()]);
        let of_tile = MAX_ROWS / plan.cluster_tile().0;
        let most = of_tile.saturating_sub(1).min(1 << LOG_GROUPS);
        b.require(Requirement::Range { scalar: count, min: 0, max: most.into() });
        b.require(Requirement::Range { scalar: rows, min: 0, max: MAX_ROWS.into() });
        Some(Self { offsets, count, m: rows })
    }

    /// Number of tile rows over all groups.
    pub(crate) fn tile_rows(self, rows: Expr) -> Expr {
        self.m / rows + self.count
    }

    /// First row of a group. A wrong offset counts as M.
    fn first_row(self, group: impl Into<Expr>) -> Expr {
        let offset = Access::new(self.offsets, [group.into()]).load();
        offset.min(Expr::from(self.m).cast(Elem::U32)).cast(Elem::I32)
    }

    /// Finds the group of a tile row, and the first row of the tile. The tile exists if this row is
    /// before the end of the group.
    pub(crate) fn find(
        self,
        b: &mut KernelBuilder,
        tile_row: Expr,
        rows: &Expr,
    ) -> (Var, TileGroup) {
        b.comment("Find the last group whose first tile row is not after this one.");
        b.comment("Offsets beyond M count as M, so wrong ones lead to no row outside A and C.");
        let tile_row = b.let_("tile_row", tile_row);
        let group = b.mut_("group", 0);
        let halves = For::above(1 << (LOG_GROUPS - 1), 0).change(Change::Div(2.into()));
        b.loop_("step", halves.unroll(Unroll::By(1)), |b, step| {
            let next = b.let_("next", group + step);
            b.if_(Expr::from(next).lt(self.count), |b| {
                let start = self.first_row(next) / rows.clone() + next;
                b.if_(start.le(tile_row), |b| b.assign(group, next));
            });
        });
        let index = b.let_("batch", group);
        let first = b.let_("first_row", self.first_row(index));
        let end = b.let_("end_row", self.first_row(Expr::from(index) + 1));
        let nth = b.let_("tile_of_group", tile_row - (first / rows.clone() + index));
        let own = first + nth * rows.clone();
        let row = b.let_("block_row", Expr::from(nth).ge(0).select(own, end));
        (row, TileGroup { index, end })
    }
}

/// Group that a persistent block has reached, as variables of the block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupCursor {
    group: Var,
    /// First row of the group, and the row after its last one.
    first: Var,
    end: Var,
    /// Number of tile rows of the groups before.
    before: Var,
}

impl GroupCursor {
    /// Number of tile rows of the group.
    fn tile_rows(self, rows: &Expr) -> Expr {
        (Expr::from(self.end) - self.first).max(0).div_ceil(rows.clone())
    }
}

impl Groups {
    /// Declares the variables of a persistent block, which begins with the first group.
    pub(crate) fn cursor(self, b: &mut KernelBuilder) -> GroupCursor {
        b.comment("Group of the current tile, its rows, and the number of tile rows before it.");
        b.comment("Offsets beyond M count as M, so wrong ones lead to no row outside A and C.");
        let group = b.mut_("group", 0);
        let first = b.mut_("first_row", self.first_row(0));
        let end = b.mut_("end_row", self.first_row(1));
        let before = b.mut_("tile_rows_before", 0);
        GroupCursor { group, first, end, before }
    }

    /// Moves on to the group of a tile row, which is not before the last one. Returns the first row
    /// of the tile as [`Groups::find`] does.
    pub(crate) fn advance(
        self,
        b: &mut KernelBuilder,
        of: GroupCursor,
        tile_row: Expr,
        rows: &Expr,
    ) -> (Var, TileGroup) {
        let tile_row = b.let_("tile_row", tile_row);
        let nth = || Expr::from(tile_row) - of.before;
        let is_later = |next: Var| {
            let exists = Expr::from(next).le(self.count);
            exists.and(nth().ge(of.tile_rows(rows)))
        };
        let later = For::new(Expr::from(of.group) + 1, is_later).change(Change::Add(1.into()));
        b.loop_("next", later.unroll(Unroll::By(1)), |b, next| {
            b.assign(of.before, of.before + of.tile_rows(rows));
            b.assign(of.group, next);
            b.assign(of.first, of.end);
            let end = (Expr::from(next) + 1).min(self.count);
            b.assign(of.end, self.first_row(end));
        });
        let own = of.first + nth() * rows.clone();
        let exists = nth().lt(of.tile_rows(rows));
        let row = b.let_("block_row", exists.select(own, of.end));
        (row, TileGroup { index: of.group, end: of.end })
    }
}

/// Emits `body` if the tile with this first row exists.
pub(crate) fn if_exists(
    b: &mut KernelBuilder,
    first_row: Var,
    end_of_group: Option<Var>,
    body: impl FnOnce(&mut KernelBuilder),
) {
    let Some(end) = end_of_group else { return body(b) };
    b.comment("A tile row may begin at the end of its group: it has nothing to compute.");
    b.if_(Expr::from(first_row).lt(end), body);
}

/// Number of tiles in the grid of a grouped GEMM: M / BM + groups tile rows. None without a row or
/// a group.
pub(crate) fn tiles(plan: &SgemmPlan, [m, n]: [Expr; 2], groups: Option<Expr>) -> Option<Expr> {
    let groups = groups.filter(|_| plan.batch() == Some(Batch::Grouped))?;
    let (bm, bn) = plan.cluster_tile();
    let rows = m.clone() / u64::from(bm) + groups.clone();
    let tiles = rows * n.div_ceil(u64::from(bn));
    Some(m.gt(0u64).and(groups.gt(0u64)).select(tiles, 0u64))
}
