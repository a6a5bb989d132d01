//! Scans of rows: a group of threads or a block scans a row, tile by tile.

use super::item::{BlockSums, Place, Tile};
use super::{Scan, WARP, thread};
use crate::ir::{Change, Expr, For, Geometry, KernelBuilder, Special};

pub(super) fn build(b: &mut KernelBuilder, scan: &Scan<'_>) {
    let (block, team) = (scan.plan.block(), scan.plan.team());
    let grid = match block / team {
        1 => Expr::from(scan.m),
        rows => Expr::from(scan.m).div_ceil(u64::from(rows)),
    };
    let blocks_per_sm = scan.plan.blocks_per_sm(scan.is_wide);
    let grid = [grid, 1u64.into(), 1u64.into()];
    b.geometry(Geometry { block: (block, 1), grid, blocks_per_sm });
    if team == block { by_blocks(b, scan) } else { by_groups(b, scan, team as i32) }
}

fn tiles(scan: &Scan<'_>) -> For<impl FnOnce(crate::ir::Var) -> Expr> {
    For::below(Expr::U64(0), scan.n).change(Change::Add(Expr::from(scan.tile).wide()))
}

/// Each block scans a row.
fn by_blocks(b: &mut KernelBuilder, scan: &Scan<'_>) {
    let row: Expr = b.let_("row", Expr::from(Special::BlockX).wide()).into();
    let member: Expr = b.let_("tid", thread()).into();
    let sums = BlockSums::declare(b, scan);
    let carry = b.mut_("carry", scan.identity());
    b.loop_("first", tiles(scan), |b, first| {
        let tile = Tile::declare(b, scan);
        let place = Place { row: row.clone(), first: first.into(), member: &member, inside: None };
        tile.load(b, scan, &place, WARP);
        sums.store_all(b, scan, &tile, &member);
        b.barrier();
        b.if_(member.clone().lt(WARP), |b| sums.scan(b, scan, &member, |_, _| {}));
        b.barrier();
        tile.store(b, scan, &place, |_, item| scan.folded(carry, sums.before(scan, &member, item)));
        if let Some(total) = &sums.total {
            b.assign(carry, scan.folded(carry, total.clone().load()));
        }
        b.comment("The next tile reuses this shared memory.");
        b.barrier();
    });
}

/// Each group of up to a warp scans a row.
fn by_groups(b: &mut KernelBuilder, scan: &Scan<'_>, team: i32) {
    b.comment(
        "TEAM adjacent threads scan a row. Teams past the last row repeat it and store nothing: \
         every lane must take part in the shuffles.",
    );
    let rows = scan.plan.block() as i32 / team;
    let own = Expr::from(Special::BlockX).wide() * rows + thread() / scan.team;
    let own = b.let_("own_row", own);
    let row: Expr = b.let_("row", Expr::from(own).min(Expr::from(scan.m) - 1)).into();
    let member: Expr = b.let_("member", thread() % scan.team).into();
    let carry = b.mut_("carry", scan.identity());
    b.loop_("first", tiles(scan), |b, first| {
        let tile = Tile::declare(b, scan);
        let inside = Some(Expr::from(own).lt(scan.m));
        let place = Place { row: row.clone(), first: first.into(), member: &member, inside };
        tile.load(b, scan, &place, team);
        tile.store(b, scan, &place, |b, item| {
            let before = b.let_("before_row", carry);
            let sum = b.let_("sum_of_team", tile.sum_of_group(item, &member, team));
            b.assign(carry, scan.folded(carry, sum));
            before.into()
        });
    });
}
