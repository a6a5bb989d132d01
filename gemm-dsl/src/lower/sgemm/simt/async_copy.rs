//! Asynchronous copies of one operand's tiles in ascending K. A thread keeps pointers to the
//! elements that it copies next, and advances them by one tile. The main loop then computes no
//! addresses.
//!
//! A line is a row or column of the tile along the contiguous axis of global memory, and `along` is
//! a position on this axis. `free` is the index of a row of A or a column of B. A split is one of
//! the bf16, f16 or tf32 terms of each f32 value, stored as a matrix of its own.
//!
//! A ragged first tile is rotated along K: its valid elements are at its end, after the fill with
//! zeros. In a ragged last tile, elements that cannot be filled with +0 are stored instead of
//! copied (see `edge`).
//!
//! Rows and columns beyond C are replaced by existing ones, whose results are not stored. The main
//! loop therefore needs no guard.

use crate::ir::{
    Access, BufferId, Const, Expr, Guard, KernelBuilder, PointerRef, Scalar, Stmt, Var,
};
use crate::lower::sgemm::common::copy::{CopyPlace, CopyPlaces, CopyShare, TileCopy, name_of};
use crate::lower::sgemm::common::edge::{clamped, wrapped, zeros};
use crate::lower::sgemm::common::tile::StagedFactor;
use crate::plan::{Axis, Fill, GROUP, Pointers};

/// Asynchronous copies of one operand, with their pointers.
pub(crate) struct AsyncCopies<'t> {
    factor: &'t StagedFactor,
    pointers: BufferId,
    held: CopyPointers,
    /// Distance between the splits of the matrix, if there are several.
    apart: Option<Var>,
}

/// Pointers of a thread: the plan's [`Pointers`] with variables of the kernel.
enum CopyPointers {
    /// One pointer, to the first line. The distance from one line to the next is `step` lines.
    One { line: Var, along: Var, step: Const },
    /// One pointer for each of `passes`, which are `step` lines apart. The accesses of a pass are
    /// [`GROUP`] elements apart on one line: eight threads copy the elements in between.
    PerPass { line: Var, along: Var, step: Const, passes: Const },
    /// One pointer for each of `count` accesses.
    PerAccess { count: Const },
}

impl CopyPointers {
    fn from_plan(copy: &TileCopy, pointers: Pointers) -> Self {
        match (pointers, &copy.places) {
            (Pointers::One, &CopyPlaces::Lines { line, along, step }) => {
                Self::One { line, along, step }
            }
            (Pointers::PerPass, &CopyPlaces::Groups { line, along, step, passes }) => {
                Self::PerPass { line, along, step, passes }
            }
            (Pointers::PerAccess, _) => Self::PerAccess { count: copy.count },
            (other, _) => {
                unreachable!("OperandPlan::pointers: {other:?} does not fit the copy's places")
            }
        }
    }

    /// Number of pointers; `None` if there is only one.
    fn count(&self) -> Option<Const> {
        match self {
            Self::One { .. } => None,
            Self::PerPass { passes: count, .. } | Self::PerAccess { count } => Some(*count),
        }
    }

    /// Pointer of access `i`, if there are several pointers, and the offset of element `lane` from
    /// the pointer. `stride` is the distance between lines.
    fn source(&self, i: Expr, stride: Scalar, lane: i32) -> (Option<Expr>, Expr) {
        match *self {
            Self::One { step, .. } => (None, (i * step).wide() * stride + lane),
            Self::PerPass { passes, .. } => {
                (Some(i.clone() % passes), i / passes * GROUP as i32 + lane)
            }
            Self::PerAccess { .. } => (Some(i), lane.into()),
        }
    }
}

/// Destination of a copy: a buffer of the ring, and a split.
#[derive(Clone, Copy)]
struct TileOfSplit<'e> {
    slot: &'e Expr,
    split: &'e Expr,
}

