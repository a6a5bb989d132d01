//! Memory traffic of the machine code.

use super::super::quantity::SassCounters;
use crate::cost;
use crate::counters::access_fate::AccessFate;
use crate::mask::WARP;
use crate::observe::{AccessKind, Request};
use gemm_dsl::ir::Space;

impl SassCounters {
    /// Adds an access that a warp makes in the CUDA source, according to the access's fate.
    pub(super) fn access(&mut self, request: &Request<'_>, role: AccessFate) {
        let bytes = match role {
            AccessFate::Own => request.bytes(),
            AccessFate::First(bytes) => bytes,
            AccessFate::Gone => return,
        };
        match (request.region.space, request.kind) {
            // Asynchronous copies bypass the unit that counts stores, and atomics have their own
            // counter.
            (Space::Shared, AccessKind::CopyWrite) | (_, AccessKind::Atomic(_)) => {}
            (Space::Shared, kind) => {
                let mut words = [(0, 0); WARP];
                let words = request.words(&mut words);
                let cost = cost::wavefronts(words, bytes, kind.writes());
                if kind.writes() {
                    self.shared_store_wavefronts += cost.wavefronts;
                    self.shared_store_conflicts += cost.conflicts();
                } else {
                    self.shared_load_wavefronts += cost.wavefronts;
                    self.shared_load_conflicts += cost.conflicts();
                }
            }
            (Space::Global, kind) => {
                let mut sectors = [0; WARP];
                let sectors = cost::sectors(request.sectors(&mut sectors));
                if kind.writes() {
                    self.global_store_requests += 1;
                    self.global_store_sectors += sectors;
                } else {
                    self.global_load_requests += 1;
                    self.global_load_sectors += sectors;
                }
            }
            (Space::Register, _) => {}
        }
    }
}
