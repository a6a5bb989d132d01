//! Copies of A's and B's tiles from global to shared memory. A [`TileCopy`] assigns elements to
//! threads, and the pipeline chooses the method. `load` copies directly or through registers, and
//! `async_copy` uses asynchronous copies.

use crate::ir::{Const, Expr, For, KernelBuilder, Unroll, Var};
use crate::plan::{Axis, GROUP, OperandPlan, Walk};
use crate::target::arch::WARP;

/// A thread's share of the copy of one operand's tile.
#[derive(Clone, Debug)]
pub(crate) struct TileCopy {
    plan: OperandPlan,
    pub count: Const,
    /// Number of elements of a run, if the thread accesses them one by one.
    pub adjacent: Option<Const>,
    pub places: CopyPlaces,
    /// Position of a thread's run if it has only one. It is declared once for all tiles.
    pub only: Option<CopyPlace>,
}

/// Positions of a thread's runs: the plan's [`Walk`] with variables of the kernel. A line is a
/// row or column of the tile whose elements are adjacent in memory. A position is a line and an
/// offset in the line.
#[derive(Clone, Debug)]
pub(crate) enum CopyPlaces {
    Lines { line: Var, along: Var, step: Const },
    Groups { line: Var, along: Var, step: Const, passes: Const },
    Linear { tid: Var, threads: Const, per_line: Expr, total: Const, exact: bool },
}

/// One access of a thread: the index of its run, and its position in the tile.
#[derive(Clone, Debug)]
pub(crate) struct CopyPlace {
    pub i: Expr,
    /// Index of the element in its run, if the thread accesses the run's elements one by one.
    pub element: Option<Expr>,
    /// Index of its first element along the axis that the operand shares with C.
    pub free: Expr,
    /// Index of its first element along K.
    pub k: Expr,
    contiguous: Axis,
    /// Condition under which the run exists; `None` if it always exists.
    exists: Option<Expr>,
}

impl CopyPlace {
    /// Position of element `j` of the run, as an access of its own.
    fn in_run(self, j: Expr) -> Self {
        let (free, k) = match self.contiguous {
            Axis::K => (self.free, self.k + j.clone()),
            Axis::M | Axis::N => (self.free + j.clone(), self.k),
        };
        Self { free, k, element: Some(j), ..self }
    }

    /// Position of element `lane` of the access, as indices along the free axis and along K.
    pub fn lane(&self, lane: i32) -> [Expr; 2] {
        match self.contiguous {
            Axis::K => [self.free.clone(), self.k.clone() + lane],
            Axis::M | Axis::N => [self.free.clone() + lane, self.k.clone()],
        }
    }
}

/// Selection of a thread's runs.
pub(crate) enum CopyShare {
    /// All runs of the thread.
    All,
    /// Part `k` of `parts` equal parts, for copies that are spread over the steps of a tile.
    Part { k: Var, parts: Const },
}

/// Name of a variable that belongs to one operand, such as `a_row`.
pub(crate) fn name_of(plan: &OperandPlan, what: &str) -> String {
    format!("{}_{what}", plan.letter().to_ascii_lowercase())
}

/// Word for a line of the matrix: row or column.
fn line_of(plan: &OperandPlan) -> &'static str {
    if plan.lines_are_rows() { "row" } else { "column" }
}

/// Variable names for the index of a line and the offset in the line.
fn names(plan: &OperandPlan) -> [&'static str; 2] {
    if plan.lines_are_rows() { ["row", "col"] } else { ["col", "row"] }
}

/// Thread index in the block, and constants for the extents of the tile.
#[derive(Clone, Copy)]
pub(crate) struct CopyExtents {
    pub tid: Var,
    pub threads: Const,
    pub free: Const,
    pub depth: Const,
}

impl TileCopy {
    /// Declares the constants and the first position of the thread. `other` is the plan of the
    /// other operand.
    pub fn declare(
        b: &mut KernelBuilder,
        plan: OperandPlan,
        other: OperandPlan,
        of: CopyExtents,
    ) -> Self {
        let adjacent = (plan.accesses_of_run() > 1).then(|| {
            let meaning = "adjacent elements copied one by one";
            b.constant("ADJACENT", plan.run() as i32, meaning)
        });
        let declaration = CopyDeclaration { plan: &plan, other: &other, of, adjacent };
        let (count, places) = declaration.places(b);
        let mut copy = Self { plan, count, adjacent, places, only: None };
        if plan.runs() == 1 {
            copy.only = Some(copy.place(b, 0.into()));
        }
        copy
    }
}

struct CopyDeclaration<'p> {
    plan: &'p OperandPlan,
    other: &'p OperandPlan,
    of: CopyExtents,
    adjacent: Option<Const>,
}

/// Number of elements of a run.
fn run_length(plan: &OperandPlan, adjacent: Option<Const>) -> Expr {
    adjacent.map_or(Expr::I32(plan.run() as i32), Expr::from)
}

