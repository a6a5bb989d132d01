//! The copies that bring a tile of A or B from global to shared memory. A [`TileCopy`] knows which
//! elements a thread copies; how they travel is the pipeline's choice: `load` goes straight to
//! shared memory or through registers, `stream` by asynchronous copies.

use crate::ir::{Const, Expr, For, KernelBuilder, Unroll, Var};
use crate::plan::{Axis, GROUP, OperandPlan, Walk};

/// A thread's share in copying one operand's tile.
#[derive(Clone, Debug)]
pub(super) struct TileCopy {
    plan: OperandPlan,
    /// Accesses of a thread.
    pub count: Const,
    pub places: Places,
    /// Its only access, where a thread makes just one: the places are named once and for all.
    pub only: Option<Place>,
}

/// Where the accesses of a thread lie: the plan's [`Walk`] in the names of the text. A line of the
/// tile is a row in memory.
#[derive(Clone, Debug)]
pub(super) enum Places {
    Lines { row: Var, col: Var, step: Const },
    Groups { row: Var, col: Var, step: Const, passes: Const },
    Linear { tid: Var, threads: Const, per_row: Expr, total: Const, exact: bool },
}

/// One access of a thread: its number and its place in the tile.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub i: Expr,
    /// Its first element, along the axis that the operand shares with C.
    pub free: Expr,
    /// And along K.
    pub k: Expr,
    contiguous: Axis,
    /// Whether the access exists, where that is not certain.
    exists: Option<Expr>,
}

impl Place {
    /// Where element `lane` of the access lies: along the free axis, and along K.
    pub fn lane(&self, lane: i32) -> (Expr, Expr) {
        match self.contiguous {
            Axis::K => (self.free.clone(), self.k.clone() + lane),
            Axis::M | Axis::N => (self.free.clone() + lane, self.k.clone()),
        }
    }
}

/// Which of its accesses a thread makes now.
pub(super) enum Share {
    /// All.
    All,
    /// Part `k` of `parts`, for copies that are spread over the steps of a tile.
    Part { k: Var, parts: Const },
}

/// A name of the text that belongs to one operand, such as `a_row`.
pub(super) fn name_of(plan: &OperandPlan, what: &str) -> String {
    format!("{}_{what}", plan.letter().to_ascii_lowercase())
}

/// The threads of a block, and the constants that name the tile's extents.
#[derive(Clone, Copy)]
pub(super) struct Extents {
    pub tid: Var,
    pub threads: Const,
    pub free: Const,
    pub depth: Const,
}

impl TileCopy {
    /// Declares the constants and the thread's starting places.
    /// `other` is the plan of the other operand.
    pub fn declare(
        k: &mut KernelBuilder,
        plan: OperandPlan,
        other: OperandPlan,
        of: Extents,
    ) -> Self {
        let (count, places) = Declare { plan: &plan, other: &other, of }.places(k);
        let mut copy = Self { plan, count, places, only: None };
        if plan.accesses() == 1 {
            copy.only = Some(copy.place(k, 0.into()));
        }
        copy
    }
}

struct Declare<'p> {
    plan: &'p OperandPlan,
    other: &'p OperandPlan,
    of: Extents,
}

