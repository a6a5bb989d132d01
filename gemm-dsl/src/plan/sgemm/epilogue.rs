//! Plan for storing the accumulators of a thread in C.

use super::epilogue_staging::{self, BlockSize};
use super::pipeline::Pipeline;
use super::{Decided, decided, facts};
use crate::ir::Elem;
use crate::spec::{Along, Bounds, EpilogueArg, GemmTypes, Pairs, Rect, SgemmSpec, Sharing};

/// Lanes of a warp that hold the accumulators of a row of tensor cores.
const LANES_OF_ROW: u32 = 4;

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
        /// Groups of eight columns whose outputs the four lanes of a row exchange, so that each
        /// stores vectors; 0 if they exchange no outputs.
        groups: u32,
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
        Self { elem, acc, width, guards, straddles, groups: 0, staged_rows }
    }

    /// Plans the exchange of the outputs of `groups` groups of columns, from registers.
    pub(super) fn exchanging_outputs(self, groups: u32) -> Self {
        match groups {
            0 => self,
            _ => {
                let staged_rows = decided(0, "lanes exchange outputs in registers");
                Self { groups, staged_rows, ..self }
            }
        }
    }

    /// Elements of a vector store to C, or 1 if single elements are stored.
    pub fn store_width(&self) -> u32 {
        if self.groups > 0 { self.elem.vector_lanes().into() } else { self.width }
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

/// Returns the groups of eight columns whose outputs four lanes of a warp exchange, or 0. The warp
/// has `columns` columns. A lane has two adjacent columns of each group, whose outputs are half a
/// word, one word or two words.
pub(super) fn exchanged_groups(spec: &SgemmSpec, columns: u32) -> u32 {
    let counts = spec.epilogue.as_ref().map(|epilogue| epilogue.row_results().stored);
    let counts = counts.unwrap_or_else(|| vec![1]);
    let has_pairs = spec.pairs() != Pairs::None;
    let has_halves = has_pairs && counts.contains(&1);
    let groups = match spec.types().c {
        Elem::F16 | Elem::Bf16 if has_halves => 2 * LANES_OF_ROW,
        Elem::F16 | Elem::Bf16 => LANES_OF_ROW,
        Elem::F32 if has_pairs && counts.iter().all(|count| *count == 1) => LANES_OF_ROW,
        // Converted matrices keep the exchange of accumulators.
        Elem::F32 if spec.reads_matrices() && !has_halves => LANES_OF_ROW / 2,
        _ => 0,
    };
    // If blocks share K, only the thread that stores an element of C may read it.
    let reads_others = spec.reads_c() && spec.sharing() != Sharing::Whole;
    let is_whole = columns.is_multiple_of(8 * groups.max(1));
    if is_whole && !reads_others { groups } else { 0 }
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
