//! Sliced-K in a block with staged operands. All threads copy a tile, and slice s multiplies the
//! steps s, s + n, s + 2n and so on, where n is the number of slices.

use crate::ir::{Const, Expr, KernelBuilder, Var};
use crate::lower::sgemm::common::intra_block_reduction::Slices;

/// Slices of a block with staged operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSlices {
    pub of_block: Slices,
    /// Number of steps of a tile that each slice multiplies.
    pub steps: Const,
}

#[derive(Clone, Copy)]
pub(crate) struct SliceConstants {
    pub count: Const,
    /// Number of threads per slice. The threads of the first slice have the final accumulators.
    pub epilogue_threads: Const,
    steps: Const,
}

impl TileSlices {
    /// Declares the constants. A slice has `of_slice` threads, and all slices share `of_tile`
    /// steps.
    pub(crate) fn constants(
        b: &mut KernelBuilder,
        slices: u32,
        of_slice: &Expr,
        of_tile: Const,
    ) -> SliceConstants {
        let count = b.constant("SLICES", slices as i32, "slices: groups of threads that split K");
        let epilogue_threads = b.constant("SLICE", of_slice.clone(), "threads per slice");
        let steps = b.constant("STEPS", of_tile / count, "K steps of a slice per tile");
        SliceConstants { count, epilogue_threads, steps }
    }

    /// Computes the thread's slice, and its index in the slice.
    pub(crate) fn declare(
        b: &mut KernelBuilder,
        SliceConstants { count, epilogue_threads, steps }: SliceConstants,
        tid: Var,
    ) -> (Self, Var) {
        b.comment("Sliced-K: each slice of threads multiplies every SLICES-th step of a K tile.");
        let slice = b.let_("slice", tid / epilogue_threads);
        let epilogue_thread = b.let_("rank", tid % epilogue_threads);
        (Self { of_block: Slices { slice, slices: count }, steps }, epilogue_thread)
    }

    /// Index of the slice's i-th step among the steps of the tile.
    pub(crate) fn step(self, i: Expr) -> Expr {
        i * self.of_block.slices + self.of_block.slice
    }
}
