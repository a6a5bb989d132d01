//! Tiles of A and B in shared memory.

use super::schedule::BlockProduct;
use crate::ir::{Access, BufferId, BufferLayout, Const, Expr, KernelBuilder, Var};
use crate::plan::{Axis, OperandPlan, Pipeline, TiledPlan};

/// Returns an index along the operand's free axis and an index along K in the order row, column.
pub(crate) fn by_row<T>(plan: &OperandPlan, free: T, k: T) -> [T; 2] {
    if plan.free() == Axis::M { [free, k] } else { [k, free] }
}

/// Shared tile of one operand. It has the operand's logical dimensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedTile {
    buffer: BufferId,
    /// True if the elements of a row are consecutive in K, as in A.
    rows_along_k: bool,
    /// True if there are several buffers. An additional dimension then selects one.
    several: bool,
    /// True if there is a tile for each split of a value. An additional dimension then selects one.
    is_split: bool,
    /// Index of the thread's GEMM, if the block computes several. The first dimension then selects
    /// the GEMM.
    product: Option<Var>,
}

impl SharedTile {
    /// Element of the tile in buffer `slot`, at index `free` along the axis shared with C, and at
    /// `k`.
    pub fn at(&self, slot: &Expr, at: [Expr; 2]) -> Access {
        self.split_at(slot, &0.into(), at)
    }

    /// Element of the tile of a split.
    pub fn split_at(&self, slot: &Expr, split: &Expr, [free, k]: [Expr; 2]) -> Access {
        let split = self.is_split.then(|| split.clone());
        let slot = self.several.then(|| slot.clone());
        let at = if self.rows_along_k { [free, k] } else { [k, free] };
        let product = self.product.map(Expr::from);
        Access::new(self.buffer, product.into_iter().chain(slot).chain(split).chain(at))
    }
}

/// Declares the constant for the number of pipeline stages.
pub(crate) fn stages(b: &mut KernelBuilder, stages: u32) -> Const {
    b.constant("STAGES", stages as i32, "pipeline stages: K tiles in use or in flight")
}

/// Declares the shared tiles of A and of B.
pub(crate) fn shared_tiles(
    b: &mut KernelBuilder,
    t: &TiledPlan,
    [bm, bn, bk]: [Const; 3],
    part: Option<BlockProduct>,
    splits: Option<Const>,
) -> (SharedTile, SharedTile) {
    let slots = match t.buffers() {
        1 => None,
        2 if t.pipeline() == Pipeline::DoubleBuffer => {
            Some(b.constant("BUFFERS", 2, "double buffer: one K tile is read, one is filled"))
        }
        n => Some(stages(b, n)),
    };
    let pads = [t.a(), t.b()].map(|plan| match plan.pad() {
        0 => Expr::I32(0),
        pad => {
            let meaning = format!("padding per row of {}s, against bank conflicts", plan.letter());
            b.constant(&format!("PAD_{}", plan.letter()), pad as i32, meaning).into()
        }
    });
    let several = slots.is_some();
    let slot = if t.pipeline() == Pipeline::DoubleBuffer { "buffer" } else { "stage" };
    let mut tile = |plan: OperandPlan, free: Const, pad: Expr| {
        let [rows, cols] = by_row(&plan, free, bk);
        let [row_axis, col_axis] = by_row(&plan, plan.free(), Axis::K);
        let rows_along_k = col_axis == Axis::K;
        // Dimensions from outermost to innermost: GEMMs of the block, buffers, splits, then shared
        // rows.
        let outer = part.map(|part| part.products).into_iter().chain(slots).chain(splits);
        let outer: Vec<Expr> = outer.map(Expr::from).collect();
        let first = outer.len();
        let inner = if plan.shared() == row_axis { [first + 1, first] } else { [first, first + 1] };
        let order = (0..first).chain(inner).collect();
        // The comment mentions the layout of the tile only if it differs from the layout in global
        // memory.
        let lies = match (plan.shared() == plan.contiguous(), plan.swizzle()) {
            (true, None) => "",
            (true, Some(_)) => ", XOR-swizzled against bank conflicts",
            (false, _) => ", transposed: one row per k",
        };
        let dims = outer.into_iter().chain([rows.into(), cols.into()]);
        let name = format!("{}s", plan.letter());
        let splits_of = if splits.is_some() { "splits of " } else { "" };
        let in_parts = plan.free() == Axis::N && t.parts_of_b() > 1;
        let tile = if in_parts { "part of a tile" } else { "tile" };
        let meaning = match (part, &slots) {
            (None, None) => format!("{splits_of}{tile} of {}{lies}", plan.letter()),
            (Some(_), None) => format!("{splits_of}one {tile} of {} per GEMM{lies}", plan.letter()),
            (None, Some(_)) => {
                format!("{splits_of}one {tile} of {} per {slot}{lies}", plan.letter())
            }
            (Some(_), Some(_)) => {
                format!("{splits_of}one {tile} of {} per GEMM and {slot}{lies}", plan.letter())
            }
        };
        let layout = BufferLayout::Array { order, pad, swizzle: plan.swizzle() };
        let buffer = b.shared(&name, plan.elem(), dims, layout, meaning);
        let (is_split, product) = (splits.is_some(), part.map(|part| part.product));
        SharedTile { buffer, rows_along_k, several, is_split, product }
    };
    let [pad_a, pad_b] = pads;
    (tile(t.a(), bm, pad_a), tile(t.b(), bn, pad_b))
}
