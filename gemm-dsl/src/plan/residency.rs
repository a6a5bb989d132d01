//! Checks of `blocks_per_sm`: blocks that must be resident on an SM at once.

use super::Faults;
use crate::target::arch::LARGEST;

/// Checks `blocks_per_sm` against the maximum number of blocks per SM.
pub(super) fn resident_blocks(blocks: u32, faults: &mut Faults) {
    faults.require(blocks <= LARGEST.blocks, || messages::resident_blocks(blocks));
}

/// Checks the threads of all resident blocks against the limit of an SM.
pub(super) fn resident_threads(blocks: u32, threads: u64, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        faults.require(u64::from(blocks) * threads <= LARGEST.threads.into(), || {
            messages::resident_threads(blocks, threads)
        });
    }
}

/// Minimum number of resident blocks, as the compiler is told it.
pub(super) fn told(least: Option<u32>) -> String {
    least.map_or_else(|| "none".to_owned(), |least| least.to_string())
}

mod messages {
    use crate::error::SpecError;
    use crate::target::arch::LARGEST;

    pub(crate) fn resident_blocks(blocks: u32) -> SpecError {
        SpecError::at_value(
            &["blocks_per_sm"],
            format!(
                "`blocks_per_sm: {blocks}`: an SM holds at most {most} blocks; use {most} or less",
                most = LARGEST.blocks,
            ),
        )
    }

    pub(crate) fn resident_threads(blocks: u32, threads: u64) -> SpecError {
        let most = LARGEST.threads;
        SpecError::at_value(
            &["blocks_per_sm", "tile", "thread", "block"],
            format!(
                "`blocks_per_sm: {blocks}` with {threads} threads per block is {} threads, and an \
                 SM holds at most {most}; use {} or less",
                u64::from(blocks) * threads,
                u64::from(most) / threads.max(1),
            ),
        )
    }
}
