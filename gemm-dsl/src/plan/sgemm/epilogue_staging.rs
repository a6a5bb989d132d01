//! Staging of accumulators in shared memory for an epilogue loop.
//!
//! Registers cannot be indexed at run time. Without staging, a long epilogue would be unrolled for
//! every accumulator. The key `stage_c` stages accumulators for any epilogue.

use super::{Decided, decided};
use crate::error::SpecError;
use crate::ir::Elem;
use crate::plan::Faults;
use crate::plan::sgemm::shared_memory::blocks_by_shared;
use crate::spec::{Epilogue, Rect, SgemmSpec};
use crate::target::arch::LARGEST;

/// Maximum number of a thread's epilogue operations that are fully unrolled. More operations would
/// exceed the instruction cache.
const WRITTEN_OUT: u64 = 4096;

/// Minimum number of a thread's outputs that are staged at once. Fewer outputs do not justify a
/// loop.
const LEAST: u32 = 16;

/// Size of a block: its threads, and the shared memory of its tiles in bytes.
#[derive(Clone, Copy)]
pub(super) struct BlockSize {
    pub threads: u32,
    pub shared: u128,
}

impl BlockSize {
    /// Bytes of shared memory before the staged accumulators.
    fn before(self) -> u128 {
        self.shared.next_multiple_of(16)
    }
}

/// Rows of a thread tile whose accumulators are staged at a time; 0 if the epilogue is fully
/// unrolled. `block.shared` is the shared memory that the tiles already occupy, in bytes.
pub(super) fn rows(spec: &SgemmSpec, thread: Rect, block: BlockSize) -> Decided<u32> {
    let enough = |rows: &u32| thread.m.is_multiple_of(*rows) && rows * thread.n >= LEAST;
    let rows = || (1..=thread.m).find(enough).unwrap_or(thread.m);
    if spec.stage_c {
        return decided(rows(), "`stage_c` stages accumulators");
    }
    let closure = spec.epilogue.as_ref().map(Epilogue::closure);
    if closure.map_or(0, |closure| closure.operations()) * thread.area() <= WRITTEN_OUT {
        return decided(0, "");
    }
    let rows = rows();
    let staged = bytes(spec.types().acc, [rows, block.threads, thread.n]);
    match fits(spec, block.before() + staged) {
        true => decided(rows, "a loop fits the instruction cache: 7 % faster on an H200"),
        false => decided(0, "shared memory has no room for staged accumulators"),
    }
}

/// Returns true if a block may use `bytes` of shared memory, and the resident blocks fit an SM.
fn fits(spec: &SgemmSpec, bytes: u128) -> bool {
    bytes <= LARGEST.shared_per_block.into()
        && blocks_by_shared(bytes) >= spec.resident_blocks().into()
}

/// Checks that shared memory has room for the accumulators that `stage_c` stages. `rows` and `cols`
/// are the staged rows and the columns of a thread. The tiles alone fit.
pub(super) fn check(
    spec: &SgemmSpec,
    [rows, cols]: [u32; 2],
    block: BlockSize,
    faults: &mut Faults,
) {
    if spec.stage_c && faults.sound(&["stage_c", "blocks_per_sm"]) {
        let extents = [rows, block.threads, cols];
        let staged = bytes(spec.types().acc, extents);
        let fits = fits(spec, block.before() + staged);
        faults.require(fits, || no_room(spec, extents, [block.before(), staged]));
    }
}

/// Returns the bytes of staged accumulators. `extents` are the staged rows per thread, the number
/// of threads, and the columns per thread.
pub(super) fn bytes(acc: Elem, extents: [u32; 3]) -> u128 {
    extents.into_iter().fold(acc.size().into(), |all, n| all * u128::from(n))
}

/// Message for staged accumulators that do not fit. `tiles` and `staged` are bytes.
fn no_room(
    spec: &SgemmSpec,
    [rows, threads, columns]: [u32; 3],
    [tiles, staged]: [u128; 2],
) -> SpecError {
    let (size, needed) = (spec.types().acc.size(), tiles + staged);
    let sum = format!(
        "`stage_c` stages {rows}·{columns} accumulators · {threads} threads · {size} bytes = \
         {staged} bytes, and the tiles need {tiles}"
    );
    let most = LARGEST.shared_per_block;
    let message = if needed > most.into() {
        format!("{sum}: {needed} bytes, and a block has at most {most} bytes of shared memory")
    } else {
        let (reserved, all) = (LARGEST.shared_reserved, LARGEST.shared_bytes);
        let blocks = spec.resident_blocks();
        format!(
            "{sum}: {blocks} blocks · ({needed} + {reserved} reserved by CUDA) = {} bytes of \
             shared memory, and an SM has at most {all}",
            u128::from(blocks) * (needed + u128::from(reserved)),
        )
    };
    SpecError::at_key(
        &[
            "stage_c",
            "tile",
            "thread",
            "pad_a",
            "pad_b",
            "stages",
            "double_buffer",
            "blocks_per_sm",
        ],
        format!("{message}; use a smaller tile or fewer buffers, or leave `stage_c` out"),
    )
}