impl CopyDeclaration<'_> {
    fn constant(
        &self,
        b: &mut KernelBuilder,
        suffix: &str,
        value: impl Into<Expr>,
        meaning: impl Into<String>,
    ) -> Const {
        b.constant(&format!("{}_{suffix}", self.plan.letter()), value, meaning)
    }

    /// Declares the number of runs and their positions.
    fn places(&self, b: &mut KernelBuilder) -> (Const, CopyPlaces) {
        let (plan, letter) = (self.plan, self.plan.letter());
        let CopyExtents { tid, threads, free, depth } = self.of;
        let (lines, line) =
            if plan.contiguous() == Axis::K { (free, depth) } else { (depth, free) };
        let unit = match (self.adjacent, plan.width()) {
            (Some(_), _) => "runs",
            (None, 1) => "elements",
            (None, _) => "vectors",
        };
        let units = format!("{unit} of a tile of {letter}");
        let per_thread = format!("{units} per thread");
        let what = line_of(plan);
        let [line_name, along_name] = names(plan).map(|name| name_of(plan, name));
        let run = run_length(plan, self.adjacent);
        let per_line = line / run.clone();
        match plan.walk() {
            Walk::Groups { .. } => {
                let group = GROUP as i32;
                let meaning = format!("{what}s of {letter} copied at once");
                let step = self.constant(b, "STEP", threads / group, meaning);
                let meaning = format!("passes over the {what}s of a tile of {letter}");
                let passes = self.constant(b, "PASSES", lines / step, meaning);
                let count = self.constant(b, "COPIES", passes * (line / group), per_thread);
                b.comment(format!(
                    "cp.async cannot transpose, so each copy is one element. Eight threads copy \
                     eight adjacent elements of a {what} of {letter}, {} contiguous bytes{}.",
                    GROUP * plan.elem().size(),
                    banks_text(plan),
                ));
                let line = b.let_(&line_name, tid / group);
                let along = b.let_(&along_name, tid % group);
                (count, CopyPlaces::Groups { line, along, step, passes })
            }
            Walk::Lines { .. } => {
                let meaning = match plan.lines_are_rows() {
                    true => format!("rows of a tile of {letter} copied at once"),
                    false => format!("columns of a tile of {letter} copied at once"),
                };
                let step = self.constant(b, "STEP", threads / per_line.clone(), meaning);
                let count = self.constant(b, "COPIES", lines / step, per_thread);
                // If both operands are copied alike, one comment describes both. Otherwise each has
                // a comment.
                let both = matches!(self.other.walk(), Walk::Lines { .. })
                    && self.other.lines_are_rows() == plan.lines_are_rows();
                let own = format!("a tile of {letter}");
                match (both, plan.free()) {
                    (true, Axis::M) => lines_text(b, what, "a tile", &[plan, self.other]),
                    (true, _) => {}
                    (false, _) => lines_text(b, what, &own, &[plan]),
                }
                let line = b.let_(&line_name, tid / per_line.clone());
                let along = b.let_(&along_name, tid % per_line * run);
                (count, CopyPlaces::Lines { line, along, step })
            }
            Walk::Linear { exact, .. } => {
                let total = self.constant(b, "TOTAL", lines * per_line.clone(), units);
                let count = if exact { total / threads } else { (total + threads - 1) / threads };
                let count = self.constant(b, "COPIES", count, per_thread);
                (count, CopyPlaces::Linear { tid, threads, per_line, total, exact })
            }
        }
    }
}

/// Clause on the shared-memory banks of a warp's copies in groups; empty if banks may conflict.
fn banks_text(plan: &OperandPlan) -> &'static str {
    let lines_of_warp = WARP / GROUP;
    let Walk::Groups { step, .. } = plan.walk() else { return "" };
    // The shared rows of a group then start at distinct multiples of 4 banks.
    let (_, row) = plan.shared_tile();
    match plan.elem().size() == 4 && row % GROUP == 4 && step.is_multiple_of(lines_of_warp) {
        true => "; a warp writes to 32 different banks",
        false => "",
    }
}

/// Emits a comment on the coalescing of copies along the lines of tiles.
fn lines_text(b: &mut KernelBuilder, what: &str, of: &str, plans: &[&OperandPlan]) {
    if plans.iter().any(|plan| plan.accesses_of_run() > 1) {
        return b.comment(format!(
            "A thread copies ADJACENT adjacent elements of a {what} of {of}, one by one. A warp \
             accesses every ADJACENT-th element at a time, so its accesses coalesce only in part."
        ));
    }
    let all = format!("Consecutive threads copy along the {what}s of {of}");
    let reads: Vec<WarpReads> = plans.iter().map(|plan| WarpReads::new(plan)).collect();
    if reads.iter().all(WarpReads::coalesce) {
        return b.comment(format!("{all}, so accesses coalesce."));
    }
    let texts: Option<Vec<String>> =
        plans.iter().zip(&reads).map(|(plan, reads)| reads.text(plan)).collect();
    let found = texts.map(|texts| format!(" A warp reads {}.", texts.join(", and ")));
    b.comment(format!("{all}.{}", found.unwrap_or_default()));
}

