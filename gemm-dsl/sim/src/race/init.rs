//! Detector of uninitialised reads of shared memory.

use crate::error::FaultKind;
use crate::observe::{BoxedTrap, Observer, Request, Sync, trap};
use crate::region::Region;
use gemm_dsl::ir::Space;
use std::ops::Range;

/// Bit set of the shared-memory elements that were written since the block started.
pub(crate) struct Init {
    written: Vec<u64>,
}

impl Init {
    pub(crate) fn new(elements: u32) -> Self {
        let len = (elements as usize).div_ceil(64);
        Self { written: vec![0; len] }
    }
}

impl Init {
    /// Marks elements of a shared array as written.
    pub(crate) fn write(&mut self, region: &Region, elements: Range<u32>) {
        for at in elements {
            let at = (region.shadow + at) as usize;
            self.written[at / 64] |= 1 << (at % 64);
        }
    }

    /// Returns the first unwritten element of a range in a shared array.
    pub(crate) fn missing(&self, region: &Region, elements: Range<u32>) -> Option<u32> {
        elements.into_iter().find(|at| {
            let at = (region.shadow + at) as usize;
            self.written[at / 64] >> (at % 64) & 1 == 0
        })
    }
}

impl Observer for Init {
    fn begin(&mut self, _: u32) {
        self.written.fill(0);
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap> {
        if request.region.space != Space::Shared {
            return Ok(());
        }
        // A vector is aligned, so all its elements are in the same entry of the bit set.
        let bits = (1 << request.width) - 1;
        for &(offset, lanes) in request.groups.as_slice() {
            let at = request.region.shadow + offset;
            let entry = &mut self.written[at as usize / 64];
            let bits = bits << (at % 64);
            if request.kind.reads() && *entry & bits != bits {
                let missing = (!*entry & bits).trailing_zeros() - at % 64;
                let place = request.region.element(offset + missing);
                let kind = FaultKind::Uninitialised { place };
                return Err(trap(lanes.trailing_zeros(), kind));
            }
            if request.kind.writes() {
                *entry |= bits;
            }
        }
        Ok(())
    }

    fn sync(&mut self, _: Sync<'_>) {}
}
