//! Verifier rules for clusters of blocks.

use super::{Verifier, VerifyResult, require};
use crate::ir::{Access, Expr, MbarrierRef, Space, Ty};
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

    /// Checks a store to shared memory of a block of the cluster.
    pub(super) fn store_remote(
        &self,
        block: &Expr,
        target: &Access,
        value: &Expr,
        barrier: Option<&MbarrierRef>,
    ) -> VerifyResult {
        if let Some(barrier) = barrier {
            self.mbarrier_ref(barrier)?;
            let size = target.buffer.elem.size();
            require(!target.is_vector() && size >= 4, || {
                "an asynchronous store of other than 4 or 8 bytes".into()
            })?;
        }
        let ty = self.access(target)?;
        let buffer = &self.k.buffers[target.buffer.id];
        require(buffer.space == Space::Shared, || {
            format!("a store to {} of another block, which is not shared", buffer.name)
        })?;
        require(self.ty(block)? == Ty::I32, || "a block of the cluster that is not I32".into())?;
        require(self.ty(value)? == ty, || "a store of another type".into())
    }
}
