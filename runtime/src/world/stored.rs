//! How A and B are stored that are dealt out: as a product has them, or as their transposes, as the `layout` of its kernel says.
//!
//! A schedule knows nothing of it: its blocks are those of A and B. They are turned where they become memory, and nowhere else.

use super::{Block, Layout, Layouts, Sharded, Side};
use crate::view::MatrixRef;
use gemm_dsl::spec::{self, SgemmSpec};
use std::borrow::Cow;

/// Which of A and B are stored as their transposes.
#[derive(Clone, Copy)]
pub(super) struct Stored(spec::GemmLayout);

impl Stored {
    /// As a kernel takes them.
    pub(super) fn of(spec: &SgemmSpec) -> Self {
        Self(spec.layout)
    }

    /// Whether the transpose of a matrix is stored.
    pub(super) fn is_turned(self, side: Side) -> bool {
        side.is_transposed(self.0)
    }

    /// Where a block of a matrix is in what is stored, and the other way round.
    pub(super) fn block(self, side: Side, block: &Block) -> Block {
        if self.is_turned(side) { block.t() } else { block.clone() }
    }

    /// How a matrix is dealt out, where this is how what is stored is.
    pub(super) fn layout(self, side: Side, stored: &Layout) -> Cow<'_, Layout> {
        if self.is_turned(side) { Cow::Owned(stored.t()) } else { Cow::Borrowed(stored) }
    }

    /// Those of a product, as it has them.
    pub(super) fn layouts(self, a: &Layout, b: &Layout, c: &Layout) -> Layouts {
        let of = |side, stored| self.layout(side, stored).into_owned();
        Layouts { a: of(Side::A, a), b: of(Side::B, b), c: c.clone() }
    }

    /// A matrix, where this is what is stored.
    pub(super) fn view<'v>(self, side: Side, stored: MatrixRef<'v>) -> MatrixRef<'v> {
        if self.is_turned(side) { stored.t() } else { stored }
    }

    /// What a rank has of a matrix.
    pub(super) fn part(self, side: Side, shard: &Sharded) -> MatrixRef<'_> {
        self.view(side, shard.view())
    }

    /// What messages call a matrix.
    pub(super) fn name(self, side: Side) -> &'static str {
        match (side, self.is_turned(side)) {
            (Side::A, false) => "A",
            (Side::B, false) => "B",
            (Side::A, true) => "A, whose transpose is stored (`layout`),",
            (Side::B, true) => "B, whose transpose is stored (`layout`),",
        }
    }
}
