//! The copies that bring a tile of A or B from global to shared memory. A [`TileCopy`] knows which
//! elements a thread copies; how they travel is the pipeline's choice: `load` goes straight to
//! shared memory or through registers, `stream` by asynchronous copies.

use crate::ir::{Const, Expr, KernelBuilder, Step, Unroll, Var};
use crate::plan::{Pipeline, TiledPlan};

/// Adjacent k of a row that eight lanes bring in when an asynchronous copy transposes A: with
/// shared rows of BM + 4 elements, the 8 x 4 elements of a warp then lie on 32 distinct banks.
pub(super) const GROUP: u32 = 8;

/// The most accesses that are unrolled into one another.
const UNROLLED: u32 = 16;

/// The copies of both operands.
#[derive(Clone, Debug)]
pub(super) struct Copies {
    pub a: TileCopy,
    pub b: TileCopy,
}

/// The operand that a tile belongs to, which decides what bounds its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Rows along M, columns along K.
    A,
    /// Rows along K, columns along N.
    B,
}

impl Side {
    /// The name of the operand.
    fn letter(self) -> &'static str {
        match self {
            Side::A => "A",
            Side::B => "B",
        }
    }
}

/// A thread's share in copying one operand's tile.
#[derive(Clone, Debug)]
pub(super) struct TileCopy {
    pub side: Side,
    /// Elements of one access to global memory: 4 or 1.
    pub width: u32,
    /// Whether one access to shared memory stores as much.
    pub stores_vector: bool,
    /// Accesses of a thread.
    pub count: Const,
    number: u32,
    pub walk: Walk,
    /// Its only access, where a thread makes just one: the places are named once and for all.
    pub only: Option<Place>,
}

/// How the accesses of a thread walk over the tile. Consecutive threads always lie along a row.
#[derive(Clone, Debug)]
pub(super) enum Walk {
    /// The block covers `step` whole rows at a time.
    Rows { row: Var, col: Var, step: Const },
    /// Eight threads cover a group of columns; the block covers `step` rows of it at a time, all
    /// `passes` of one group before those of the next.
    Groups { row: Var, col: Var, step: Const, passes: Const },
    /// Accesses are numbered along the rows; `total` does not divide among the threads evenly.
    Linear { tid: Var, threads: Const, per_row: Expr, total: Const, exact: bool },
}

/// One access of a thread: its number and its place in the tile.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub i: Expr,
    pub row: Expr,
    pub col: Expr,
    /// Whether the access exists, where that is not certain.
    exists: Option<Expr>,
}

/// Which of its accesses a thread makes now.
pub(super) enum Share {
    /// All.
    All,
    /// Part `k` of `parts`, for copies that are spread over the steps of a tile.
    Part { k: Var, parts: Const },
}

impl Copies {
    /// Declares the constants and the thread's starting places.
    pub fn declare(
        k: &mut KernelBuilder,
        t: &TiledPlan,
        tid: Var,
        threads: Const,
        (bm, bn, bk): (Const, Const, Const),
    ) -> Self {
        let asynchronous = matches!(t.pipeline(), Pipeline::Async { .. });
        let mut declare = |side, rows: (Const, u32), cols: (Const, u32), width, stores_vector| {
            let d = Declare { t, tid, threads, side, rows, cols, width };
            let grouped = side == Side::A && asynchronous && t.transpose() && d.can_group();
            let (walk, count) = if grouped { d.groups(k) } else { d.rows_or_linear(k) };
            let (count, number) = count;
            let mut copy = TileCopy { side, width, stores_vector, count, number, walk, only: None };
            if number == 1 {
                copy.only = Some(copy.place(k, 0.into()));
            }
            copy
        };
        let a_vector = t.a_shared_store_vector();
        let a = declare(Side::A, (bm, t.bm()), (bk, t.bk()), t.a_width(), a_vector);
        let b_vector = t.b_shared_store_vector();
        let b = declare(Side::B, (bk, t.bk()), (bn, t.bn()), t.b_width(), b_vector);
        Self { a, b }
    }
}

struct Declare<'p> {
    t: &'p TiledPlan,
    tid: Var,
    threads: Const,
    side: Side,
    rows: (Const, u32),
    cols: (Const, u32),
    width: u32,
}

