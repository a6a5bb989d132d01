//! Memory of a running warp: addresses, their checks, loads and stores.

use super::code::{Index, Memory, Value};
use super::error::FaultKind;
use super::lanes::{ALL, Lanes, WARP, lanes_of, mask_where};
use super::machine::{Machine, Registers};
use super::observe::{Groups, Kind, Observer, Request, Stopped, stop};
use super::region::Region;
use crate::ir::Space;
use std::sync::atomic::Ordering;

/// The first word that each lane accesses, counted from the buffer's first.
type Words = [u32; WARP];

impl<'l> Machine<'l> {
    fn region(&self, memory: &Memory) -> &'l Region {
        &self.launch.regions[memory.region as usize]
    }

    /// The words that the lanes access, all inside the extents and the allocation, and aligned.
    fn words(&mut self, memory: &Memory, regs: &Registers, mask: u32) -> Result<Words, Stopped> {
        if let Some(pointer) = &memory.pointer {
            return self.pointed(memory, pointer, regs, mask);
        }
        let region = self.region(memory);
        // Inside the extents of a roomy region every offset fits 32 bits, so it may be computed
        // modulo 2^32.
        let mut words = [0; WARP];
        let mut wrong = if memory.vector && memory.index.is_empty() { mask } else { 0 };
        for (d, index) in memory.index.iter().enumerate() {
            let reach = if memory.vector && d == region.contiguous { 3 } else { 0 };
            let limit = region.dims[d].saturating_sub(reach);
            let stride = region.strides[d] as u32;
            match index {
                Index::Scalar(scalar) => {
                    let index = self.scalar(scalar, regs, mask)?;
                    if index as u64 >= limit {
                        wrong |= mask;
                    }
                    let offset = (index as u32).wrapping_mul(stride);
                    words.iter_mut().for_each(|w| *w = offset.wrapping_add(*w));
                }
                Index::I32(lane) => {
                    let mut buffer = Lanes::ZERO;
                    let index = &self.lane(lane, regs, mask, &mut buffer)?.0;
                    let limit = limit.min(1 << 31) as u32;
                    wrong |= mask_where(|l| index[l] >= limit) & mask;
                    for l in 0..WARP {
                        words[l] = index[l].wrapping_mul(stride).wrapping_add(words[l]);
                    }
                }
                Index::U64(wide) => {
                    let mut index = [0; WARP];
                    self.wide(wide, regs, mask, &mut index)?;
                    wrong |= mask_where(|l| index[l] >= limit) & mask;
                    for l in 0..WARP {
                        words[l] = (index[l] as u32).wrapping_mul(stride).wrapping_add(words[l]);
                    }
                }
            }
        }
        if wrong != 0 {
            let lane = wrong.trailing_zeros();
            let index = self.index_of(memory, regs, lane)?;
            return Err(stop(lane, region.out_of_bounds(index, memory.vector)));
        }
        if !region.roomy {
            self.inside(memory, regs, mask)?;
        }
        if memory.vector {
            let crooked = mask_where(|l| !(words[l] + region.skew).is_multiple_of(4)) & mask;
            if crooked != 0 {
                let lane = crooked.trailing_zeros();
                let place = region.place(self.index_of(memory, regs, lane)?);
                return Err(stop(lane, FaultKind::Misaligned { place }));
            }
        }
        Ok(words)
    }

    /// The logical index of one lane.
    fn index_of(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        lane: u32,
    ) -> Result<Vec<i128>, Stopped> {
        let (l, mask) = (lane as usize, 1 << lane);
        let index = memory.index.iter().map(|index| match index {
            Index::Scalar(scalar) => Ok(self.scalar(scalar, regs, mask)?.into()),
            Index::I32(lane) => {
                let mut buffer = Lanes::ZERO;
                Ok((self.lane(lane, regs, mask, &mut buffer)?.0[l] as i32).into())
            }
            Index::U64(wide) => {
                let mut index = [0; WARP];
                self.wide(wide, regs, mask, &mut index)?;
                Ok(index[l].into())
            }
        });
        index.collect()
    }

    /// Checks lane by lane that indices inside the extents are inside the allocation.
    fn inside(&mut self, memory: &Memory, regs: &Registers, mask: u32) -> Result<(), Stopped> {
        let region = self.region(memory);
        for lane in lanes_of(mask) {
            let index = self.index_of(memory, regs, lane as u32)?;
            let steps = index.iter().zip(&region.strides);
            let offset: i128 = steps.map(|(i, &stride)| i * i128::from(stride)).sum();
            let last = offset + if memory.vector { 3 } else { 0 };
            if last >= region.words.into() {
                let kind = FaultKind::BeyondAllocation {
                    place: region.place(index),
                    offset: last as u64,
                    len: region.words,
                };
                return Err(stop(lane as u32, kind));
            }
        }
        Ok(())
    }

    fn observe(
        &mut self,
        kind: Kind,
        memory: &Memory,
        words: &Words,
        mask: u32,
    ) -> Result<(), Stopped> {
        let request = Request {
            kind,
            buffer: memory.region as usize,
            region: self.region(memory),
            warp: self.warp,
            mask,
            groups: &Groups::new(words, mask),
            width: if memory.vector { 4 } else { 1 },
            stmt: self.stmt,
        };
        self.observers.access(&request)
    }

    /// Reads one element, or four consecutive ones, in the active lanes.
    pub(super) fn load<const N: usize>(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        kind: Kind,
        out: &mut [Lanes; N],
    ) -> Result<(), Stopped> {
        let words = self.words(memory, regs, mask)?;
        self.observe(kind, memory, &words, mask)?;
        let region = self.region(memory);
        if region.space == Space::Shared {
            for l in lanes_of(mask) {
                let at = (region.base + words[l]) as usize;
                for (out, &word) in out.iter_mut().zip(&self.shared[at..]) {
                    out.0[l] = word;
                }
            }
        } else if let Some(buffer) = &region.memory {
            let memory = buffer.words();
            for l in lanes_of(mask) {
                for (out, word) in out.iter_mut().zip(&memory[words[l] as usize..]) {
                    out.0[l] = word.load(Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Reads an element of a register array, or four, at an index that is not static.
    pub(super) fn load_register<const N: usize>(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        out: &mut [Lanes; N],
    ) -> Result<(), Stopped> {
        let words = self.words(memory, regs, mask)?;
        let base = self.region(memory).base;
        for l in lanes_of(mask) {
            for (slot, out) in (base + words[l]..).zip(out.iter_mut()) {
                self.ready(slot, regs, 1 << l)?;
                out.0[l] = regs.lanes[slot as usize].0[l];
            }
        }
        Ok(())
    }

    /// Fails unless a lane slot has a value in all active lanes.
    #[inline]
    pub(super) fn ready(&self, slot: u32, regs: &Registers, mask: u32) -> Result<(), Stopped> {
        let missing = mask & !regs.ready[slot as usize];
        if missing == 0 { Ok(()) } else { Err(self.unready(slot, missing)) }
    }

    #[cold]
    fn unready(&self, slot: u32, missing: u32) -> Stopped {
        let holds = |r: &&Region| {
            r.space == Space::Register && (r.base..r.base + r.words as u32).contains(&slot)
        };
        let region = self.launch.regions.iter().find(holds);
        let place = region.map(|r| r.element((slot - r.base).into()));
        let place = place.unwrap_or_else(|| super::error::Place {
            buffer: String::new(),
            space: Space::Register,
            index: Vec::new(),
        });
        stop(missing.trailing_zeros(), FaultKind::Uninitialised { place })
    }

    /// Writes a register array at an index that is not static.
    pub(super) fn store_register(
        &mut self,
        memory: &Memory,
        value: &Value,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        let words = self.words(memory, regs, mask)?;
        let mut values = [Lanes::ZERO; 4];
        let width = self.value(value, regs, mask, &mut values)?;
        let base = self.region(memory).base;
        for l in lanes_of(mask) {
            for (slot, value) in (base + words[l]..).zip(&values[..width]) {
                regs.lanes[slot as usize].0[l] = value.0[l];
                regs.ready[slot as usize] |= 1 << l;
            }
        }
        Ok(())
    }

    /// Writes shared or global memory.
    pub(super) fn store(
        &mut self,
        memory: &Memory,
        value: &Value,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        let mut values = [Lanes::ZERO; 4];
        let width = self.value(value, regs, mask, &mut values)?;
        let words = self.words(memory, regs, mask)?;
        self.observe(Kind::Write, memory, &words, mask)?;
        self.write(memory, &words, &values[..width], mask);
        Ok(())
    }

    /// Evaluates what a store writes; gives the number of elements.
    fn value(
        &mut self,
        value: &Value,
        regs: &Registers,
        mask: u32,
        out: &mut [Lanes; 4],
    ) -> Result<usize, Stopped> {
        match value {
            Value::One(lane) => {
                let mut buffer = Lanes::ZERO;
                out[0] = *self.lane(lane, regs, mask, &mut buffer)?;
                Ok(1)
            }
            Value::Four(vector) => {
                self.vector(vector, regs, mask, out)?;
                Ok(4)
            }
        }
    }

    fn write(&mut self, memory: &Memory, words: &Words, values: &[Lanes], mask: u32) {
        let region = self.region(memory);
        if region.space == Space::Shared {
            for l in lanes_of(mask) {
                let at = (region.base + words[l]) as usize;
                for (word, value) in self.shared[at..].iter_mut().zip(values) {
                    *word = value.0[l];
                }
            }
        } else if let Some(buffer) = &region.memory {
            let memory = buffer.words();
            for l in lanes_of(mask) {
                for (word, value) in memory[words[l] as usize..].iter().zip(values) {
                    word.store(value.0[l], Ordering::Relaxed);
                }
            }
        }
    }

    /// Issues an asynchronous copy. The data moves at once: whoever looks before the copy is known
    /// to be over is in a race with it.
    pub(super) fn copy(
        &mut self,
        target: &Memory,
        source: &Memory,
        valid: u32,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), Stopped> {
        let mut values = [Lanes::ZERO; 4];
        if valid != 0 {
            if source.vector {
                self.load(source, regs, valid, Kind::CopyRead, &mut values)?;
            } else {
                let first = std::array::from_mut(&mut values[0]);
                self.load(source, regs, valid, Kind::CopyRead, first)?;
            }
        }
        if valid != ALL {
            for value in &mut values {
                for l in 0..WARP {
                    value.0[l] &= (valid >> l & 1).wrapping_neg();
                }
            }
        }
        let words = self.words(target, regs, mask)?;
        self.observe(Kind::CopyWrite, target, &words, mask)?;
        let width = if target.vector { 4 } else { 1 };
        self.write(target, &words, &values[..width], mask);
        Ok(())
    }
}
