//! What happens where the tiles do not fill the matrices: zeros along K, and along M and N rows or
//! columns that there are, whose products are never stored.
//!
//! The zeros change no bit of a sum. +0·+0 would turn a sum that has underflowed to -0 into +0. So
//! what is stored is -0 in A and +0 in B: their product -0 leaves any sum as it is. An asynchronous
//! copy can fill with +0 only; there the fill comes before the terms, and +0 + +0 is the +0 that a sum
//! starts from.

use super::tile::{StagedFactor, Tiled};
use crate::ir::{Elem, Expr, KernelBuilder, Scalar};
use crate::plan::{Edge, Fill, OperandPlan, Ragged};

/// The k at which the second tile starts.
pub(crate) fn width_of_first(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Expr {
    let which = match tiled.t.ragged() {
        Ragged::Nowhere => return tiled.bk.into(),
        Ragged::First => "first",
        Ragged::Last => "last",
    };
    b.comment(format!(
        "The {which} tile is narrower where BK does not divide K; zeros fill it up."
    ));
    if tiled.a.plan.fill() == Fill::MinusZero {
        b.comment("They are -0 in A and +0 in B: their product, -0, leaves every sum as it is.");
    }
    if tiled.t.ragged() == Ragged::Last {
        return tiled.bk.into();
    }
    let depth = tiled.depth();
    let first = depth.clone().gt(0).select((depth - 1) % tiled.bk + 1, 0);
    b.let_("first", first).into()
}

/// Brings in the tile at `k0` by `copy`, which is told how many k of it exist where that is not
/// certain; of the first tile that is said by `first`.
pub(crate) fn bring_in(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    k0: &Expr,
    first: Option<&Expr>,
    copy: impl Fn(&mut KernelBuilder, Option<&Expr>),
) {
    match (tiled.t.ragged(), first) {
        (Ragged::First, Some(width)) => copy(b, Some(width)),
        (Ragged::First, None) | (Ragged::Nowhere, _) => copy(b, None),
        (Ragged::Last, _) => {
            let left = tiled.depth() - k0.clone();
            let whole = (k0.clone() + tiled.bk).le(tiled.depth());
            b.if_else(whole, |b| copy(b, None), |b| copy(b, Some(&left)));
        }
    }
}

/// Says what the reads of A and B do at the edge of C.
pub(crate) fn edge_comment(b: &mut KernelBuilder, edges: [Edge; 2]) {
    let vectors = |edge| match edge {
        Edge::Exact => None,
        Edge::Last => Some(false),
        Edge::LastVector | Edge::LastStart => Some(true),
    };
    let [Some(rows), Some(cols)] = edges.map(vectors) else { return };
    let lines = match (rows, cols) {
        (false, false) => "row or column",
        (false, true) => "row or vector of columns",
        (true, false) => "column or vector of rows",
        (true, true) => "vector of rows or of columns",
    };
    b.comment(format!("Past the edge of C its last {lines} is read: nothing of it is stored."));
}

/// Says what asynchronous copies do there.
pub(crate) fn copies_comment(b: &mut KernelBuilder, edges: [Edge; 2]) {
    if !edges.contains(&Edge::Exact) {
        b.comment("Past the edge of C other rows and columns are read: nothing of it is stored.");
    }
}

/// Which row of A or column of B is read for element `at` of the tile.
pub(crate) fn clamped(factor: &StagedFactor, at: Expr) -> Expr {
    inside(factor.plan.edge(), factor.plan.elem(), factor.origin + at, factor.extent)
}

/// The row or column that is read for one that may lie past the edge.
pub(crate) fn inside(edge: Edge, elem: Elem, at: Expr, extent: Scalar) -> Expr {
    let lanes = i32::from(elem.vector_lanes());
    match edge {
        Edge::Exact => at,
        Edge::Last => at.min(extent - 1),
        Edge::LastVector => at.min(extent - lanes),
        Edge::LastStart => at.min((extent - 1) / lanes * lanes),
    }
}

/// As [`clamped`], of elements that lie next to one another: what neighbours read past the edge are neighbours too.
/// One element that many lanes copy asynchronously, each to a place of its own, would take a turn for each of them.
pub(crate) fn wrapped(factor: &StagedFactor, at: Expr) -> Expr {
    let extent = Expr::from(factor.extent);
    let lanes = i32::from(factor.plan.elem().vector_lanes());
    let whole = match factor.plan.edge() {
        Edge::Exact => return factor.origin + at,
        Edge::Last | Edge::LastVector => extent.clone(),
        Edge::LastStart => ((extent.clone() - 1) / lanes + 1) * lanes,
    };
    let place = factor.origin + at.clone();
    place.clone().lt(extent).select(place, at % whole)
}

/// What is stored for `width` terms that do not exist.
pub(crate) fn zeros(plan: &OperandPlan, width: u32) -> Expr {
    let zero = match plan.fill() {
        Fill::MinusZero => -0.0,
        Fill::PlusZero => 0.0,
        Fill::None => unreachable!("planned: where K may be ragged, something fills it"),
    };
    let zero = Expr::F32(zero).cast(plan.elem());
    match width {
        1 => zero,
        _ => Expr::Pack(vec![zero; width as usize]),
    }
}
