//! Plan for storing the accumulators of a thread in C.

use super::epilogue_staging::{self, BlockSize};
use super::pipeline::Pipeline;
use super::{Decided, decided, facts};
use crate::ir::Elem;
use crate::spec::{Along, Bounds, EpilogueArg, GemmTypes, Rect, SgemmSpec};

/// Guards that keep the stores of an epilogue inside C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guards {
    /// No guards: the extents of C are multiples of the tile's.
    None,
    /// One guard for each store of a thread.
    Inline,
    /// One guard per tile: interior tiles are stored without guards, edge tiles with a guard per
    /// store.
    Hoisted,
}

facts! {
    /// Plan for storing the accumulators of a thread in C.
    EpiloguePlan {
        elem: Elem,
        acc: Elem,
        /// Elements of one store along N: those of a vector, or 1.
        width: u32,
        /// True if a vector may extend past the end of a row into padding. The padding is never
        /// written.
        straddles: bool,
    } decided {
        guards: Guards,
        /// Rows of a thread tile whose accumulators are staged in shared memory at a time, for an
        /// epilogue loop; 0 if the epilogue is fully unrolled.
        staged_rows: u32,
    }
}

impl EpiloguePlan {
    /// Plans the epilogue of a block, given its threads and the shared memory of its tiles in
    /// bytes.
    pub(super) fn new(
        spec: &SgemmSpec,
        thread: Rect,
        pipeline: Pipeline,
        vectors: bool,
        block: BlockSize,
    ) -> Self {
        let ring = matches!(pipeline, Pipeline::Async { .. });
        let GemmTypes { acc, c: elem, .. } = spec.types();
        let vectors = vectors && has_equal_vectors(spec);
        let width = if vectors { elem.vector_lanes().into() } else { 1 };
        let staged_rows = epilogue_staging::rows(spec, thread, block);
        let guards = match spec.bounds {
            Bounds::Aligned => decided(Guards::None, "C is a multiple of the tile"),
            Bounds::Guarded if spec.stage_c => decided(Guards::Inline, "one loop stores all of C"),
            Bounds::Guarded if staged_rows.value > 0 => {
                decided(Guards::Inline, "hoisting would duplicate a long epilogue")
            }
            // With hoisted guards, interior tiles skip the guarded path. The compiler then
            // allocates better registers for the main loop, which is 1 % faster on an H200.
            Bounds::Guarded if ring && spec.resident_blocks() == 1 => {
                decided(Guards::Hoisted, "the main loop gets a better register allocation")
            }
            Bounds::Guarded if ring => {
                decided(Guards::Inline, "hoisted guards spill if blocks share an SM's registers")
            }
            Bounds::Guarded => decided(Guards::Inline, ""),
        };
        let straddles = vectors && spec.pitched && guards.value != Guards::None;
        Self { elem, acc, width, guards, straddles, staged_rows }
    }

    /// Returns the shared memory of a block in bytes: the tiles, and the staged accumulators of
    /// `threads` threads with `cols` columns each. `tiles` is the bytes of the tiles.
    pub(super) fn shared_bytes(&self, tiles: u64, threads: u32, cols: u32) -> u64 {
        let tiles = u128::from(tiles);
        let all = match epilogue_staging::bytes(self.acc, [self.staged_rows(), threads, cols]) {
            0 => tiles,
            sums => tiles.next_multiple_of(16) + sums,
        };
        u64::try_from(all).unwrap_or_else(|_| {
            unreachable!("check: the block is within the limit of shared memory")
        })
    }
}

/// Returns true if a vector of C has as many elements as a vector of each operand that is read
/// along the rows of C.
fn has_equal_vectors(spec: &SgemmSpec) -> bool {
    let GemmTypes { acc, c, .. } = spec.types();
    let is_along_rows = |operand: &EpilogueArg| {
        !operand.is_output() && matches!(operand.along, Along::N | Along::BatchN | Along::Mn)
    };
    acc.size() == c.size() || !spec.operands().iter().any(is_along_rows)
}
