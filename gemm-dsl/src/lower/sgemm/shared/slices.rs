//! `slices` of a block that stages its operands: all threads copy a tile, and each slice of them multiplies every s-th
//! step of it.

use crate::ir::{Const, Expr, KernelBuilder, Var};
use crate::lower::sgemm::shared::intra_block_reduction::Slices;

/// The slices of such a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSlices {
    pub of_block: Slices,
    /// Steps that a slice multiplies of a tile.
    pub steps: Const,
}

/// What the text says of them in numbers.
#[derive(Clone, Copy)]
pub(crate) struct Constants {
    pub count: Const,
    /// Threads of a slice: those of the first hold the sums of all in the end.
    pub holders: Const,
    steps: Const,
}

impl TileSlices {
    /// Declares the constants of slices of so many threads, which share so many steps.
    pub(crate) fn constants(
        b: &mut KernelBuilder,
        slices: u32,
        of_slice: &Expr,
        of_tile: Const,
    ) -> Constants {
        let count = b.constant("SLICES", slices as i32, "groups of threads, which share K");
        let holders = b.constant("SLICE", of_slice.clone(), "threads of a group");
        let steps = b.constant("STEPS", of_tile / count, "steps of a group in one tile");
        Constants { count, holders, steps }
    }

    /// Finds the thread's slice, and its number among the threads of that.
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        Constants { count, holders, steps }: Constants,
        tid: Var,
    ) -> (Self, Var) {
        b.comment("A group of threads multiplies every SLICES-th step of a tile.");
        let slice = b.let_("slice", tid / holders);
        let holder = b.let_("rank", tid % holders);
        (Self { of_block: Slices { slice, slices: count }, steps }, holder)
    }

    /// Its i-th step among all of the tile.
    pub(crate) fn step(self, i: Expr) -> Expr {
        i * self.of_block.slices + self.of_block.slice
    }
}
