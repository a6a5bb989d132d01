//! Asynchronous copies of one operand's tiles, in the order of K. The thread keeps pointers to what
//! it copies next and moves them a tile ahead at a time, so that the main loop computes no addresses.
//!
//! Where the first tile is ragged, the pointers start before k = 0, so that the zeros which fill it
//! come before its terms. Where the last one is, what A lacks is not copied but stored (see `edge`).
//!
//! Rows and columns of C that do not exist are replaced by the last ones that do: what they
//! contribute to is never stored, and the main loop needs no guard for them.

use super::copy::{GROUP, Place, Share, Side, TileCopy, Walk};
use super::edge::clamped;
use super::tile::Tiled;
use crate::ir::{Access, BufferId, Const, Expr, Guard, KernelBuilder, PointerRef, Stmt, Var};

/// The pointers of one operand.
pub(super) struct Stream<'t> {
    tiled: &'t Tiled<'t>,
    copy: &'t TileCopy,
    pointers: BufferId,
    /// How many pointers there are; one if absent.
    count: Option<Const>,
}

/// Under which condition a copy is made.
#[derive(Clone, Copy)]
pub(super) enum When<'e> {
    Always,
    /// Where the expression holds; else nothing happens.
    If(&'e Expr),
    /// Where the k in the tile is at least the expression; else zeros are written.
    From(&'e Expr),
    /// Where the k in the tile lies below the expression; else -0 is written in A, +0 in B.
    Below(&'e Expr),
}

impl<'t> Stream<'t> {
    /// Declares the pointers, at the first tile, which lacks its first `missing` terms.
    pub fn declare(
        k: &mut KernelBuilder,
        tiled: &'t Tiled<'t>,
        copy: &'t TileCopy,
        missing: Option<Var>,
    ) -> Self {
        let count = match (&copy.walk, copy.side) {
            // The rows of B that a thread copies lie a fixed number of rows apart.
            (Walk::Rows { .. }, Side::B) => None,
            (Walk::Groups { passes, .. }, _) => Some(*passes),
            (Walk::Rows { .. } | Walk::Linear { .. }, _) => Some(copy.count),
        };
        let (name, what) = match copy.side {
            Side::A => ("a_src", "what this thread copies next of A"),
            Side::B => ("b_src", "what this thread copies next of B"),
        };
        let matrix = tiled.matrix(copy.side);
        let pointers = k.pointers(name, matrix.buffer, count.map(Expr::from), what);
        let stream = Self { tiled, copy, pointers, count };
        let start = |row: Expr, col: Expr| {
            let (row, col) = clamped(tiled, copy, row, col);
            match (copy.side, missing) {
                (_, None) => matrix.at(row, col),
                (Side::A, Some(missing)) => matrix.at(row, col - missing),
                (Side::B, Some(missing)) => matrix.at(row - missing, col),
            }
        };
        match (&copy.walk, count) {
            (Walk::Rows { row, col, .. }, None) => {
                let pointer = stream.pointer(&Expr::I32(0));
                k.push(Stmt::Point { pointer, at: start((*row).into(), (*col).into()) });
            }
            (Walk::Groups { row, col, step, passes }, _) => {
                k.unrolled("i", *passes, |k, i| {
                    let pointer = stream.pointer(&i.into());
                    k.push(Stmt::Point { pointer, at: start(*row + i * *step, (*col).into()) });
                });
            }
            _ => copy.each(k, &Share::All, |k, place| {
                let pointer = stream.pointer(&place.i);
                k.push(Stmt::Point { pointer, at: start(place.row, place.col) });
            }),
        }
        stream
    }

    /// Starts the copies of a share of the tile that the pointers stand at, to buffer `slot`.
    pub fn start(&self, k: &mut KernelBuilder, share: &Share, slot: &Expr, when: When<'_>) {
        self.copy.each(k, share, |k, place| {
            let ragged = matches!(when, When::Below(_));
            let split = self.copy.width == 4
                && self.copy.side == Side::A
                && ragged
                && self.tiled.plan.pitched();
            // A pitched row of A may end inside a vector: its elements are guarded one by one.
            let (parts, width) = if split { (4, 1) } else { (1, self.copy.width) };
            for lane in 0..parts {
                let shared = self.tiled.shared(self.copy.side);
                let target = shared.at(slot, place.row.clone(), place.col.clone() + lane);
                let source = self.source(&place, lane);
                let index = match self.copy.side {
                    Side::A => place.col.clone() + lane,
                    Side::B => place.row.clone(),
                };
                let wide = |a: Access| if width == 4 { a.vector() } else { a };
                let (target, source) = (wide(target), wide(source));
                let guard = match when {
                    When::Always => None,
                    When::If(cond) => Some(Guard { cond: cond.clone(), or_zero: false }),
                    When::From(start) => {
                        Some(Guard { cond: index.ge(start.clone()), or_zero: true })
                    }
                    When::Below(end) if self.copy.side == Side::A => {
                        let zero = target.clone();
                        k.if_else(
                            index.lt(end.clone()),
                            |k| k.push(Stmt::CopyAsync { target, source, guard: None }),
                            |k| k.store(zero, -0.0),
                        );
                        continue;
                    }
                    When::Below(end) => Some(Guard { cond: index.lt(end.clone()), or_zero: true }),
                };
                k.push(Stmt::CopyAsync { target, source, guard });
            }
        });
    }

    /// Moves the pointers by `width` terms of the sums.
    pub fn advance(&self, k: &mut KernelBuilder, width: &Expr) {
        let by = match self.copy.side {
            Side::A => width.clone(),
            Side::B => width.clone().wide() * self.tiled.matrix(self.copy.side).stride,
        };
        match self.count {
            None => k.push(Stmt::Advance { pointer: self.pointer(&Expr::I32(0)), by }),
            Some(count) => k.unrolled("i", count, |k, i| {
                k.push(Stmt::Advance { pointer: self.pointer(&i.into()), by });
            }),
        }
    }

    fn pointer(&self, i: &Expr) -> PointerRef {
        let index = self.count.map(|_| i.clone()).into_iter().collect();
        PointerRef { buffer: self.pointers, index }
    }

    /// What access `place` copies, from element `lane` of it on.
    fn source(&self, place: &Place, lane: i32) -> Access {
        let (pointer, offset) = match &self.copy.walk {
            Walk::Rows { step, .. } if self.count.is_none() => {
                let stride = self.tiled.matrix(self.copy.side).stride;
                (None, (place.i.clone() * *step).wide() * stride + lane)
            }
            Walk::Groups { passes, .. } => {
                let group = place.i.clone() / *passes * GROUP as i32;
                (Some(place.i.clone() % *passes), group + lane)
            }
            _ => (Some(place.i.clone()), lane.into()),
        };
        Access::new(self.pointers, pointer.into_iter().chain([offset]))
    }
}