/// Bytes that a warp reads together from the lines of a tile.
struct WarpReads {
    /// Number of bytes of a line.
    line: u32,
    /// Number of bytes of all lines together; `None` if a warp has threads of several GEMMs.
    all: Option<u32>,
}

impl WarpReads {
    /// Number of bytes from which on an access is coalesced: all sectors of an L2 line.
    const COALESCED: u32 = 128;

    fn new(plan: &OperandPlan) -> Self {
        let size = plan.elem().size();
        let line = if plan.contiguous() == Axis::K { plan.depth() } else { plan.extent() };
        let threads = match plan.walk() {
            Walk::Lines { step } => step * line / plan.width(),
            Walk::Groups { .. } | Walk::Linear { .. } => 0,
        };
        let all = threads.is_multiple_of(WARP).then_some(WARP * plan.width() * size);
        Self { line: line * size, all }
    }

    fn coalesce(&self) -> bool {
        self.all.is_some_and(|all| self.line.min(all) >= Self::COALESCED)
    }

    /// Phrase on the reads; `None` if the lines of a warp differ.
    fn text(&self, plan: &OperandPlan) -> Option<String> {
        let (all, letter) = (self.all?, plan.letter());
        match self.line {
            line if line.is_multiple_of(all) => Some(format!("{all} contiguous bytes of {letter}")),
            line if all.is_multiple_of(line) => {
                let lines = all / line;
                let what = line_of(plan);
                Some(format!("{line} contiguous bytes of each of {lines} {what}s of {letter}"))
            }
            _ => None,
        }
    }
}

impl TileCopy {
    /// Emits `body` for each selected access.
    pub fn each(
        &self,
        b: &mut KernelBuilder,
        share: &CopyShare,
        body: impl FnOnce(&mut KernelBuilder, CopyPlace),
    ) {
        let each = |b: &mut KernelBuilder, place: CopyPlace| match self.adjacent {
            None => body(b, place),
            Some(adjacent) => b.unrolled("j", adjacent, |b, j| body(b, place.in_run(j.into()))),
        };
        let at = |b: &mut KernelBuilder, place: CopyPlace| match place.exists.clone() {
            None => each(b, place),
            Some(exists) => b.if_(exists, |b| each(b, place)),
        };
        let (from, to, unroll) = match (share, &self.only) {
            (CopyShare::All, Some(place)) => return at(b, place.clone()),
            (CopyShare::All, None) => {
                (0.into(), self.count.into(), self.plan.unroll().map_or(Unroll::Full, Unroll::By))
            }
            (CopyShare::Part { k: part, parts }, _) => {
                (self.count * *part / *parts, self.count * (*part + 1) / *parts, Unroll::Full)
            }
        };
        b.loop_("i", For::below(from, to).unroll(unroll), |b, i| {
            let place = self.place(b, i.into());
            at(b, place);
        });
    }

    /// Declares the position of run `i`.
    fn place(&self, b: &mut KernelBuilder, i: Expr) -> CopyPlace {
        // The positions of single runs of A and B are in the same scope, so their names contain
        // the operand.
        let only = i == Expr::I32(0);
        let [line_name, along_name] = names(&self.plan).map(|name| match only {
            true => name_of(&self.plan, name),
            false => name[..1].to_owned(),
        });
        let mut exists = None;
        let (line, along): (Expr, Expr) = match &self.places {
            CopyPlaces::Lines { line, along, .. } | CopyPlaces::Groups { line, along, .. }
                if only =>
            {
                ((*line).into(), (*along).into())
            }
            CopyPlaces::Lines { line, along, step } => {
                (b.let_(&line_name, *line + i.clone() * *step).into(), (*along).into())
            }
            CopyPlaces::Groups { line, along, step, passes } => {
                let line = b.let_(&line_name, *line + i.clone() % *passes * *step).into();
                let along = b.let_(&along_name, *along + i.clone() / *passes * GROUP as i32);
                (line, along.into())
            }
            CopyPlaces::Linear { tid, threads, per_line, total, exact } => {
                let name = if only { name_of(&self.plan, "index") } else { "index".to_owned() };
                let index = b.let_(&name, *tid + i.clone() * *threads);
                exists = (!exact).then(|| Expr::from(index).lt(*total));
                let line = b.let_(&line_name, index / per_line.clone()).into();
                let along = index % per_line.clone() * run_length(&self.plan, self.adjacent);
                (line, b.let_(&along_name, along).into())
            }
        };
        let contiguous = self.plan.contiguous();
        let (free, depth) = if contiguous == Axis::K { (line, along) } else { (along, line) };
        CopyPlace { i, element: None, free, k: depth, contiguous, exists }
    }
}