/// Condition of a copy, and the value that is stored if it is false.
#[derive(Clone, Copy)]
pub(crate) enum CopyCondition<'e> {
    Always,
    /// Copies only if the expression is true.
    If(&'e Expr),
    /// Copies if k, counted in the tile, is below the expression; otherwise stores the plan's fill.
    Below(&'e Expr),
    /// Copies if k, counted in the tile, is below `terms`; otherwise fills with zeros. The tile of
    /// `bk` elements along K is rotated, so that the valid elements are at its end.
    AtEnd {
        terms: &'e Expr,
        bk: Const,
    },
}

impl<'t> AsyncCopies<'t> {
    /// Declares the pointers and sets them to the first tile.
    pub fn declare(b: &mut KernelBuilder, factor: &'t StagedFactor) -> Self {
        let (plan, copy) = (&factor.plan, &factor.copy);
        let held = CopyPointers::from_plan(copy, plan.pointers());
        let what = format!("source of this thread's next copy of {}", plan.letter());
        let name = name_of(plan, "src");
        let pointers =
            b.pointers(&name, factor.source_buffer(), held.count().map(Expr::from), what);
        let apart = factor.apart().map(|apart| {
            b.comment(format!("Distance between the splits of {}.", plan.letter()));
            b.let_(&name_of(plan, "apart"), apart)
        });
        let copies = Self { factor, pointers, held, apart };
        // Sets pointer `i` to the element at K `at` of row or column `free`.
        let point = |b: &mut KernelBuilder, i: Expr, free: Expr, at: Expr| {
            let free = match plan.contiguous() {
                Axis::K => clamped(factor, free),
                Axis::M | Axis::N => wrapped(factor, free),
            };
            let at = factor.source(&0.into(), free, at);
            b.push(Stmt::Point { pointer: copies.pointer(&i), at });
        };
        // Position (row or column, K) of an element.
        let place = |line: Expr, along: Expr| match plan.contiguous() {
            Axis::K => (line, along),
            Axis::M | Axis::N => (along, line),
        };
        match copies.held {
            CopyPointers::One { line, along, .. } => {
                let (free, at) = place(line.into(), along.into());
                point(b, 0.into(), free, at);
            }
            CopyPointers::PerPass { line, along, step, passes } => {
                b.unrolled("i", passes, |b, i| {
                    let (free, at) = place(line + i * step, along.into());
                    point(b, i.into(), free, at);
                })
            }
            CopyPointers::PerAccess { .. } => {
                copy.each(b, &CopyShare::All, |b, place| point(b, place.i, place.free, place.k));
            }
        }
        copies
    }

    /// Starts the selected copies of the tile at the pointers, to buffer `slot`.
    pub fn start(
        &self,
        b: &mut KernelBuilder,
        share: &CopyShare,
        slot: &Expr,
        when: CopyCondition<'_>,
    ) {
        let plan = &self.factor.plan;
        // With a row stride, a row may end inside a vector, so each element has its own guard.
        let split = plan.straddles() && matches!(when, CopyCondition::Below(_));
        let width = if split { 1 } else { plan.width() };
        self.factor.each_split(b, |b, split| {
            self.factor.copy.each(b, share, |b, place| {
                for lane in (0..plan.width() as i32).step_by(width as usize) {
                    self.copy(b, &place, lane, width, TileOfSplit { slot, split: &split }, when);
                }
            });
        });
    }

    /// Starts the copy of `width` elements of an access, starting at element `lane`.
    fn copy(
        &self,
        b: &mut KernelBuilder,
        place: &CopyPlace,
        lane: i32,
        width: u32,
        to: TileOfSplit<'_>,
        when: CopyCondition<'_>,
    ) {
        let TileOfSplit { slot, split } = to;
        let [free, index] = place.lane(lane);
        let to = match when {
            CopyCondition::AtEnd { terms, bk } => (index.clone() + bk - terms.clone()) % bk,
            CopyCondition::Always | CopyCondition::If(_) | CopyCondition::Below(_) => index.clone(),
        };
        let wide = |a: Access| if width > 1 { a.vector() } else { a };
        let target = wide(self.factor.shared.split_at(slot, split, [free, to]));
        let source = wide(self.source(place, split, lane));
        let (cond, or_zero) = match when {
            CopyCondition::Always => {
                return b.push(Stmt::CopyAsync { target, source, guard: None });
            }
            CopyCondition::If(cond) => (cond.clone(), false),
            CopyCondition::Below(terms) | CopyCondition::AtEnd { terms, .. } => {
                (index.lt(terms.clone()), true)
            }
        };
        if or_zero && self.factor.plan.fill() == Fill::MinusZero {
            let (filled, zeros) = (target.clone(), zeros(&self.factor.plan, width));
            let copy = Stmt::CopyAsync { target, source, guard: None };
            return b.if_else(cond, |b| b.push(copy), |b| b.store(filled, zeros));
        }
        b.push(Stmt::CopyAsync { target, source, guard: Some(Guard { cond, or_zero }) });
    }

    /// Advances the pointers by `width` along K.
    pub fn advance(&self, b: &mut KernelBuilder, width: &Expr) {
        let by = match self.factor.plan.contiguous() {
            Axis::K => width.clone(),
            Axis::M | Axis::N => width.clone().wide() * self.factor.source_stride(),
        };
        match self.held.count() {
            None => b.push(Stmt::Advance { pointer: self.pointer(&Expr::I32(0)), by }),
            Some(count) => b.unrolled("i", count, |b, i| {
                b.push(Stmt::Advance { pointer: self.pointer(&i.into()), by });
            }),
        }
    }

    fn pointer(&self, i: &Expr) -> PointerRef {
        let index = self.held.count().map(|_| i.clone()).into_iter().collect();
        PointerRef { buffer: self.pointers, index }
    }

    /// Source of access `place` in a split, starting at its element `lane`.
    fn source(&self, place: &CopyPlace, split: &Expr, lane: i32) -> Access {
        let stride = self.factor.source_stride();
        let (pointer, offset) = self.held.source(place.i.clone(), stride, lane);
        let offset = match self.apart {
            None => offset,
            Some(apart) => split.clone().wide() * apart + offset,
        };
        Access::new(self.pointers, pointer.into_iter().chain([offset]))
    }
}
