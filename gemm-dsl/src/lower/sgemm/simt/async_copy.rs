//! Asynchronous copies of one operand's tiles, in the order of K. The thread keeps pointers to what
//! it copies next and moves them a tile ahead at a time, so that the main loop computes no addresses.
//!
//! Where the first tile is ragged, it is rotated along K: its terms go to its end, so that the zeros
//! which fill it come before them. Where the last one is, what cannot be filled with +0 is not copied
//! but stored (see `edge`).
//!
//! Rows and columns of C that do not exist are replaced by some that do: what they contribute to is
//! never stored, and the main loop needs no guard for them.

use crate::ir::{
    Access, BufferId, Const, Expr, Guard, KernelBuilder, PointerRef, Scalar, Stmt, Var,
};
use crate::lower::sgemm::shared::copy::{Place, Places, Share, TileCopy, name_of};
use crate::lower::sgemm::shared::edge::{clamped, wrapped, zeros};
use crate::lower::sgemm::shared::tile::Factor;
use crate::plan::{Axis, Fill, GROUP, Pointers};

/// The pointers of one operand.
pub(crate) struct Stream<'t> {
    factor: &'t Factor,
    pointers: BufferId,
    held: Held,
}

/// Which pointers there are: what [`Pointers`] says in the names of the text.
enum Held {
    /// One, at the first line; the others lie `step` lines of the tile apart.
    One { line: Var, along: Var, step: Const },
    /// One for each of `passes`, `step` lines apart; the groups of a line lie next to one another.
    PerPass { line: Var, along: Var, step: Const, passes: Const },
    /// One for each of `count` accesses.
    PerAccess { count: Const },
}

impl Held {
    fn of(copy: &TileCopy, pointers: Pointers) -> Self {
        match (pointers, &copy.places) {
            (Pointers::One, &Places::Lines { line, along, step }) => {
                Self::One { line, along, step }
            }
            (Pointers::PerPass, &Places::Groups { line, along, step, passes }) => {
                Self::PerPass { line, along, step, passes }
            }
            (Pointers::PerAccess, _) => Self::PerAccess { count: copy.count },
            (other, _) => unreachable!("planned: asynchronous copies by {other:?}"),
        }
    }

    /// How many there are; one if absent.
    fn count(&self) -> Option<Const> {
        match self {
            Self::One { .. } => None,
            Self::PerPass { passes: count, .. } | Self::PerAccess { count } => Some(*count),
        }
    }

    /// Which pointer access `i` goes through, if there are several, and how far behind it its element
    /// `lane` lies; `stride` elements from a line to the next.
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

/// Under which condition a copy is made.
#[derive(Clone, Copy)]
pub(crate) enum When<'e> {
    Always,
    /// Where the expression holds; else nothing happens.
    If(&'e Expr),
    /// Where the k in the tile lies below the expression; else the plan's fill is written.
    Below(&'e Expr),
    /// Where the k in the tile lies below `terms`; else zeros are written. The tile, `bk` wide, is
    /// rotated: its terms go to its end.
    AtEnd {
        terms: &'e Expr,
        bk: Const,
    },
}

impl<'t> Stream<'t> {
    /// Declares the pointers, at the first tile.
    pub fn declare(b: &mut KernelBuilder, factor: &'t Factor) -> Self {
        let (plan, copy) = (&factor.plan, &factor.copy);
        let held = Held::of(copy, plan.pointers());
        let what = format!("what this thread copies next of {}", plan.letter());
        let name = name_of(plan, "src");
        let pointers = b.pointers(&name, factor.matrix.buffer, held.count().map(Expr::from), what);
        let stream = Self { factor, pointers, held };
        let point = |b: &mut KernelBuilder, i: Expr, free: Expr, at: Expr| {
            let free = match plan.contiguous() {
                Axis::K => clamped(factor, free),
                Axis::M | Axis::N => wrapped(factor, free),
            };
            let at = factor.at(free, at);
            b.push(Stmt::Point { pointer: stream.pointer(&i), at });
        };
        let place = |line: Expr, along: Expr| match plan.contiguous() {
            Axis::K => (line, along),
            Axis::M | Axis::N => (along, line),
        };
        match stream.held {
            Held::One { line, along, .. } => {
                let (free, at) = place(line.into(), along.into());
                point(b, 0.into(), free, at);
            }
            Held::PerPass { line, along, step, passes } => b.unrolled("i", passes, |b, i| {
                let (free, at) = place(line + i * step, along.into());
                point(b, i.into(), free, at);
            }),
            Held::PerAccess { .. } => {
                copy.each(b, &Share::All, |b, place| point(b, place.i, place.free, place.k));
            }
        }
        stream
    }

    /// Starts the copies of a share of the tile that the pointers stand at, to buffer `slot`.
    pub fn start(&self, b: &mut KernelBuilder, share: &Share, slot: &Expr, when: When<'_>) {
        let plan = &self.factor.plan;
        // A pitched row may end inside a vector: its elements are guarded one by one.
        let split = plan.straddles() && matches!(when, When::Below(_));
        let width = if split { 1 } else { plan.width() };
        self.factor.copy.each(b, share, |b, place| {
            for lane in (0..plan.width() as i32).step_by(width as usize) {
                self.copy(b, &place, lane, width, slot, when);
            }
        });
    }

    /// Starts the copy of `width` elements from `lane` of an access on.
    fn copy(
        &self,
        b: &mut KernelBuilder,
        place: &Place,
        lane: i32,
        width: u32,
        slot: &Expr,
        when: When<'_>,
    ) {
        let (free, index) = place.lane(lane);
        let to = match when {
            When::AtEnd { terms, bk } => (index.clone() + bk - terms.clone()) % bk,
            When::Always | When::If(_) | When::Below(_) => index.clone(),
        };
        let wide = |a: Access| if width == 4 { a.vector() } else { a };
        let target = wide(self.factor.shared.at(slot, (free, to)));
        let source = wide(self.source(place, lane));
        let (cond, or_zero) = match when {
            When::Always => return b.push(Stmt::CopyAsync { target, source, guard: None }),
            When::If(cond) => (cond.clone(), false),
            When::Below(terms) | When::AtEnd { terms, .. } => (index.lt(terms.clone()), true),
        };
        if or_zero && self.factor.plan.fill() == Fill::MinusZero {
            let (filled, zeros) = (target.clone(), zeros(&self.factor.plan, width));
            let copy = Stmt::CopyAsync { target, source, guard: None };
            return b.if_else(cond, |b| b.push(copy), |b| b.store(filled, zeros));
        }
        b.push(Stmt::CopyAsync { target, source, guard: Some(Guard { cond, or_zero }) });
    }

    /// Moves the pointers by `width` terms of the sums.
    pub fn advance(&self, b: &mut KernelBuilder, width: &Expr) {
        let by = match self.factor.plan.contiguous() {
            Axis::K => width.clone(),
            Axis::M | Axis::N => width.clone().wide() * self.factor.matrix.stride,
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

    /// What access `place` copies, from element `lane` of it on.
    fn source(&self, place: &Place, lane: i32) -> Access {
        let stride = self.factor.matrix.stride;
        let (pointer, offset) = self.held.source(place.i.clone(), stride, lane);
        Access::new(self.pointers, pointer.into_iter().chain([offset]))
    }
}
