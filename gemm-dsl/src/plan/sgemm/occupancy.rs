//! Checks of the number of resident blocks per SM.

pub(super) mod messages;

use super::shared_memory::{SharedBytes, blocks_by_shared};
use crate::plan::Faults;
use crate::spec::SgemmSpec;
use crate::target::arch::LARGEST;

/// Checks `blocks_per_sm` against the maximum number of blocks per SM.
pub(super) fn resident_blocks(spec: &SgemmSpec, faults: &mut Faults) {
    let blocks = spec.resident_blocks();
    faults.require(blocks <= LARGEST.blocks, || messages::resident_blocks(blocks));
}

/// Checks the threads of all resident blocks against the limit of an SM.
pub(super) fn resident_threads(spec: &SgemmSpec, threads: u64, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        let blocks = spec.resident_blocks();
        faults.require(u64::from(blocks) * threads <= LARGEST.threads.into(), || {
            messages::resident_threads(blocks, threads)
        });
    }
}

/// Checks the shared memory of all resident blocks against the limit of an SM.
pub(super) fn resident_shared(spec: &SgemmSpec, sum: &SharedBytes, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        let (blocks, bytes) = (spec.resident_blocks(), sum.total());
        let most = blocks_by_shared(bytes);
        faults
            .require(u128::from(blocks) <= most, || messages::resident_shared(blocks, bytes, most));
    }
}
