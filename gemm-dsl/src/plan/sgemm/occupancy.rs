//! Check of the shared memory of the resident blocks of an SM.

pub(super) mod messages;

use super::shared_memory::{SharedBytes, blocks_by_shared};
use crate::plan::Faults;
use crate::spec::SgemmSpec;

/// Checks the shared memory of all resident blocks against the limit of an SM.
pub(super) fn resident_shared(spec: &SgemmSpec, sum: &SharedBytes, faults: &mut Faults) {
    if faults.sound(&["blocks_per_sm"]) {
        let (blocks, bytes) = (spec.resident_blocks(), sum.total());
        let most = blocks_by_shared(bytes);
        faults
            .require(u128::from(blocks) <= most, || messages::resident_shared(blocks, bytes, most));
    }
}
