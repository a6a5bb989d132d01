//! What happens where the tiles do not fill the matrices: zeros along K, and along M and N the last
//! row or column again, whose products are never stored.
//!
//! The zeros change no bit of a sum. +0·+0 would turn a sum that has underflowed to -0 into +0. So
//! what is stored is -0 in A and +0 in B: their product -0 leaves any sum as it is. An asynchronous
//! copy can fill with +0 only; there the fill comes before the terms, and +0 + +0 is the +0 that a sum
//! starts from.

use super::copy::{Side, TileCopy};
use super::tile::Tiled;
use crate::ir::{Expr, KernelBuilder};

/// Where the ragged tile of K is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ragged {
    /// There is none: K is a multiple of BK.
    Nowhere,
    /// The first tile.
    First,
    /// The last tile. Only if it is the last does every other tile of a pitched A start on 16 bytes.
    Last,
}

impl Ragged {
    pub fn of(tiled: &Tiled<'_>) -> Self {
        match (tiled.plan.guarded(), tiled.plan.pitched() && tiled.t.a_global_vector()) {
            (false, _) => Ragged::Nowhere,
            (true, false) => Ragged::First,
            (true, true) => Ragged::Last,
        }
    }
}

/// The k at which the second tile starts.
pub(super) fn width_of_first(k: &mut KernelBuilder, tiled: &Tiled<'_>, ragged: Ragged) -> Expr {
    if ragged != Ragged::First {
        return tiled.bk.into();
    }
    let depth = Expr::from(tiled.problem.k);
    let first = depth.clone().gt(0).select((depth - 1) % tiled.bk + 1, 0);
    k.comment("The first tile is narrower where BK does not divide K; zeros fill it up.");
    k.let_("first", first).into()
}

/// Brings in the tile at `k0` by `copy`, which is told how many k of it exist where that is not
/// certain.
pub(super) fn bring_in(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    ragged: Ragged,
    k0: &Expr,
    first: Option<&Expr>,
    copy: impl Fn(&mut KernelBuilder, Option<&Expr>),
) {
    match (ragged, first) {
        (Ragged::First, Some(width)) => copy(k, Some(width)),
        (Ragged::First, None) | (Ragged::Nowhere, _) => copy(k, None),
        (Ragged::Last, _) => {
            let left = Expr::from(tiled.problem.k) - k0.clone();
            let whole = (k0.clone() + tiled.bk).le(tiled.problem.k);
            k.if_else(whole, |k| copy(k, None), |k| copy(k, Some(&left)));
        }
    }
}

/// Says what the copies do at the edge of C.
pub(super) fn edge_comment(k: &mut KernelBuilder, tiled: &Tiled<'_>) {
    if tiled.plan.guarded() {
        k.comment("Past the edge of C its last row or column is read: nothing of it is stored.");
    }
}

/// Where in global memory a place of a tile lies, given the k of the tile. Rows and columns outside C
/// are replaced by the last ones inside: what they contribute to is never stored.
pub(super) fn clamped(tiled: &Tiled<'_>, copy: &TileCopy, row: Expr, col: Expr) -> (Expr, Expr) {
    let (p, origin) = (tiled.problem, &tiled.origin);
    let clamp = |at: Expr, last: Expr| if tiled.plan.guarded() { at.min(last) } else { at };
    match copy.side {
        Side::A => (clamp(origin.row + row, p.m - 1), col),
        Side::B => {
            let last = match (copy.width, tiled.plan.pitched()) {
                (1, _) => p.n - 1,
                (_, false) => p.n - 4,
                // The last vector that starts inside, though its end may be padding.
                (_, true) => (p.n - 1) / 4 * 4,
            };
            (row, clamp(origin.col + col, last))
        }
    }
}
