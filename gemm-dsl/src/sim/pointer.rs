//! Pointers of a running warp: a slot for each holds, lane by lane, a word of the buffer it points
//! into.

use super::code::{Index, Memory, NOWHERE, Pointer};
use super::error::FaultKind;
use super::lanes::{Lanes, WARP, lanes_of};
use super::machine::{Machine, Registers};
use super::observe::{Stopped, stop};

impl Machine<'_> {
    /// An index in all lanes, a negative one as its two's complement.
    fn distances(
        &mut self,
        index: &Index,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u64; WARP], Stopped> {
        Ok(match index {
            Index::Uniform { value, .. } => [self.uniform(value, regs, mask)? as u64; WARP],
            Index::I32(lane) => {
                let mut buffer = Lanes::ZERO;
                self.lane(lane, regs, mask, &mut buffer)?.0.map(|i| i as i32 as u64)
            }
            Index::U64(wide) => {
                let mut distances = [0; WARP];
                self.wide(wide, regs, mask, &mut distances)?;
                distances
            }
        })
    }

    /// The slot of the pointer in each lane.
    fn slots(
        &mut self,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u32; WARP], Stopped> {
        let Some(index) = &pointer.index else {
            return Ok([pointer.first; WARP]);
        };
        let index = self.distances(index, regs, mask)?;
        for lane in lanes_of(mask) {
            if index[lane] >= pointer.count.into() {
                let kind =
                    FaultKind::NoSuchPointer { index: index[lane] as i64, count: pointer.count };
                return Err(stop(lane as u32, kind));
            }
        }
        Ok(index.map(|i| pointer.first + i as u32))
    }

    /// Sets a pointer to a place. The place need not exist: it is looked at by accesses only.
    pub(super) fn point(
        &mut self,
        pointer: &Pointer,
        at: &Memory,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        let slots = self.slots(pointer, regs, mask)?;
        let strides = &self.launch.regions[at.region as usize].strides;
        let mut words = [0u64; WARP];
        for (index, &stride) in at.index.iter().zip(strides) {
            let index = self.distances(index, regs, mask)?;
            for (word, index) in words.iter_mut().zip(index) {
                *word = word.wrapping_add(index.wrapping_mul(stride));
            }
        }
        for lane in lanes_of(mask) {
            regs.wides[slots[lane] as usize][lane] = words[lane];
        }
        Ok(())
    }

    /// Moves a pointer forward.
    pub(super) fn advance(
        &mut self,
        pointer: &Pointer,
        by: &Index,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        let slots = self.slots(pointer, regs, mask)?;
        let by = self.distances(by, regs, mask)?;
        for lane in lanes_of(mask) {
            let word = &mut regs.wides[slots[lane] as usize][lane];
            if *word != NOWHERE {
                *word = word.wrapping_add(by[lane]);
            }
        }
        Ok(())
    }

    /// Where the lanes access through a pointer, all inside the allocation and aligned.
    pub(super) fn pointed(
        &mut self,
        memory: &Memory,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u32; WARP], Stopped> {
        let region = &self.launch.regions[memory.region as usize];
        let slots = self.slots(pointer, regs, mask)?;
        let mut distances = [0; WARP];
        for index in &memory.index {
            distances = self.distances(index, regs, mask)?;
        }
        let width = region.width(memory.vector);
        let reach = u64::from(width - 1);
        let mut words = [0; WARP];
        for lane in lanes_of(mask) {
            let from = regs.wides[slots[lane] as usize][lane];
            if from == NOWHERE {
                let name = region.name.clone();
                return Err(stop(lane as u32, FaultKind::UnsetPointer { into: name }));
            }
            let word = from.wrapping_add(distances[lane]);
            if word.checked_add(reach).is_none_or(|last| last >= region.len) {
                let kind = FaultKind::BeyondAllocation {
                    place: region.place(vec![(word as i64).into()]),
                    offset: word.wrapping_add(reach),
                    len: region.len,
                };
                return Err(stop(lane as u32, kind));
            }
            if memory.vector && !(word + u64::from(region.skew)).is_multiple_of(width.into()) {
                let place = region.element(word as u32);
                return Err(stop(lane as u32, FaultKind::Misaligned { place }));
            }
            words[lane] = word as u32;
        }
        Ok(words)
    }
}
