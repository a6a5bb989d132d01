//! Tile of an array in shared memory, between the scan inside the block and the look-back.
//! Registers then limit the number of resident blocks less.

use super::item::{BlockSums, stored_result};
use super::{Scan, WARP, at};
use crate::ir::{Access, BufferId, BufferLayout, Expr, KernelBuilder, Var};
use crate::lower::conversions::computed;

pub(super) struct HeldTile {
    /// Elements as in memory. A thread reads only what it has written.
    elements: BufferId,
    /// Fold of the same item of earlier lanes.
    before: BufferId,
}

/// Tile of a block.
pub(super) struct TilePlace<'p> {
    /// Index in the array of the tile's first element.
    pub(super) first: Var,
    /// Number of elements of the tile.
    pub(super) left: Var,
    pub(super) tid: &'p Expr,
}

impl TilePlace<'_> {
    /// Index in the tile of the first element of an item.
    fn item(&self, b: &mut KernelBuilder, scan: &Scan<'_>, item: Var) -> Var {
        b.let_("i", (item * scan.block + self.tid.clone()) * scan.vector)
    }

    /// Element of the input or output.
    fn at(&self, array: BufferId, i: Expr) -> Access {
        Access::new(array, [0u64.into(), self.first + i, 0.into()])
    }
}

impl HeldTile {
    pub(super) fn declare(b: &mut KernelBuilder, scan: &Scan<'_>) -> Self {
        let dims = [Expr::from(scan.items), scan.block.into(), scan.vector.into()];
        let layout = BufferLayout::row_major(3);
        let meaning = "elements of the tile; each thread reads only its own";
        let elements = b.shared("tile_elements", scan.input.elem, dims, layout, meaning);
        let meaning = "sum of the same item of earlier lanes";
        let before = b.registers("before_item", scan.held, [scan.items.into()], meaning);
        Self { elements, before }
    }

    fn vector(scan: &Scan<'_>) -> i32 {
        scan.plan.vector() as i32
    }

    fn element(&self, item: Var, place: &TilePlace<'_>, j: i32) -> Access {
        Access::new(self.elements, [item.into(), place.tid.clone(), j.into()])
    }

    /// Copies the items of the thread to shared memory.
    pub(super) fn load(&self, b: &mut KernelBuilder, scan: &Scan<'_>, place: &TilePlace<'_>) {
        let from = |i: Var, j: i32| place.at(scan.input, i + j);
        b.comment("The loads of all items are in flight together.");
        b.unrolled("item", scan.items, |b, item| {
            let i = place.item(b, scan, item);
            let each = |b: &mut KernelBuilder| {
                for j in 0..Self::vector(scan) {
                    b.if_((i + j).lt(place.left), |b| {
                        b.store(self.element(item, place, j), from(i, j).load());
                    });
                }
            };
            if !scan.is_wide {
                return each(b);
            }
            let lanes = usize::from(scan.input.elem.vector_lanes());
            b.if_else(
                (i + Self::vector(scan)).le(place.left),
                |b| {
                    for j in (0..Self::vector(scan)).step_by(lanes) {
                        let to = self.element(item, place, j).vector();
                        b.store(to, from(i, j).vector().load());
                    }
                },
                each,
            );
        });
    }

    /// Registers with the running folds of an item's elements. Missing elements are the identity.
    fn folds(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        [item, i]: [Var; 2],
        place: &TilePlace<'_>,
    ) -> BufferId {
        let meaning = "running sums of the item";
        let folds = b.registers("e", scan.held, [scan.vector.into()], meaning);
        let acc = scan.plan.spec().acc_elem();
        let value = |element: Expr| computed(element).cast(acc).bitcast(scan.held);
        let each = |b: &mut KernelBuilder| {
            for j in 0..Self::vector(scan) {
                let element = value(self.element(item, place, j).load());
                let element = (i + j).lt(place.left).select(element, scan.identity());
                b.store(at(folds, j), element);
            }
        };
        if scan.is_wide {
            let lanes = i32::from(scan.input.elem.vector_lanes());
            b.if_else(
                (i + Self::vector(scan)).le(place.left),
                |b| {
                    for j in (0..Self::vector(scan)).step_by(lanes as usize) {
                        let name = if j == 0 { "v".to_owned() } else { format!("v{j}") };
                        let loaded = b.let_(&name, self.element(item, place, j).vector().load());
                        for lane in 0..lanes {
                            let element = value(Expr::from(loaded).lane(lane as u8));
                            b.store(at(folds, j + lane), element);
                        }
                    }
                },
                each,
            );
        } else {
            each(b);
        }
        for j in 1..Self::vector(scan) {
            let sum = scan.folded(at(folds, j - 1).load(), at(folds, j).load());
            b.store(at(folds, j), sum);
        }
        folds
    }

    /// Scans the items of each warp, and stores their sums.
    pub(super) fn scan(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &TilePlace<'_>,
        sums: &BlockSums,
    ) {
        let lane: Expr = match scan.plan.block() {
            32 => place.tid.clone(),
            _ => b.let_("lane", place.tid.clone() % WARP).into(),
        };
        b.comment("Scan the elements of each item, then the items of a warp.");
        b.unrolled("item", scan.items, |b, item| {
            let i = place.item(b, scan, item);
            let folds = self.folds(b, scan, [item, i], place);
            let sum = b.mut_("sum", at(folds, Self::vector(scan) - 1).load());
            scan.scan_lanes(b, sum, &lane, WARP);
            sums.store(b, scan, place.tid, [item, sum]);
            let before = scan.previous(b, sum, &lane);
            b.store(at(self.before, item), before);
        });
    }

    /// Stores the results. `before` is the fold of everything before an item of the warp.
    pub(super) fn store(
        &self,
        b: &mut KernelBuilder,
        scan: &Scan<'_>,
        place: &TilePlace<'_>,
        before: impl Fn(Var) -> Expr,
    ) {
        b.unrolled("item", scan.items, |b, item| {
            let before = scan.folded(before(item), at(self.before, item).load());
            let before = b.let_("before_thread", before);
            let i = place.item(b, scan, item);
            let folds = self.folds(b, scan, [item, i], place);
            let result = |j: i32| stored_result(scan, before, |nth| at(folds, nth), j);
            let to = |j: i32| place.at(scan.output, i + j);
            let each = |b: &mut KernelBuilder| {
                for j in 0..Self::vector(scan) {
                    b.if_((i + j).lt(place.left), |b| b.store(to(j), result(j)));
                }
            };
            if !scan.is_wide {
                return each(b);
            }
            b.if_else(
                (i + Self::vector(scan)).le(place.left),
                |b| {
                    let lanes = i32::from(scan.output.elem.vector_lanes());
                    for j in (0..Self::vector(scan)).step_by(lanes as usize) {
                        let values = (j..j + lanes).map(result).collect();
                        b.store(to(j).vector(), Expr::Pack(values));
                    }
                },
                each,
            );
        });
    }
}
