//! Verifier rules for clusters of blocks.

use super::{Verifier, VerifyResult, require};
use crate::ir::Space;
use crate::target::arch;

impl Verifier<'_> {
    pub(super) fn cluster(&self) -> VerifyResult {
        let k = self.k;
        let blocks = k.cluster;
        require((1..=arch::CLUSTER_BLOCKS).contains(&blocks), || {
            format!("a cluster of {blocks} blocks")
        })?;
        if blocks == 1 {
            return require(!k.uses_clusters(), || {
                "a cluster operation in a kernel without clusters".into()
            });
        }
        // The IR does not define an order between atomics of blocks in the same cluster or in
        // different clusters.
        require(![Space::Shared, Space::Global].iter().any(|on| k.has_atomics(*on)), || {
            "an atomic in a kernel of clusters".into()
        })
    }
}
