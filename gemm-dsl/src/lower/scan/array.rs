//! Scans of arrays in one launch: a tile for each block, whose prefix the block folds from the sums
//! that earlier blocks publish.

use super::item::{BlockSums, Place, Tile};
use super::{Scan, WARP, at, held, thread};
use crate::ir::program::{Program, Slot, TempFill};
use crate::ir::{
    Access, AtomicOp, BufferId, BufferLayout, Elem, Expr, For, Geometry, Intrinsic, KernelBuilder,
    MemoryOrder, Operand, Scope, Unroll, Var,
};
use crate::plan::ScanPlan;

/// Names and contents of the scratch arrays.
const TICKETS: &str = "tickets";
const SUMS: &str = "tile_sums";
const HAS_SUM: &str = "has_sum";
const PREFIXES: &str = "group_prefixes";
const HAS_PREFIX: &str = "has_prefix";

/// Scratch arrays of a kernel.
struct Temps {
    /// Number of tiles that blocks have taken.
    tickets: BufferId,
    /// Fold of each tile, and a word that is 1 once it is known.
    sums: BufferId,
    has_sum: BufferId,
    /// Fold of all elements up to the end of each group of tiles, and a word that is 1 once it is
    /// known.
    prefixes: BufferId,
    has_prefix: BufferId,
}

/// Number of tiles, and number of groups of tiles, of `n` elements.
fn counts(plan: &ScanPlan, n: &Expr) -> [Expr; 2] {
    let tiles = n.clone().div_ceil(u64::from(plan.tile()));
    let groups = n.clone().div_ceil(u64::from(plan.tile()) * u64::from(plan.block()));
    [tiles, groups]
}

/// Adds the scratch arrays to a program.
pub(super) fn temps(program: &mut Program, plan: &ScanPlan, n: &Expr) -> Vec<(Operand, Slot)> {
    let [tiles, groups] = counts(plan, n);
    let (held, zero) = (held(plan), TempFill::Zero);
    let slots = [
        program.temp_of(TICKETS, Elem::U32, [Expr::U64(1)], zero),
        program.temp(SUMS, held, [tiles.clone()]),
        program.temp_of(HAS_SUM, Elem::U32, [tiles], zero),
        program.temp(PREFIXES, held, [groups.clone()]),
        program.temp_of(HAS_PREFIX, Elem::U32, [groups], zero),
    ];
    slots.into_iter().enumerate().map(|(nth, slot)| (Operand::Temp(nth), slot)).collect()
}

impl Temps {
    fn declare(b: &mut KernelBuilder, scan: &Scan<'_>) -> Self {
        let [tiles, groups] = counts(scan.plan, &scan.n.into());
        let mut array = |nth, name: &str, elem, len: Expr| {
            let array = b.global(name, elem, Operand::Temp(nth));
            b.shape(array, [len], [1.into()]);
            array
        };
        Self {
            tickets: array(0, TICKETS, Elem::U32, Expr::U64(1)),
            sums: array(1, SUMS, scan.held, tiles.clone()),
            has_sum: array(2, HAS_SUM, Elem::U32, tiles),
            prefixes: array(3, PREFIXES, scan.held, groups.clone()),
            has_prefix: array(4, HAS_PREFIX, Elem::U32, groups),
        }
    }
}

pub(super) fn build(b: &mut KernelBuilder, scan: &Scan<'_>) {
    let temps = Temps::declare(b, scan);
    b.title("Workspace: tickets, has_sum and has_prefix are 0 before each launch.");
    let [tiles, _] = counts(scan.plan, &scan.n.into());
    let blocks_per_sm = scan.plan.spec().blocks_per_sm;
    let grid = [tiles, 1u64.into(), 1u64.into()];
    b.geometry(Geometry { block: (scan.plan.block(), 1), grid, blocks_per_sm });
    let tid: Expr = b.let_("tid", thread()).into();
    let word = |b: &mut KernelBuilder, name: &str, elem, meaning: &str| {
        let word = b.shared(name, elem, [], BufferLayout::row_major(0), meaning);
        Access::new(word, [])
    };
    let taken = word(b, "taken", Elem::U32, "number of the block's tile");
    let prefix = word(b, "prefix", scan.held, "sum of all elements before the tile");
    let sums = BlockSums::declare(b, scan);
    b.comment(
        "Take the next tile. Blocks with the earlier tiles have therefore started, so this block \
         may wait for them.",
    );
    b.if_(tid.clone().equals(0), |b| {
        let (one, order) = (Expr::U32(1), MemoryOrder::Relaxed);
        let next = at(temps.tickets, 0);
        let ticket = b.atomic("ticket", AtomicOp::Add, next, one, order, Scope::Device);
        b.store(taken.clone(), ticket);
    });
    b.barrier();
    let tile = b.let_("tile", taken.load().cast(Elem::U64));
    let elements = Tile::declare(b, scan);
    let first = b.let_("first", tile * scan.tile);
    let place = Place { row: Expr::U64(0), first: first.into(), member: &tid, inside: None };
    elements.load(b, scan, &place, WARP);
    sums.scan(b, scan, (&elements, &tid), |b, sum| {
        b.comment("Publish the sum of the tile.");
        publish(b, at(temps.sums, tile), at(temps.has_sum, tile), sum);
    });
    look_back(b, scan, &temps, (tile, &tid), &sums.total, &prefix);
    elements.store(b, scan, &place, |_, item| {
        scan.folded(prefix.clone().load(), sums.before(scan, &tid, item))
    });
}

