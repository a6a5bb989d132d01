//! Stores to shared memory of other blocks of the cluster: the target block must have started, and
//! must not have exited.
//!
//! Both follow from clocks, as all order does. A thread knows that a block has started if it is
//! ordered after some access of the block's threads. A block stays for a store if one of its
//! threads is ordered after the store.

use super::clock::Clocks;
use crate::race::mbarrier::Issuer;
use crate::race::model::ORDINARY;
use std::ops::Range;

/// Last store of a thread to the shared memory of another block.
struct Last {
    rank: u32,
    epoch: u32,
    issuer: Issuer,
}

/// Stores of the threads of a cluster to the shared memory of other blocks.
#[derive(Default)]
pub(crate) struct RemoteStores(Vec<Last>);

impl RemoteStores {
    pub(crate) fn begin(&mut self) {
        self.0.clear();
    }

    /// Returns true if a thread is ordered after the start of a block with these threads.
    pub(crate) fn has_started(clocks: &Clocks, thread: usize, mut block: Range<usize>) -> bool {
        block.any(|other| clocks.learnt(thread, clocks.agent(other, ORDINARY)) > 0)
    }

    /// Records a store of a thread to the block with this rank.
    pub(crate) fn add(&mut self, clocks: &Clocks, rank: u32, issuer: Issuer) {
        let epoch = clocks.epoch(issuer.thread as usize, ORDINARY);
        let is_same = |last: &&mut Last| (last.rank, last.issuer.thread) == (rank, issuer.thread);
        match self.0.iter_mut().find(is_same) {
            Some(last) => (last.epoch, last.issuer) = (epoch, issuer),
            None => self.0.push(Last { rank, epoch, issuer }),
        }
    }

    /// Returns a store that no thread of its target block is ordered after, with the rank of the
    /// block.
    pub(crate) fn left_behind(
        &self,
        clocks: &Clocks,
        threads_of: impl Fn(u32) -> Range<usize>,
    ) -> Option<(u32, Issuer)> {
        let is_known = |last: &Last| {
            let agent = clocks.agent(last.issuer.thread as usize, ORDINARY) as usize;
            threads_of(last.rank).any(|thread| clocks.ordered(thread, ORDINARY, agent, last.epoch))
        };
        let left = self.0.iter().find(|last| !is_known(last))?;
        Some((left.rank, left.issuer))
    }
}