impl Declare<'_> {
    fn name(&self, suffix: &str) -> String {
        let side = self.side.letter();
        format!("{side}_{suffix}")
    }

    fn units(&self) -> String {
        let operand = self.side.letter();
        let unit = if self.width == 4 { "vectors" } else { "elements" };
        format!("{unit} of a tile of {operand}")
    }

    fn can_group(&self) -> bool {
        let threads = self.t.threads();
        self.width == 1
            && self.cols.1.is_multiple_of(GROUP)
            && threads.is_multiple_of(GROUP)
            && self.rows.1.is_multiple_of(threads / GROUP)
    }

    fn groups(&self, k: &mut KernelBuilder) -> (Walk, (Const, u32)) {
        let group = GROUP as i32;
        let step = k.constant(&self.name("STEP"), self.threads / group, "rows of A copied at once");
        let passes = k.constant(&self.name("PASSES"), self.rows.0 / step, "steps down a tile of A");
        let count = passes * (self.cols.0 / group);
        let count = k.constant(&self.name("COPIES"), count, format!("{} per thread", self.units()));
        k.comment("Eight threads copy eight adjacent k of a row of A: a 32-byte sector.");
        let row = k.let_("a_row", self.tid / group);
        let col = k.let_("a_col", self.tid % group);
        let number = self.rows.1 * self.cols.1 / self.t.threads();
        (Walk::Groups { row, col, step, passes }, (count, number))
    }

    fn rows_or_linear(&self, k: &mut KernelBuilder) -> (Walk, (Const, u32)) {
        let (threads, per_row) = (self.t.threads(), self.cols.1 / self.width);
        let total = per_row * self.rows.1;
        let per_row_text = self.cols.0 / self.width as i32;
        let number = total.div_ceil(threads);
        let meaning = format!("{} per thread", self.units());
        let whole_rows =
            threads.is_multiple_of(per_row) && self.rows.1.is_multiple_of(threads / per_row);
        if whole_rows {
            let operand = self.side.letter();
            let what = format!("rows of a tile of {operand} that the block copies at once");
            let step = k.constant(&self.name("STEP"), self.threads / per_row_text.clone(), what);
            let count = k.constant(&self.name("COPIES"), self.rows.0 / step, meaning);
            let (row, col) = match self.side {
                Side::A => ("a_row", "a_col"),
                Side::B => ("b_row", "b_col"),
            };
            if self.side == Side::A {
                k.comment("Copies: consecutive threads along the rows of a tile.");
            }
            let row = k.let_(row, self.tid / per_row_text.clone());
            let col = k.let_(col, self.tid % per_row_text * self.width as i32);
            return (Walk::Rows { row, col, step }, (count, number));
        }
        let total_name =
            k.constant(&self.name("TOTAL"), self.rows.0 * per_row_text.clone(), self.units());
        let exact = total.is_multiple_of(threads);
        let count = if exact {
            total_name / self.threads
        } else {
            (total_name + self.threads - 1) / self.threads
        };
        let count = k.constant(&self.name("COPIES"), count, meaning);
        let (tid, threads) = (self.tid, self.threads);
        let walk = Walk::Linear { tid, threads, per_row: per_row_text, total: total_name, exact };
        (walk, (count, number))
    }
}

impl TileCopy {
    /// Runs the body for each of the accesses in the share.
    pub fn each(
        &self,
        k: &mut KernelBuilder,
        share: &Share,
        body: impl FnOnce(&mut KernelBuilder, Place),
    ) {
        let at = |k: &mut KernelBuilder, place: Place| match place.exists.clone() {
            None => body(k, place),
            Some(exists) => k.if_(exists, |k| body(k, place)),
        };
        match (share, &self.only) {
            (Share::All, Some(place)) => at(k, place.clone()),
            (Share::All, None) => {
                // A long run of copies need not be in registers all at once.
                let unroll =
                    if self.number > UNROLLED { Unroll::By(UNROLLED / 4) } else { Unroll::Full };
                let test = |i: Var| Expr::from(i).lt(self.count);
                k.loop_("i", 0, test, Step::Add(1.into()), unroll, |k, i| {
                    let place = self.place(k, i.into());
                    at(k, place);
                });
            }
            (Share::Part { k: part, parts }, _) => {
                let from = self.count * *part / *parts;
                let to = self.count * (*part + 1) / *parts;
                let test = |i: Var| Expr::from(i).lt(to);
                k.loop_("i", from, test, Step::Add(1.into()), Unroll::Full, |k, i| {
                    let place = self.place(k, i.into());
                    at(k, place);
                });
            }
        }
    }

    /// Names the place of access `i`.
    fn place(&self, k: &mut KernelBuilder, i: Expr) -> Place {
        // An only access is named beside that of the other operand, so its names tell them apart.
        let only = i == Expr::I32(0);
        let (r, c, index) = match (only, self.side) {
            (false, _) => ("r", "c", "index"),
            (true, Side::A) => ("a_row", "a_col", "a_index"),
            (true, Side::B) => ("b_row", "b_col", "b_index"),
        };
        let mut exists = None;
        let (row, col): (Expr, Expr) = match &self.walk {
            Walk::Rows { row, col, .. } | Walk::Groups { row, col, .. } if only => {
                ((*row).into(), (*col).into())
            }
            Walk::Rows { row, col, step } => {
                (k.let_(r, *row + i.clone() * *step).into(), (*col).into())
            }
            Walk::Groups { row, col, step, passes } => {
                let row = k.let_(r, *row + i.clone() % *passes * *step).into();
                (row, k.let_(c, *col + i.clone() / *passes * GROUP as i32).into())
            }
            Walk::Linear { tid, threads, per_row, total, exact } => {
                let index = k.let_(index, *tid + i.clone() * *threads);
                exists = (!exact).then(|| Expr::from(index).lt(*total));
                let row = k.let_(r, index / per_row.clone()).into();
                (row, k.let_(c, index % per_row.clone() * self.width as i32).into())
            }
        };
        Place { i, row, col, exists }
    }
}
