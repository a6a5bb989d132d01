//! Places of items: the row and the column of each item of a thread.

use super::arrays::{Arrays, Parameter};
use super::{Rows, thread};
use crate::ir::{Access, BufferId, Const, Elem, Expr, KernelBuilder, Scalar, Special, Var};
use crate::plan::MapPlan;

/// Row and first column of an item.
pub(super) struct Place {
    pub(super) row: Expr,
    pub(super) col: Expr,
}

/// Items of the threads of a grid.
pub(super) struct Places {
    rows: Rows,
    n: Scalar,
    m: Scalar,
    block: Const,
    /// Number of items of a thread.
    pub(super) items: Const,
    /// Number of elements of an item.
    pub(super) vector: u32,
    /// True if some operand is an array.
    pub(super) loads: bool,
}

/// Variables that all items of a thread share.
pub(super) struct Shared {
    /// First item of the thread.
    first: Var,
    /// Number of items of a row.
    per_row: Expr,
    /// Number of items with all of their elements.
    pub(super) count: Var,
    /// Row and column of each item, if they are needed again and take a division.
    kept: Option<[BufferId; 2]>,
}

impl Places {
    pub(super) fn new(
        b: &mut KernelBuilder,
        plan: &MapPlan,
        arrays: &Arrays,
        rows: Rows,
        block: Const,
    ) -> Self {
        let (items, vector, meaning) = match rows {
            Rows::One | Rows::Vectors => (
                plan.items(),
                plan.vector(),
                format!("items per thread, each of {} elements", plan.vector()),
            ),
            Rows::Any => (plan.scalar_items(), 1, "elements per thread".to_owned()),
        };
        let items = b.constant("ITEMS", items as i32, meaning);
        let is_array = |operand: &Parameter| matches!(operand, Parameter::Array(_));
        let loads = arrays.operands.iter().any(is_array);
        Self { rows, m: arrays.m, n: arrays.n, block, items, vector, loads }
    }

    /// Number of items of a row with all of their elements.
    fn per_row(&self) -> Expr {
        Expr::from(self.n) / u64::from(self.vector)
    }

    pub(super) fn grid(&self) -> [Expr; 3] {
        let items = match self.rows {
            // The first block also computes the elements after the last whole item.
            Rows::One => Expr::from(self.n).div_ceil(u64::from(self.vector)),
            Rows::Vectors | Rows::Any => Expr::from(self.m) * self.per_row(),
        };
        let tile = Expr::from(self.block) * self.items;
        [items.div_ceil(tile.wide()), 1u64.into(), 1u64.into()]
    }

    /// Returns true if elements may be left after the last whole item.
    pub(super) fn has_rest(&self) -> bool {
        self.rows == Rows::One
    }

    /// Declares what the items of a thread share.
    pub(super) fn shared(&self, b: &mut KernelBuilder) -> Shared {
        let tile = Expr::from(self.block) * self.items;
        let first = Expr::from(Special::BlockX).wide() * tile + thread();
        let first = b.let_("first", first);
        let (per_row, count): (Expr, Var) = match self.rows {
            Rows::One => {
                let count = b.let_("items", self.per_row());
                (count.into(), count)
            }
            Rows::Vectors => {
                let per_row = b.let_("row_items", self.per_row());
                (per_row.into(), b.let_("items", self.m * Expr::from(per_row)))
            }
            Rows::Any => (self.n.into(), b.let_("items", self.m * Expr::from(self.n))),
        };
        let kept = (self.rows != Rows::One && self.loads).then(|| {
            let mut kept =
                |name, meaning| b.registers(name, Elem::U64, [self.items.into()], meaning);
            let column = match self.vector {
                1 => "column of each item",
                _ => "first column of each item",
            };
            [kept("item_row", "row of each item"), kept("item_col", column)]
        });
        Shared { first, per_row, count, kept }
    }

    /// Number of an item of the thread.
    pub(super) fn number(&self, shared: &Shared, item: Var) -> Expr {
        shared.first + item * self.block
    }

    /// Computes the place of an item from its number, and keeps it if it is needed again.
    pub(super) fn find(
        &self,
        b: &mut KernelBuilder,
        shared: &Shared,
        number: Var,
        item: Var,
    ) -> Place {
        let width = u64::from(self.vector);
        if self.rows == Rows::One {
            return Place { row: Expr::U64(0), col: b.let_("col", number * width).into() };
        }
        let row = b.let_("row", number / shared.per_row.clone());
        let col = (number - row * shared.per_row.clone()) * width;
        let col = b.let_("col", col);
        if let Some([rows, cols]) = shared.kept {
            b.store(Access::new(rows, [item.into()]), row);
            b.store(Access::new(cols, [item.into()]), col);
        }
        Place { row: row.into(), col: col.into() }
    }

    /// Returns the place of an item again, after [`find`](Self::find).
    pub(super) fn again(
        &self,
        b: &mut KernelBuilder,
        shared: &Shared,
        number: Var,
        item: Var,
    ) -> Place {
        let Some(kept) = shared.kept else { return self.find(b, shared, number, item) };
        let [row, col] = kept.map(|kept| Access::new(kept, [item.into()]).load());
        let (row, col) = (b.let_("row", row), b.let_("col", col));
        Place { row: row.into(), col: col.into() }
    }
}
