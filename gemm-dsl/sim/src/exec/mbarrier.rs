//! Mbarrier operations, and TMA copies whose bytes count at mbarriers. Mbarriers are numbered
//! across all blocks of a cluster, in the same order in each block.

use super::machine::{Machine, Registers};
use crate::error::{FaultKind, MbarrierFault, Position};
use crate::lower::code::{Barriers, Mbarrier, MbarrierOp, TensorCopy};
use crate::mask::{WARP, lanes_of};
use crate::observe::{BoxedTrap, trap};
use crate::race::mbarrier::{Arrival, Issuer};
use crate::region::Region;
use crate::trace::{Action, BoxCopy};
use gemm_dsl::ir::{ProxyFence, Space};

/// Maximum number of rows of a TMA box whose addresses are recorded.
const ROWS: u64 = 8;

/// Mbarrier phase for which a warp waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AwaitedPhase {
    /// Number of the mbarrier in the cluster.
    pub(crate) slot: u32,
    pub(crate) parity: u32,
}

impl Machine<'_> {
    /// Numbers of the mbarriers that the lanes name.
    pub(super) fn barriers(
        &mut self,
        at: &Barriers,
        regs: &Registers,
        mask: u32,
    ) -> Result<[usize; WARP], BoxedTrap> {
        let index = self.distances(&at.index, regs, mask)?;
        let (first, count) = self.launch.mbarrier_numbers[at.declaration as usize];
        for lane in lanes_of(mask) {
            if index[lane] >= count.into() {
                let name = &self.launch.kernel.mbarriers[at.declaration as usize].name;
                let index = vec![i128::from(index[lane] as i64)];
                let (buffer, space) = (name.clone(), Space::Shared);
                let place = Position { buffer, space, index, at: None };
                let (extents, width) = (vec![count.into()], 1);
                return Err(trap(lane as u32, FaultKind::OutOfBounds { place, extents, width }));
            }
        }
        let first = self.slot_in(first as usize, self.rank);
        Ok(index.map(|index| first + index as usize))
    }

    /// Number of the same mbarrier in another block of the cluster.
    pub(super) fn slot_in(&self, slot: usize, rank: u32) -> usize {
        let of_block = self.launch.mbarriers() as usize;
        slot % of_block + rank as usize * of_block
    }

    /// Cluster rank of the block whose memory contains an mbarrier.
    pub(crate) fn rank_of_barrier(&self, slot: usize) -> u32 {
        slot as u32 / self.launch.mbarriers()
    }

    /// Name of the array in which an mbarrier is declared, and its index.
    pub(crate) fn name_of_barrier(&self, slot: usize) -> (String, u32) {
        let slot = self.slot_in(slot, 0);
        let numbers = self.launch.mbarrier_numbers.iter().zip(&self.launch.kernel.mbarriers);
        let of = |((first, count), _): &(&(u32, u32), _)| {
            (*first..first + count).contains(&(slot as u32))
        };
        let mut numbers = numbers.filter(of);
        let found =
            numbers.next().map(|((first, _), decl)| (decl.name.clone(), slot as u32 - first));
        found.unwrap_or_default()
    }

    /// Creates an mbarrier fault. `seen_by` is the rank of the block whose threads commit it.
    pub(crate) fn at_barrier(&self, slot: usize, seen_by: u32, wrong: MbarrierFault) -> FaultKind {
        let (barrier, index) = self.name_of_barrier(slot);
        let rank = self.rank_of_barrier(slot);
        let block = self.launch.block(self.launch.of_cluster(self.cluster, rank));
        let block = (rank != seen_by).then_some(block);
        FaultKind::Mbarrier { barrier, index, block, wrong }
    }

    #[cold]
    pub(super) fn wrong(&self, lane: usize, slot: usize, wrong: MbarrierFault) -> BoxedTrap {
        trap(lane as u32, self.at_barrier(slot, self.warp / self.launch.warps(), wrong))
    }

    /// Records an action at an mbarrier, and the completion of `phase` if the action completed it.
    fn did_at(&mut self, slot: usize, phase: u32, did: impl FnOnce(u32) -> Action) {
        let rank = self.rank_of_barrier(slot);
        let barrier = slot as u32 % self.launch.mbarriers();
        let is_over = self.mbarriers.state(slot).phase > phase;
        if let Some(recorder) = self.recorder() {
            recorder.did(rank, did(barrier));
            if is_over {
                recorder.did(rank, Action::Completed { barrier, phase });
            }
        }
    }

    /// Executes an mbarrier operation. Returns the awaited phase if the warp has to wait.
    pub(crate) fn mbarrier(
        &mut self,
        barrier: &Mbarrier,
        regs: &Registers,
        mask: u32,
    ) -> Result<Option<AwaitedPhase>, BoxedTrap> {
        let slots = self.barriers(&barrier.at, regs, mask)?;
        let first = self.warp as usize * WARP;
        match &barrier.op {
            MbarrierOp::Init(count) => {
                for lane in lanes_of(mask) {
                    let clocks = &self.observers.race.clocks;
                    let made = self.mbarriers.make(clocks, slots[lane], first + lane, *count);
                    made.map_err(|wrong| self.wrong(lane, slots[lane], wrong))?;
                    let arrivals = *count;
                    self.did_at(slots[lane], 0, |barrier| Action::Made { barrier, arrivals });
                }
            }
            MbarrierOp::Arrive(bytes) => {
                let bytes = match bytes {
                    Some(bytes) => self.distances(bytes, regs, mask)?,
                    None => [0; WARP],
                };
                for lane in lanes_of(mask) {
                    let phase = self.mbarriers.state(slots[lane]).phase;
                    let clocks = &mut self.observers.race.clocks;
                    let arrival = Arrival { bytes: bytes[lane] as i64, relaxed: false };
                    let arrived = self.mbarriers.arrive(clocks, slots[lane], first + lane, arrival);
                    arrived.map_err(|wrong| self.wrong(lane, slots[lane], wrong))?;
                    let bytes = bytes[lane];
                    self.did_at(slots[lane], phase, |barrier| Action::Arrived { barrier, bytes });
                }
            }
            MbarrierOp::ArriveRemote(block, relaxed) => {
                let blocks = self.distances(block, regs, mask)?;
                self.arrive_remote(&slots, &blocks, *relaxed, mask)?;
            }
            MbarrierOp::Wait(parity) => {
                let parity = self.distances(parity, regs, mask)?;
                return self.wait_for_phase(&slots, &parity, mask);
            }
        }
        Ok(None)
    }

    /// Arrives at mbarriers of blocks of the cluster.
    fn arrive_remote(
        &mut self,
        slots: &[usize; WARP],
        blocks: &[u64; WARP],
        relaxed: bool,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let first = self.warp as usize * WARP;
        for lane in lanes_of(mask) {
            let rank = self.rank_in_cluster(blocks[lane], lane)?;
            let (slot, thread) = (self.slot_in(slots[lane], rank), first + lane);
            let phase = self.mbarriers.state(slot).phase;
            let clocks = &mut self.observers.race.clocks;
            let arrived = match rank == self.rank {
                true => {
                    let arrival = Arrival { bytes: 0, relaxed };
                    self.mbarriers.arrive(clocks, slot, thread, arrival)
                }
                false => self.mbarriers.arrive_from_other(clocks, slot, thread, self.stmt, relaxed),
            };
            arrived.map_err(|wrong| self.wrong(lane, slot, wrong))?;
            self.did_at(slot, phase, |barrier| Action::Arrived { barrier, bytes: 0 });
        }
        Ok(())
    }

    /// Waits for the phases with the parities that the lanes name. Returns the first incomplete
    /// phase.
    fn wait_for_phase(
        &mut self,
        slots: &[usize; WARP],
        parity: &[u64; WARP],
        mask: u32,
    ) -> Result<Option<AwaitedPhase>, BoxedTrap> {
        let first = self.warp as usize * WARP;
        for lane in lanes_of(mask) {
            let clocks = &self.observers.race.clocks;
            let lacking = self.mbarriers.lacking(clocks, slots[lane], first + lane, parity[lane]);
            let lacking = lacking.map_err(|wrong| self.wrong(lane, slots[lane], wrong))?;
            if lacking {
                let (slot, parity) = (slots[lane] as u32, parity[lane] as u32);
                return Ok(Some(AwaitedPhase { slot, parity }));
            }
        }
        let mut left = mask;
        while left != 0 {
            let slot = slots[left.trailing_zeros() as usize];
            let same = lanes_of(left).filter(|&lane| slots[lane] == slot);
            let lanes = same.fold(0, |lanes, lane| lanes | 1 << lane);
            left &= !lanes;
            let threads: Vec<usize> = lanes_of(lanes).map(|lane| first + lane).collect();
            let race = &mut self.observers.race;
            let (clocks, model) = (&mut race.clocks, race.model);
            self.mbarriers.wait(clocks, model, slot, threads.into_iter());
            let now = self.mbarriers.state(slot).phase;
            let phase = i64::from(now) - 1;
            self.did_at(slot, now, |barrier| Action::Waited { barrier, phase });
        }
        Ok(None)
    }

    pub(crate) fn proxy_fence(&mut self, fence: ProxyFence, mask: u32) {
        let first = self.warp as usize * WARP;
        let race = &mut self.observers.race;
        match fence {
            ProxyFence::Async => race.proxy_fence(lanes_of(mask).map(|lane| first + lane)),
            ProxyFence::MbarrierInit => {
                lanes_of(mask).for_each(|lane| self.mbarriers.show(&race.clocks, first + lane));
            }
        }
    }

    /// Issues a TMA copy in each lane. The data is moved at once. An access is a race unless the
    /// thread knows that the copy is complete.
    pub(crate) fn tensor_copy(
        &mut self,
        copy: &TensorCopy,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let slots = self.barriers(&copy.barrier, regs, mask)?;
        let mut at = Vec::with_capacity(copy.at.len());
        for index in &copy.at {
            at.push(self.distances(index, regs, mask)?);
        }
        let offsets = self.offsets(&copy.to, regs, mask)?;
        let (own, count) = (self.rank, self.launch.cluster());
        let blocks = match &copy.multicast {
            Some(blocks) => self.distances(blocks, regs, mask)?,
            None => [1 << own; WARP],
        };
        for lane in lanes_of(mask) {
            let set = blocks[lane];
            if set == 0 || set >> count != 0 {
                let (mask, blocks) = (set as i64, count);
                return Err(trap(lane as u32, FaultKind::NoSuchBlocks { mask, blocks }));
            }
            let start = self.start_of_box(copy, offsets[lane], lane)?;
            let at: Vec<i64> = at.iter().map(|along| along[lane] as i64).collect();
            for rank in (0..count).filter(|rank| set >> rank & 1 == 1) {
                self.enter(rank);
                let arrived = self.box_arrives(copy, &at, start, lane, slots[lane]);
                self.enter(own);
                arrived?;
            }
            let to = self.region(&copy.to);
            let bytes = copy.tile.iter().product::<u64>() * u64::from(to.elem.size());
            self.observers.traffic.copied(self.stmt, bytes, set.count_ones());
        }
        Ok(())
    }

    /// Writes the TMA box of a lane to the current block, and counts its bytes at the block's
    /// mbarrier.
    fn box_arrives(
        &mut self,
        copy: &TensorCopy,
        at: &[i64],
        start: u32,
        lane: usize,
        slot: usize,
    ) -> Result<(), BoxedTrap> {
        let (slot, thread) = (self.slot_in(slot, self.rank), self.warp as usize * WARP + lane);
        let to = self.region(&copy.to);
        let (count, size) = (copy.tile.iter().product::<u64>(), to.elem.size());
        let clocks = &self.observers.race.clocks;
        let may = self.mbarriers.may_copy(clocks, slot, thread);
        may.map_err(|wrong| self.wrong(lane, slot, wrong))?;
        let elements = start..start + count as u32;
        self.observers.race.tma_write(self.warp, lane, to, elements.clone(), slot)?;
        self.observers.init.write(to, elements);
        let index = at.last().copied().unwrap_or(0);
        let from_start = index * i64::from(size);
        if from_start % 16 != 0 {
            let kind = FaultKind::MisalignedBox { index, bytes: from_start };
            return Err(trap(lane as u32, kind));
        }
        self.move_box(copy, at, to, start);
        self.happened += 1;
        let clocks = &mut self.observers.race.clocks;
        if self.rank != self.warp / self.launch.warps() {
            self.mbarriers.carry(clocks, slot, thread);
        }
        let issuer = Issuer { thread: thread as u32, stmt: self.stmt };
        let (phase, bytes) = (self.mbarriers.state(slot).phase, count * u64::from(size));
        let counted = self.mbarriers.count(clocks, slot, issuer, bytes);
        counted.map_err(|wrong| self.wrong(lane, slot, wrong))?;
        if self.recorder().is_some() {
            let (row, parts) = (copy.tile.last().copied().unwrap_or(1), 16 / u64::from(size));
            let rows = (count / row.max(1)).min(ROWS);
            let place = |(n, part): (u64, u64)| {
                let element = to.exchanged(start + (n * row + part * parts) as u32);
                to.base * 4 + element * size
            };
            let all = (0..rows).flat_map(|n| (0..row / parts.max(1)).map(move |part| (n, part)));
            let (at, parts) = (at.to_vec(), all.map(place).collect());
            let (from, into, tile) = (copy.from as usize, copy.to.region as usize, &copy.tile);
            self.did_at(slot, phase, |barrier| {
                let (tile, first) = (tile.clone(), start);
                Action::BoxCopy(BoxCopy { barrier, from, at, tile, to: into, first, bytes, parts })
            });
        }
        Ok(())
    }

    /// First element of a TMA box in the destination array. The whole box must be inside the array.
    fn start_of_box(&self, copy: &TensorCopy, offset: u32, lane: usize) -> Result<u32, BoxedTrap> {
        let to = self.region(&copy.to);
        let start = to.exchanged(offset);
        // Leading extents of 1 need no dimension in the array.
        let deep = copy.tile.iter().position(|extent| *extent > 1);
        let tile = &copy.tile[deep.unwrap_or(copy.tile.len() - 1)..];
        let outer = to.dims.len() - tile.len();
        let mut inside = true;
        let along = to.dims.iter().zip(&to.strides).skip(outer);
        for ((dim, stride), extent) in along.zip(tile) {
            inside &= u64::from(start) / stride % dim + extent <= *dim;
        }
        if !inside {
            return Err(trap(
                lane as u32,
                FaultKind::BoxOutside {
                    place: to.element(offset),
                    tile: copy.tile.clone(),
                    extents: to.dims.clone(),
                },
            ));
        }
        let bytes = copy.swizzle.alignment();
        let address = u64::from(to.base) * 4 + u64::from(start * to.elem.size());
        match address.is_multiple_of(bytes) {
            true => Ok(start),
            false => {
                let place = to.element(offset);
                Err(trap(lane as u32, FaultKind::MisalignedTile { place, bytes }))
            }
        }
    }

    /// Copies the elements of the TMA box at `at`. Elements outside the source array are zero.
    fn move_box(&mut self, copy: &TensorCopy, at: &[i64], to: &Region, start: u32) {
        let from = &self.launch.regions[copy.from as usize];
        let row = copy.tile.last().copied().unwrap_or(1);
        let rows = copy.tile.iter().rev().skip(1).product::<u64>();
        let (column, outer) = at.split_last().map_or((0, at), |(column, outer)| (*column, outer));
        for number in 0..rows {
            // Splits the row number into indices, starting with the innermost dimension.
            let (mut rest, mut offset, mut inside) = (number, 0, true);
            for (d, first) in outer.iter().enumerate().rev() {
                let index = first + (rest % copy.tile[d]) as i64;
                rest /= copy.tile[d];
                match u64::try_from(index) {
                    Ok(index) if index < from.dims[d] => offset += index * from.strides[d],
                    _ => inside = false,
                }
            }
            for i in 0..row {
                let index = column + i as i64;
                let within = inside
                    && u64::try_from(index).is_ok_and(|i| i < from.dims[from.dims.len() - 1]);
                let bits = if within { self.bits(from, (offset as i64 + index) as u32) } else { 0 };
                let element = to.exchanged(start + (number * row + i) as u32);
                self.set_bits(to, element, bits);
            }
        }
    }
}