impl Declare<'_> {
    fn constant(
        &self,
        k: &mut KernelBuilder,
        suffix: &str,
        value: impl Into<Expr>,
        meaning: impl Into<String>,
    ) -> Const {
        k.constant(&format!("{}_{suffix}", self.plan.letter()), value, meaning)
    }

    /// The number of accesses, and where they lie.
    fn places(&self, k: &mut KernelBuilder) -> (Const, Places) {
        let (plan, letter) = (self.plan, self.plan.letter());
        let Extents { tid, threads, free, depth } = self.of;
        let (rows, cols) = if plan.contiguous() == Axis::K { (free, depth) } else { (depth, free) };
        let unit = if plan.width() == 4 { "vectors" } else { "elements" };
        let units = format!("{unit} of a tile of {letter}");
        let per_thread = format!("{units} per thread");
        let (row, col) = (name_of(plan, "row"), name_of(plan, "col"));
        let width = plan.width() as i32;
        let per_row = cols / width;
        match plan.walk() {
            Walk::Groups { .. } => {
                let group = GROUP as i32;
                let meaning = format!("rows of {letter} copied at once");
                let step = self.constant(k, "STEP", threads / group, meaning);
                let meaning = format!("steps down a tile of {letter}");
                let passes = self.constant(k, "PASSES", rows / step, meaning);
                let count = self.constant(k, "COPIES", passes * (cols / group), per_thread);
                k.comment(format!(
                    "Eight threads copy eight adjacent {} of a row of {letter}: a 32-byte sector.",
                    plan.contiguous().to_string().to_ascii_lowercase(),
                ));
                let row = k.let_(&row, tid / group);
                let col = k.let_(&col, tid % group);
                (count, Places::Groups { row, col, step, passes })
            }
            Walk::Lines { .. } => {
                let meaning = format!("rows of a tile of {letter} that the block copies at once");
                let step = self.constant(k, "STEP", threads / per_row.clone(), meaning);
                let count = self.constant(k, "COPIES", rows / step, per_thread);
                // Said of both at the first one, else of each that is copied so.
                let of = match (self.other.walk(), plan.free()) {
                    (Walk::Lines { .. }, Axis::M) => Some("a tile".to_owned()),
                    (Walk::Lines { .. }, _) => None,
                    _ => Some(format!("a tile of {letter}")),
                };
                if let Some(of) = of {
                    k.comment(format!("Copies: consecutive threads along the rows of {of}."));
                }
                let row = k.let_(&row, tid / per_row.clone());
                let col = k.let_(&col, tid % per_row * width);
                (count, Places::Lines { row, col, step })
            }
            Walk::Linear { exact, .. } => {
                let total = self.constant(k, "TOTAL", rows * per_row.clone(), units);
                let count = if exact { total / threads } else { (total + threads - 1) / threads };
                let count = self.constant(k, "COPIES", count, per_thread);
                (count, Places::Linear { tid, threads, per_row, total, exact })
            }
        }
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
        let (from, to, unroll) = match (share, &self.only) {
            (Share::All, Some(place)) => return at(k, place.clone()),
            (Share::All, None) => {
                (0.into(), self.count.into(), self.plan.unroll().map_or(Unroll::Full, Unroll::By))
            }
            (Share::Part { k: part, parts }, _) => {
                (self.count * *part / *parts, self.count * (*part + 1) / *parts, Unroll::Full)
            }
        };
        k.loop_("i", For::below(from, to).unroll(unroll), |k, i| {
            let place = self.place(k, i.into());
            at(k, place);
        });
    }

    /// Names the place of access `i`.
    fn place(&self, k: &mut KernelBuilder, i: Expr) -> Place {
        // An only access is named beside that of the other operand, so its names tell them apart.
        let only = i == Expr::I32(0);
        let name = |short: &str, long: &str| match only {
            true => name_of(&self.plan, long),
            false => short.to_owned(),
        };
        let (r, c) = (name("r", "row"), name("c", "col"));
        let mut exists = None;
        let (row, col): (Expr, Expr) = match &self.places {
            Places::Lines { row, col, .. } | Places::Groups { row, col, .. } if only => {
                ((*row).into(), (*col).into())
            }
            Places::Lines { row, col, step } => {
                (k.let_(&r, *row + i.clone() * *step).into(), (*col).into())
            }
            Places::Groups { row, col, step, passes } => {
                let row = k.let_(&r, *row + i.clone() % *passes * *step).into();
                (row, k.let_(&c, *col + i.clone() / *passes * GROUP as i32).into())
            }
            Places::Linear { tid, threads, per_row, total, exact } => {
                let index = k.let_(&name("index", "index"), *tid + i.clone() * *threads);
                exists = (!exact).then(|| Expr::from(index).lt(*total));
                let row = k.let_(&r, index / per_row.clone()).into();
                (row, k.let_(&c, index % per_row.clone() * self.plan.width() as i32).into())
            }
        };
        let contiguous = self.plan.contiguous();
        let (free, k) = if contiguous == Axis::K { (row, col) } else { (col, row) };
        Place { i, free, k, contiguous, exists }
    }
}
