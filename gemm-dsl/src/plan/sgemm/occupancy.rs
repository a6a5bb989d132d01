//! Checks of how many blocks a multiprocessor holds at once.

pub(super) mod messages;

use super::shared_memory::{SharedSum, blocks_by_shared};
use crate::plan::Faults;
use crate::spec::SgemmSpec;
use crate::target::arch::LARGEST;

/// No multiprocessor holds more blocks than so many.
pub(super) fn resident_blocks(spec: &SgemmSpec, faults: &mut Faults) {
    let blocks = spec.blocks_per_sm;
    faults.require(blocks <= LARGEST.blocks, || messages::resident_blocks(blocks));
}

/// The same of the threads of all blocks.
pub(super) fn resident_threads(spec: &SgemmSpec, threads: u64, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        let blocks = spec.blocks_per_sm;
        faults.require(u64::from(blocks) * threads <= LARGEST.threads.into(), || {
            messages::resident_threads(blocks, threads)
        });
    }
}

/// The same of their shared memory.
pub(super) fn resident_shared(spec: &SgemmSpec, sum: &SharedSum, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        let (blocks, bytes) = (spec.blocks_per_sm, sum.total());
        let most = blocks_by_shared(bytes);
        faults
            .require(u128::from(blocks) <= most, || messages::resident_shared(blocks, bytes, most));
    }
}
