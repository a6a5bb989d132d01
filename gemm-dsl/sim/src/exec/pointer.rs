//! Pointers of a running warp. The slot of a pointer contains an element number of its buffer for
//! each lane. For a list, it also contains the number of the array.

use super::lanes::Lanes;
use super::machine::{Machine, Registers};
use crate::buffer::numbered_memory::ListedArray;
use crate::error::FaultKind;
use crate::lower::code::expr::Index;
use crate::lower::code::{Memory, NOWHERE, Pointer};
use crate::mask::{WARP, lanes_of};
use crate::observe::{BoxedTrap, trap};
use crate::region::Region;

/// Bit position of the array number in a pointer into a list.
const LIST: u32 = 40;

impl Machine<'_> {
    /// Evaluates an index in all lanes. Negative values are in two's complement.
    pub(crate) fn distances(
        &mut self,
        index: &Index,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u64; WARP], BoxedTrap> {
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

    /// Slot of the pointer in each lane.
    fn slots(
        &mut self,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u32; WARP], BoxedTrap> {
        let Some(index) = &pointer.index else {
            return Ok([pointer.first; WARP]);
        };
        let index = self.distances(index, regs, mask)?;
        for lane in lanes_of(mask) {
            if index[lane] >= pointer.count.into() {
                let kind =
                    FaultKind::NoSuchPointer { index: index[lane] as i64, count: pointer.count };
                return Err(trap(lane as u32, kind));
            }
        }
        Ok(index.map(|i| pointer.first + i as u32))
    }

    /// Sets a pointer to an element. Only accesses check bounds.
    pub(crate) fn point(
        &mut self,
        pointer: &Pointer,
        at: &Memory,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let slots = self.slots(pointer, regs, mask)?;
        let region = &self.launch.regions[at.region as usize];
        let mut words = [0u64; WARP];
        for (d, (index, &stride)) in at.index.iter().zip(&region.strides).enumerate() {
            let mut index = self.distances(index, regs, mask)?;
            let mut stride = stride;
            if let (0, Some(list)) = (d, &region.list) {
                // An array number beyond the list is clamped to the list's length, which is not the
                // number of an array.
                index = index.map(|nth| nth.min(list.len() as u64));
                stride = 1 << LIST;
            }
            for (word, index) in words.iter_mut().zip(index) {
                *word = word.wrapping_add(index.wrapping_mul(stride));
            }
        }
        for lane in lanes_of(mask) {
            regs.wides[slots[lane] as usize][lane] = words[lane];
        }
        Ok(())
    }

    /// Returns a fault unless the chosen array of the list exists in each lane.
    pub(crate) fn chosen(
        &mut self,
        list: u32,
        nth: &Index,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let region = &self.launch.regions[list as usize];
        let extents = region.dims[..1].to_vec();
        let nth = self.distances(nth, regs, mask)?;
        match lanes_of(mask).find(|&lane| nth[lane] >= extents[0]) {
            None => Ok(()),
            Some(lane) => {
                let place = region.nowhere(vec![(nth[lane] as i64).into()]);
                let kind = FaultKind::OutOfBounds { place, extents, width: 1 };
                Err(trap(lane as u32, kind))
            }
        }
    }

    pub(crate) fn advance(
        &mut self,
        pointer: &Pointer,
        by: &Index,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
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

    /// Evaluates the elements that the lanes access through a pointer. Checks alignment and the
    /// bounds of the allocation.
    pub(crate) fn pointed(
        &mut self,
        memory: &Memory,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
    ) -> Result<[u32; WARP], BoxedTrap> {
        let region = &self.launch.regions[memory.region as usize];
        let (slots, distances) = self.pointers(memory, pointer, regs, mask)?;
        let width = region.width(memory.vector);
        let reach = u64::from(width - 1);
        let mut words = [0; WARP];
        for lane in lanes_of(mask) {
            let from = regs.wides[slots[lane] as usize][lane];
            let Some(PointerTarget { nth, word, array }) =
                PointerTarget::new(region, from, distances[lane])
            else {
                let name = region.name.clone();
                return Err(trap(lane as u32, FaultKind::UnsetPointer { into: name }));
            };
            if word.checked_add(reach).is_none_or(|last| last >= array.len) {
                let index = nth.into_iter().chain([(word as i64).into()]).collect();
                let kind = FaultKind::BeyondAllocation {
                    place: region.nowhere(index),
                    offset: word.wrapping_add(reach),
                    len: array.len,
                };
                return Err(trap(lane as u32, kind));
            }
            let word = array.first + word;
            if memory.vector && !(word + u64::from(region.skew)).is_multiple_of(width.into()) {
                let place = region.element(word as u32);
                return Err(trap(lane as u32, FaultKind::Misaligned { place }));
            }
            words[lane] = word as u32;
        }
        Ok(words)
    }

    /// Slot of the pointer in each lane, and the distance of the accessed element from the pointer.
    pub(crate) fn pointers(
        &mut self,
        memory: &Memory,
        pointer: &Pointer,
        regs: &Registers,
        mask: u32,
    ) -> Result<([u32; WARP], [u64; WARP]), BoxedTrap> {
        let slots = self.slots(pointer, regs, mask)?;
        let mut distances = [0; WARP];
        for index in &memory.index {
            distances = self.distances(index, regs, mask)?;
        }
        Ok((slots, distances))
    }
}

/// Target of a lane's access through a pointer.
pub(crate) struct PointerTarget {
    /// Number of the array, for a pointer into a list.
    pub(crate) nth: Option<i128>,
    /// Element number in the array, in two's complement if the element is before the first.
    pub(crate) word: u64,
    /// Array that is accessed; empty if the list has no such array.
    pub(crate) array: ListedArray,
}

impl PointerTarget {
    /// Element at a distance from a pointer's value. `None` if the pointer was never set.
    #[inline]
    pub(crate) fn new(region: &Region, from: u64, distance: u64) -> Option<Self> {
        if from == NOWHERE {
            return None;
        }
        let word = from.wrapping_add(distance);
        let Some(list) = &region.list else {
            let array = ListedArray { first: 0, len: region.len };
            return Some(Self { nth: None, word, array });
        };
        // A position before the start of the array has borrowed from the array number.
        let word = word.wrapping_add(1 << (LIST - 1));
        let nth = (word >> LIST) as usize;
        let none = ListedArray { first: 0, len: 0 };
        let word = (word % (1 << LIST)).wrapping_sub(1 << (LIST - 1));
        let array = list.get(nth).copied().unwrap_or(none);
        Some(Self { nth: Some(nth as i128), word, array })
    }
    /// Distance from the first element of the buffer, in elements. `None` if the list has no such
    /// array.
    pub(crate) fn at(&self) -> Option<i64> {
        let is_there = self.nth.is_none() || self.array.len > 0;
        let first = i64::try_from(self.array.first).ok().filter(|_| is_there)?;
        first.checked_add(self.word as i64)
    }
}
