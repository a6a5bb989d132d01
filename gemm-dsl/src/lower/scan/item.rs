//! Tile of a team: loads, the scan inside the team, and stores.

use super::{Scan, WARP, at};
use crate::ir::{Access, BufferId, BufferLayout, Expr, Intrinsic, KernelBuilder, Var};
use crate::lower::conversions::{computed, stored};
use crate::spec::ScanOver;

/// Elements of a thread, in registers.
pub(super) struct Tile {
    /// Running folds of the elements of each item.
    elements: BufferId,
    /// Fold of each item, then the fold of the item and of the same item of earlier lanes.
    sums: BufferId,
    /// Fold of the same item of earlier lanes.
    before: BufferId,
}

/// Shared memory in which the warps of a block scan their sums.
pub(super) struct BlockSums {
    /// Fold of each item of each warp, then the fold of all earlier ones.
    sums: BufferId,
    /// Fold of the tile, for rows.
    pub(super) total: Option<Access>,
}

/// Location of a thread's items.
pub(super) struct Place<'p> {
    pub(super) row: Expr,
    /// Column of the first element of the tile.
    pub(super) first: Expr,
    /// Index of the thread in its team.
    pub(super) member: &'p Expr,
    /// Condition that the row exists; `None` if it always does.
    pub(super) inside: Option<Expr>,
}

impl BlockSums {
    pub(super) fn declare(b: &mut KernelBuilder, scan: &Scan<'_>) -> Self {
        let count = b.constant("SUMS", count(scan) as i32, "items of all warps of a block");
        let layout = BufferLayout::row_major(1);
        let meaning = "sum of each item of each warp, then of all earlier ones";
        let sums = b.shared("sums", scan.held, [count.into()], layout, meaning);
        let meaning = "sum of the tile";
        let total = (scan.plan.spec().over == ScanOver::Rows).then(|| {
            let total = b.shared("total", scan.held, [], BufferLayout::row_major(0), meaning);
            Access::new(total, [])
        });
        Self { sums, total }
    }

    /// Sum of all items before an item of a warp.
    pub(super) fn before(&self, scan: &Scan<'_>, tid: &Expr, item: Var) -> Expr {
        at(self.sums, nth(scan, tid, item)).load()
    }

    /// Stores the sum of an item of a warp, which its last lane has.
    pub(super) fn store(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        tid: &Expr,
        [item, sum]: [Var; 2],
    ) {
        b.if_((tid.clone() % WARP).equals(WARP - 1), |b| {
            b.store(at(self.sums, nth(scan, tid, item)), sum);
        });
    }

    /// Stores the sums of all items of a tile in registers.
    pub(super) fn store_all(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        tile: &Tile,
        tid: &Expr,
    ) {
        b.if_((tid.clone() % WARP).equals(WARP - 1), |b| {
            b.unrolled("item", scan.items, |b, item| {
                b.store(at(self.sums, nth(scan, tid, item)), at(tile.sums, item).load());
            });
        });
    }

    /// Scans the sums of all warps and items in the first warp. Then calls `then` in this warp,
    /// with the variable that is the fold of the tile in the last lane.
    pub(super) fn scan(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        tid: &Expr,
        then: impl FnOnce(&mut KernelBuilder, Var),
    ) {
        b.comment("The first warp scans the sums of all warps, item by item.");
        let (count, each) = (count(scan), count(scan).div_ceil(WARP as u32) as i32);
        let nth = |j: i32| if each == 1 { tid.clone() } else { tid.clone() * each + j };
        let own = |j: i32| at(self.sums, nth(j));
        let is_full = count as i32 == each * WARP;
        let has = |j: i32| nth(j).lt(count as i32);
        let held = |j: i32| match is_full {
            true => own(j).load(),
            false => has(j).select(own(j).load(), scan.identity()),
        };
        let first = (each > 1).then(|| b.let_("first_sum", held(0)));
        let sum = match first {
            None => b.mut_("sum", held(0)),
            Some(first) => b.mut_("sum", scan.folded(first, held(1))),
        };
        scan.scan_lanes(b, sum, tid, WARP);
        let before = scan.previous(b, sum, tid);
        let before = b.let_("before_warp", before);
        let mut store = |j: i32, value: Expr| match is_full {
            true => b.store(own(j), value),
            false => b.if_(has(j), |b| b.store(own(j), value)),
        };
        store(0, before.into());
        if let Some(first) = first {
            store(1, scan.folded(before, first));
        }
        if let Some(total) = &self.total {
            b.if_(tid.clone().equals(WARP - 1), |b| b.store(total.clone(), sum));
        }
        then(b, sum);
    }
}

/// Number of items of all warps of a block: at most two for each lane of a warp.
fn count(scan: &Scan<'_>) -> u32 {
    scan.plan.items() * scan.plan.block() / WARP as u32
}

/// Result of an element of an item, as in memory. `own` are the running folds of the item, `before`
/// is the fold of everything before it.
pub(super) fn stored_result(
    scan: &Scan<'_>,
    before: Var,
    own: impl Fn(i32) -> Access,
    j: i32,
) -> Expr {
    let spec = scan.plan.spec();
    let nth = if spec.exclusive { j - 1 } else { j };
    let value = if nth < 0 { before.into() } else { scan.folded(before, own(nth).load()) };
    stored(value.bitcast(spec.acc_elem()), spec.result_elem())
}

/// Index of an item of the thread's warp among the items of all warps.
fn nth(scan: &Scan<'_>, tid: &Expr, item: Var) -> Expr {
    let warps = scan.plan.block() as i32 / WARP;
    match warps {
        1 => item.into(),
        warps => item * warps + tid.clone() / WARP,
    }
}

