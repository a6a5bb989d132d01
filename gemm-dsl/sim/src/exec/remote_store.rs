//! Stores to shared memory of blocks of the cluster.

use super::machine::{Machine, Registers};
use super::memory::Quad;
use crate::error::FaultKind;
use crate::lower::code::{Memory, RemoteStore};
use crate::mask::{WARP, lanes_of};
use crate::observe::{AccessKind, BoxedTrap, trap};
use crate::race::mbarrier::Issuer;
use crate::race::remote_stores::RemoteStores;
use std::ops::Range;

impl Machine<'_> {
    /// Rank of the block that a lane names.
    pub(crate) fn rank_in_cluster(&self, named: u64, lane: usize) -> Result<u32, BoxedTrap> {
        let blocks = self.launch.cluster();
        if named >= blocks.into() {
            let block = named as i64;
            return Err(trap(lane as u32, FaultKind::NoSuchBlock { block, blocks }));
        }
        Ok(named as u32)
    }

    /// Threads of a block of the cluster.
    fn threads_of(&self, rank: u32) -> Range<usize> {
        let of_block = self.launch.warps() as usize * WARP;
        rank as usize * of_block..(rank as usize + 1) * of_block
    }

    /// Writes shared memory of the blocks that the lanes name.
    pub(crate) fn store_remote(
        &mut self,
        store: &RemoteStore,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut values = Quad::default();
        self.value(&store.value, regs, mask, &mut values)?;
        let named = self.distances(&store.block, regs, mask)?;
        let mut lanes_to = [0_u32; WARP];
        for lane in lanes_of(mask) {
            let rank = self.rank_in_cluster(named[lane], lane)?;
            lanes_to[rank as usize] |= 1 << lane;
            if store.barrier.is_none() {
                self.note_remote_store(rank, lane)?;
            }
        }
        let slots = match &store.barrier {
            Some(barrier) => Some(self.barriers(barrier, regs, mask)?),
            None => None,
        };
        let offsets = self.checked_offsets(AccessKind::Write, &store.target, regs, mask)?;
        let own = self.rank;
        for rank in 0..self.launch.cluster() {
            let lanes = lanes_to[rank as usize];
            if lanes == 0 {
                continue;
            }
            self.enter(rank);
            let stored = match &slots {
                None => self.observe(AccessKind::Write, &store.target, &offsets, lanes),
                Some(slots) => lanes_of(lanes)
                    .try_for_each(|lane| self.value_arrives(&store.target, lane, &offsets, slots)),
            };
            if stored.is_ok() {
                self.write(&store.target, &offsets, &values, lanes);
            }
            self.enter(own);
            stored?;
        }
        Ok(())
    }

    /// Checks and records an asynchronous store of a lane to the current block, and counts its
    /// bytes at the block's mbarrier.
    fn value_arrives(
        &mut self,
        to: &Memory,
        lane: usize,
        offsets: &[u32; WARP],
        slots: &[usize; WARP],
    ) -> Result<(), BoxedTrap> {
        let (slot, thread) =
            (self.slot_in(slots[lane], self.rank), self.warp as usize * WARP + lane);
        let race = &mut self.observers.race;
        let may = self.mbarriers.may_copy(&race.clocks, slot, thread);
        may.map_err(|wrong| self.wrong(lane, slot, wrong))?;
        let region = self.region(to);
        let elements = offsets[lane]..offsets[lane] + 1;
        let race = &mut self.observers.race;
        race.async_store(self.warp, lane, region, elements.clone(), slot)?;
        self.observers.init.write(region, elements);
        let issuer = Issuer { thread: thread as u32, stmt: self.stmt };
        let clocks = &mut self.observers.race.clocks;
        self.mbarriers.release(clocks, slot, thread);
        let counted = self.mbarriers.count(clocks, slot, issuer, region.elem.size().into());
        counted.map_err(|wrong| self.wrong(lane, slot, wrong))
    }

    /// Checks and records that a lane writes shared memory of a block.
    fn note_remote_store(&mut self, rank: u32, lane: usize) -> Result<(), BoxedTrap> {
        if rank == self.rank {
            return Ok(());
        }
        let thread = self.warp as usize * WARP + lane;
        let clocks = &self.observers.race.clocks;
        if !RemoteStores::has_started(clocks, thread, self.threads_of(rank)) {
            let block = self.launch.block(self.launch.of_cluster(self.cluster, rank));
            return Err(trap(lane as u32, FaultKind::RemoteStore { block, exited: false }));
        }
        let issuer = Issuer { thread: thread as u32, stmt: self.stmt };
        self.remote_stores.add(clocks, rank, issuer);
        Ok(())
    }
}
