//! The rules of clusters.

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
            return require(!k.speaks_of_clusters(), || {
                "what blocks of a cluster do, in a kernel without clusters".into()
            });
        }
        // In which orders their blocks, and those of others, would come to one word is not told.
        require(![Space::Shared, Space::Global].iter().any(|on| k.has_atomics(*on)), || {
            "an atomic in a kernel of clusters".into()
        })
    }
}