/// Computes the fold of all elements before a tile.
fn look_back(
    b: &mut KernelBuilder,
    scan: &Scan<'_>,
    temps: &Temps,
    (tile, tid): (Var, &Expr),
    total: &Access,
    prefix: &Access,
) {
    let warps = scan.plan.block() as i32 / WARP;
    let layout = BufferLayout::row_major(1);
    let meaning = "sum of earlier tiles of each warp";
    let of_warps = b.shared("earlier_sums", scan.held, [warps.into()], layout, meaning);
    b.comment(
        "Fold the sums of the earlier tiles of this group of BLOCK tiles, one for each thread. \
         The order depends on no timing, so the results are reproducible.",
    );
    let group = b.let_("group", Expr::from(tile) / scan.block);
    let nth = b.let_("nth", Expr::from(tile) - group * scan.block);
    let sum = b.mut_("earlier", scan.identity());
    b.if_(tid.clone().wide().lt(nth), |b| {
        let other = b.let_("other", group * scan.block + tid.clone());
        wait(b, at(temps.has_sum, other));
        b.assign(sum, at(temps.sums, other).load());
    });
    let halve = crate::ir::Change::Div(2.into());
    let steps = For::above(WARP / 2, 0).change(halve).unroll(Unroll::Full);
    b.loop_("step", steps, |b, step| {
        let above = Expr::Call(Intrinsic::ShuffleDown, vec![sum.into(), step.into()]);
        let above = b.let_("above", above);
        b.assign(sum, scan.folded(sum, above));
    });
    b.if_((tid.clone() % WARP).equals(0), |b| {
        b.store(at(of_warps, tid.clone() / WARP), sum);
    });
    b.barrier();
    b.if_(tid.clone().equals(0), |b| {
        let all = b.mut_("all", scan.identity());
        b.if_(Expr::from(group).gt(0u64), |b| {
            let before = b.let_("group_before", Expr::from(group) - 1);
            wait(b, at(temps.has_prefix, before));
            b.assign(all, at(temps.prefixes, before).load());
        });
        let earlier = b.mut_("earlier_all", at(of_warps, 0).load());
        for warp in 1..warps {
            b.assign(earlier, scan.folded(earlier, at(of_warps, warp).load()));
        }
        b.assign(all, scan.folded(all, earlier));
        b.store(prefix.clone(), all);
        let is_last = Expr::from(nth).equals(Expr::from(scan.block).wide() - 1);
        b.if_(is_last, |b| {
            b.comment("The last block of a group publishes the prefix of the next group.");
            let sum = scan.folded(all, total.clone().load());
            publish(b, at(temps.prefixes, group), at(temps.has_prefix, group), sum);
        });
    });
    b.barrier();
}

/// Stores a value, and sets its word.
fn publish(b: &mut KernelBuilder, target: Access, word: Access, value: Expr) {
    b.store(target, value);
    let (one, order) = (Expr::U32(1), MemoryOrder::Release);
    b.atomic_only(AtomicOp::Exchange, word, one, order, Scope::Device);
}

/// Waits until another block has set a word.
fn wait(b: &mut KernelBuilder, word: Access) {
    let seen = b.mut_("seen", Expr::U32(0));
    let none = |_| Expr::from(seen).equals(Expr::U32(0));
    b.loop_("round", For::new(0, none), |b, _| {
        let (zero, order) = (Expr::U32(0), MemoryOrder::Acquire);
        let found = b.atomic("found", AtomicOp::Add, word, zero, order, Scope::Device);
        b.assign(seen, found);
    });
}
