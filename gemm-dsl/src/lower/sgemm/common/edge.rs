//! Tiles that extend beyond the matrices. Along K, zeros fill the tile. Along M and N, indices are
//! clamped to existing rows or columns, and results computed from these are not stored.
//!
//! The zeros must not change a bit of an accumulator. The product +0·+0 would turn an accumulator
//! that has underflowed to -0 into +0. The fill is therefore -0 in A and +0 in B; adding their
//! product -0 leaves any accumulator unchanged. An asynchronous copy can fill only with +0. Its
//! fill precedes the first elements of K, when every accumulator is still +0, and +0 + +0 is +0.

use super::tile::{StagedFactor, Tiled};
use crate::ir::{Elem, Expr, KernelBuilder};
use crate::lower::literal::zero_of;
use crate::plan::{Axis, Edge, Fill, OperandPlan, Ragged};

/// Emits the k at which the second tile starts.
pub(crate) fn width_of_first(b: &mut KernelBuilder, tiled: &Tiled<'_>) -> Expr {
    let which = match tiled.frame.t.ragged() {
        Ragged::Nowhere => return tiled.frame.bk.into(),
        Ragged::First => "first",
        Ragged::Last => "last",
    };
    b.comment(format!(
        "If BK does not divide K, the {which} K tile is partial and is padded with zeros."
    ));
    if tiled.frame.t.ragged() == Ragged::First {
        b.comment(
            "It is the first, so that the main loop checks no element along K. Its depth is \
             first_depth: 1 to BK, or 0 if K is 0.",
        );
    }
    if tiled.a.plan.fill() == Fill::MinusZero {
        b.comment(
            "These zeros are -0 in A and +0 in B: their product, -0, leaves every accumulator \
             unchanged. With +0, an accumulator that underflowed to -0 would become +0.",
        );
    }
    if tiled.frame.t.ragged() == Ragged::Last {
        return tiled.frame.bk.into();
    }
    let depth = tiled.depth();
    let first = depth.clone().gt(0).select((depth - 1) % tiled.frame.bk + 1, 0);
    b.let_("first_depth", first).into()
}

/// Emits `copy` for the tile at `k0`. If the tile may be partial, `copy` receives the number of
/// valid k. `first` is this number for the first tile.
pub(crate) fn bring_in(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    k0: &Expr,
    first: Option<&Expr>,
    copy: impl Fn(&mut KernelBuilder, Option<&Expr>),
) {
    match (tiled.frame.t.ragged(), first) {
        (Ragged::First, Some(width)) => copy(b, Some(width)),
        (Ragged::First, None) | (Ragged::Nowhere, _) => copy(b, None),
        (Ragged::Last, _) => {
            let left = tiled.depth() - k0.clone();
            let whole = (k0.clone() + tiled.frame.bk).le(tiled.depth());
            b.if_else(whole, |b| copy(b, None), |b| copy(b, Some(&left)));
        }
    }
}

/// Emits a comment on the reads of A and B at the edge of C.
pub(crate) fn edge_comment(b: &mut KernelBuilder, edges: [Edge; 2]) {
    let vectors = |edge| match edge {
        Edge::Exact => None,
        Edge::Last => Some(false),
        Edge::LastVector | Edge::LastStart => Some(true),
    };
    let [Some(rows), Some(cols)] = edges.map(vectors) else { return };
    let lines = match (rows, cols) {
        (false, false) => "row or column",
        (false, true) => "row or the last vector of columns",
        (true, false) => "column or the last vector of rows",
        (true, true) => "vector of rows or of columns",
    };
    b.comment(format!(
        "Indices past the edge are clamped to the last {lines}; outputs computed from them are \
         not stored."
    ));
}

/// Emits a comment on the asynchronous copies at the edge of C.
pub(crate) fn copies_comment(b: &mut KernelBuilder, operands: [&OperandPlan; 2]) {
    if operands.iter().any(|plan| plan.edge() == Edge::Exact) {
        return;
    }
    for plan in operands {
        let [letter, line, extent] = match plan.free() {
            Axis::M => ["A", "row", "M"],
            Axis::N | Axis::K => ["B", "column", "N"],
        };
        if plan.contiguous() == Axis::K {
            b.comment(format!("A {line} of {letter} past the edge is clamped to the last {line}."));
            continue;
        }
        // See `wrapped`.
        let rounded = match plan.edge() {
            Edge::LastStart => {
                let lanes = plan.elem().vector_lanes();
                format!(", with {extent} rounded up to whole vectors of {lanes}")
            }
            Edge::Exact | Edge::Last | Edge::LastVector => String::new(),
        };
        b.comment(format!(
            "Past the edge, {line} j of a tile copies {line} j % {extent} of {letter}{rounded}. \
             With a clamp, many lanes would copy from one address."
        ));
    }
    b.comment("Outputs computed from these are not stored.");
}

/// Row of A or column of B to read for element `at` of the tile, clamped to the matrix.
pub(crate) fn clamped(factor: &StagedFactor, at: Expr) -> Expr {
    inside(factor.plan.edge(), factor.plan.elem(), factor.origin + at, factor.extent.clone())
}

/// Clamps an index that may be beyond the edge.
pub(crate) fn inside(edge: Edge, elem: Elem, at: Expr, extent: impl Into<Expr>) -> Expr {
    let extent = extent.into();
    let lanes = i32::from(elem.vector_lanes());
    match edge {
        Edge::Exact => at,
        Edge::Last => at.min(extent - 1),
        Edge::LastVector => at.min(extent - lanes),
        Edge::LastStart => at.min((extent - 1) / lanes * lanes),
    }
}

/// Row of A or column of B to read for element `at` of the tile. Indices beyond the edge wrap
/// around.
///
/// With [`clamped`], many lanes would copy the same element. Here, adjacent elements remain
/// adjacent beyond the edge, except where the index wraps around.
pub(crate) fn wrapped(factor: &StagedFactor, at: Expr) -> Expr {
    let extent = factor.extent.clone();
    let lanes = i32::from(factor.plan.elem().vector_lanes());
    let whole = match factor.plan.edge() {
        Edge::Exact => return factor.origin + at,
        Edge::Last | Edge::LastVector => extent.clone(),
        Edge::LastStart => ((extent.clone() - 1) / lanes + 1) * lanes,
    };
    let place = factor.origin + at.clone();
    place.clone().lt(extent).select(place, at % whole)
}

/// Fill for `width` elements past the end of K.
pub(crate) fn zeros(plan: &OperandPlan, width: u32) -> Expr {
    let zero = match plan.fill() {
        Fill::MinusZero => -0.0,
        Fill::PlusZero => 0.0,
        Fill::None => unreachable!("OperandPlan::new: a plan with a ragged K tile has a fill"),
    };
    let zero = zero_of(plan.elem(), zero);
    match width {
        1 => zero,
        _ => Expr::Pack(vec![zero; width as usize]),
    }
}