impl Tile {
    pub(super) fn declare(b: &mut KernelBuilder, scan: &Scan<'_>) -> Self {
        let dims = [Expr::from(scan.items), scan.vector.into()];
        let elements = b.registers("e", scan.held, dims, "elements of this thread");
        let mut each =
            |name: &str, meaning: &str| b.registers(name, scan.held, [scan.items.into()], meaning);
        let sums = each("sum_of_item", "sum of each item, then with those of earlier lanes");
        let before = each("before_item", "sum of the same item of earlier lanes");
        Self { elements, sums, before }
    }

    /// Loads the items and scans them inside each warp, in groups of `width` lanes.
    pub(super) fn load(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &Place<'_>,
        width: i32,
    ) {
        b.comment("The loads of all items are in flight together.");
        b.unrolled("item", scan.items, |b, item| {
            let first = b.let_("i", place.item(scan, item));
            self.load_item(b, scan, place, item, first);
        });
        let lane = place.member.clone();
        let lane = if width == WARP && scan.plan.team() > WARP as u32 { lane % WARP } else { lane };
        let lane: Expr = b.let_("lane", lane).into();
        b.comment("Scan the elements of each item, then the items of a warp.");
        b.unrolled("item", scan.items, |b, item| {
            let element = |j: Expr| Access::new(self.elements, [item.into(), j]);
            for j in 1..scan.plan.vector() as i32 {
                let sum = scan.folded(element((j - 1).into()).load(), element(j.into()).load());
                b.store(element(j.into()), sum);
            }
            let last = scan.plan.vector() as i32 - 1;
            let sum = b.mut_("sum", element(last.into()).load());
            scan.scan_lanes(b, sum, &lane, width);
            b.store(at(self.sums, item), sum);
            let before = scan.previous(b, sum, &lane);
            b.store(at(self.before, item), before);
        });
    }

    /// Loads the elements of an item. Missing elements are the identity.
    fn load_item(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &Place<'_>,
        item: Var,
        first: Var,
    ) {
        let vector = scan.plan.vector() as i32;
        let acc = scan.plan.spec().acc_elem();
        let value = |element: Expr| computed(element).cast(acc).bitcast(scan.held);
        let to = |j: i32| Access::new(self.elements, [item.into(), j.into()]);
        let from = |j: i32| Access::new(scan.input, [place.row.clone(), first + j, 0.into()]);
        let each = |b: &mut KernelBuilder| {
            for j in 0..vector {
                let is = (first + j).lt(scan.n);
                b.store(to(j), is.select(value(from(j).load()), scan.identity()));
            }
        };
        if !scan.is_wide {
            return each(b);
        }
        let whole = (first + vector).le(scan.n);
        b.if_else(
            whole,
            |b| {
                let lanes = i32::from(scan.input.elem.vector_lanes());
                for at in (0..vector).step_by(lanes as usize) {
                    let name = if at == 0 { "v".to_owned() } else { format!("v{at}") };
                    let loaded = b.let_(&name, from(at).vector().load());
                    for lane in 0..lanes {
                        b.store(to(at + lane), value(Expr::from(loaded).lane(lane as u8)));
                    }
                }
            },
            each,
        );
    }

    /// Stores the results of all items. `before` is the fold of everything before an item of the
    /// warp.
    pub(super) fn store(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &Place<'_>,
        before: impl Fn(&mut KernelBuilder, Var) -> Expr,
    ) {
        b.unrolled("item", scan.items, |b, item| {
            let before = before(b, item);
            let before = scan.folded(before, at(self.before, item).load());
            let before = b.let_("before_thread", before);
            let first = b.let_("i", place.item(scan, item));
            self.store_item(b, scan, place, [item, first, before]);
        });
    }

    fn store_item(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &Place<'_>,
        [item, first, before]: [Var; 3],
    ) {
        let vector = scan.plan.vector() as i32;
        let own = |nth: i32| Access::new(self.elements, [item.into(), nth.into()]);
        let result = |j: i32| stored_result(scan, before, own, j);
        let to = |j: i32| Access::new(scan.output, [place.row.clone(), first + j, 0.into()]);
        let inside = |cond: Expr| match &place.inside {
            Some(inside) => inside.clone().and(cond),
            None => cond,
        };
        let each = |b: &mut KernelBuilder| {
            for j in 0..vector {
                b.if_(inside((first + j).lt(scan.n)), |b| b.store(to(j), result(j)));
            }
        };
        if !scan.is_wide {
            return each(b);
        }
        b.if_else(
            inside((first + vector).le(scan.n)),
            |b| {
                let lanes = i32::from(scan.output.elem.vector_lanes());
                for at in (0..vector).step_by(lanes as usize) {
                    let values = (at..at + lanes).map(result).collect();
                    b.store(to(at).vector(), Expr::Pack(values));
                }
            },
            each,
        );
    }

    /// Fold of an item of all lanes of a group of `width` lanes.
    pub(super) fn sum_of_group(&self, item: Var, member: &Expr, width: i32) -> Expr {
        let sum = at(self.sums, item).load();
        let to_last = Expr::from(width - 1) - member.clone();
        Expr::Call(Intrinsic::ShuffleDown, vec![sum, to_last])
    }
}

impl Place<'_> {
    /// Column of the first element of an item.
    fn item(&self, scan: &Scan<'_>, item: Var) -> Expr {
        let nth = item * scan.team + self.member.clone();
        self.first.clone() + nth * scan.vector
    }
}
