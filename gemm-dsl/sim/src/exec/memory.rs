//! Memory accesses of a running warp: addresses, checks, loads and stores.

mod parts;
mod refused_access;
mod registers;

pub(crate) use parts::{part, words_of};

use super::lanes::{Lanes, WideLanes};
use super::machine::{Machine, Registers};
use crate::buffer::numbered_memory::NumberedMemory;
use crate::error::{FaultKind, Position};
use crate::lower::code::expr::Index;
use crate::lower::code::{Memory, StoredValue};
use crate::mask::{ALL, WARP, lanes_of, mask_where};
use crate::observe::{AccessKind, BoxedTrap, Observer, Request, trap};
use crate::region::{ElementId, Region};
use gemm_dsl::ir::Space;
use std::sync::atomic::Ordering;

use parts::{extended, part_bits};

/// First element of each lane's access, relative to the buffer's first element.
type Offsets = [u32; WARP];

pub(crate) type Quad = [Lanes; 4];

impl<'l> Machine<'l> {
    pub(crate) fn region(&self, memory: &Memory) -> &'l Region {
        &self.launch.regions[memory.region as usize]
    }

    /// Evaluates the offsets of the elements that the lanes access, and checks bounds and
    /// alignment.
    pub(crate) fn offsets(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
    ) -> Result<Offsets, BoxedTrap> {
        if let Some(pointer) = &memory.pointer {
            return self.pointed(memory, pointer, regs, mask);
        }
        let region = self.region(memory);
        let width = region.width(memory.vector);
        // An offset within bounds is inside the allocation and fits in 32 bits, so it may be
        // computed modulo 2^32.
        let mut offsets = [0; WARP];
        let mut wrong = if memory.vector && memory.index.is_empty() { mask } else { 0 };
        for (d, index) in memory.index.iter().enumerate() {
            let reach = if d == region.contiguous { width - 1 } else { 0 };
            let limit = region.dims[d].saturating_sub(reach.into());
            let stride = region.strides[d] as u32;
            if let (0, Some(list)) = (d, &region.list) {
                let nth = self.distances(index, regs, mask)?;
                wrong |= mask_where(|l| nth[l] >= limit) & mask;
                offsets = nth.map(|nth| Region::first_of(list, nth));
                continue;
            }
            match index {
                Index::Uniform { value, .. } => {
                    let index = self.uniform(value, regs, mask)?;
                    if index as u64 >= limit {
                        wrong |= mask;
                    }
                    let offset = (index as u32).wrapping_mul(stride);
                    offsets.iter_mut().for_each(|o| *o = offset.wrapping_add(*o));
                }
                Index::I32(lane) => {
                    let mut buffer = Lanes::ZERO;
                    let index = &self.lane(lane, regs, mask, &mut buffer)?.0;
                    let limit = limit.min(1 << 31) as u32;
                    wrong |= mask_where(|l| index[l] >= limit) & mask;
                    for l in 0..WARP {
                        offsets[l] = index[l].wrapping_mul(stride).wrapping_add(offsets[l]);
                    }
                }
                Index::U64(wide) => {
                    let mut index = [0; WARP];
                    self.wide(wide, regs, mask, &mut index)?;
                    wrong |= mask_where(|l| index[l] >= limit) & mask;
                    for l in 0..WARP {
                        let index = index[l] as u32;
                        offsets[l] = index.wrapping_mul(stride).wrapping_add(offsets[l]);
                    }
                }
            }
        }
        if wrong != 0 {
            let lane = wrong.trailing_zeros();
            let index = self.index_of(memory, regs, mask, lane)?;
            return Err(trap(lane, region.out_of_bounds(index, memory.vector)));
        }
        if region.swizzle.is_some() {
            offsets = offsets.map(|o| region.exchanged(o));
        }
        if memory.vector {
            let crooked = mask_where(|l| !(offsets[l] + region.skew).is_multiple_of(width)) & mask;
            if crooked != 0 {
                let lane = crooked.trailing_zeros();
                let index = self.index_of(memory, regs, mask, lane)?;
                let at = Some(offsets[lane as usize].into());
                let place = Position { at, ..region.nowhere(index) };
                return Err(trap(lane, FaultKind::Misaligned { place }));
            }
        }
        Ok(offsets)
    }

    /// Evaluates and checks the offsets of the elements that the lanes access, and notifies the
    /// observers.
    #[inline]
    pub(crate) fn accessed(
        &mut self,
        kind: AccessKind,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
    ) -> Result<Offsets, BoxedTrap> {
        let offsets = self.checked_offsets(kind, memory, regs, mask)?;
        self.observe(kind, memory, &offsets, mask)?;
        Ok(offsets)
    }

    /// Evaluates and checks the offsets of the elements that the lanes access.
    #[inline]
    pub(super) fn checked_offsets(
        &mut self,
        kind: AccessKind,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
    ) -> Result<Offsets, BoxedTrap> {
        match self.offsets(memory, regs, mask) {
            Ok(offsets) => Ok(offsets),
            Err(trap) => Err(self.refused(kind, memory, regs, mask, trap)),
        }
    }

    pub(super) fn observe(
        &mut self,
        kind: AccessKind,
        memory: &Memory,
        offsets: &Offsets,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let region = self.region(memory);
        if self.compares_writes && kind.reads() {
            self.asked = Some(self.stmt);
        }
        let groups = self.group_cache.groups(memory.access, offsets, mask);
        let request = Request {
            kind,
            buffer: memory.region as usize,
            region,
            warp: self.warp,
            mask,
            groups: &groups,
            width: region.width(memory.vector),
            stmt: self.stmt,
            access: memory.access,
            reversed: self.reversed,
        };
        if let Some(recorder) = self.recorder() {
            recorder.access(&request);
        }
        self.observers.access(&request)
    }

    /// Evaluates the offsets of a read like [`Self::accessed`], and also returns the region.
    fn reading(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        kind: AccessKind,
    ) -> Result<(Offsets, &'l Region), BoxedTrap> {
        Ok((self.accessed(kind, memory, regs, mask)?, self.region(memory)))
    }

    /// Reads an element of at most 4 bytes in the active lanes.
    pub(crate) fn load(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        kind: AccessKind,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let (offsets, region) = self.reading(memory, regs, mask, kind)?;
        let words = region.memory.as_ref().map(NumberedMemory::words);
        match (words, region.elem.size()) {
            (None, 4) => {
                for l in lanes_of(mask) {
                    out.0[l] = self.shared[(region.base + offsets[l]) as usize];
                }
            }
            (Some(Some(memory)), 4) => {
                for l in lanes_of(mask) {
                    out.0[l] = memory[offsets[l] as usize].load(Ordering::Relaxed);
                }
            }
            _ => {
                for l in lanes_of(mask) {
                    out.0[l] = extended(region.elem, self.bits(region, offsets[l]));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn load_wide(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        kind: AccessKind,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        let (offsets, region) = self.reading(memory, regs, mask, kind)?;
        for l in lanes_of(mask) {
            out[l] = self.bits(region, offsets[l]);
        }
        Ok(())
    }

    pub(crate) fn load_vector(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        kind: AccessKind,
        out: &mut Quad,
    ) -> Result<(), BoxedTrap> {
        let (offsets, region) = self.reading(memory, regs, mask, kind)?;
        match &region.memory {
            None => {
                for l in lanes_of(mask) {
                    let word = region.base + offsets[l] * region.elem.size() / 4;
                    for (out, &word) in out.iter_mut().zip(&self.shared[word as usize..]) {
                        out.0[l] = word;
                    }
                }
            }
            Some(buffer) => match buffer.words() {
                Some(memory) => {
                    for l in lanes_of(mask) {
                        for (out, word) in out.iter_mut().zip(&memory[offsets[l] as usize..]) {
                            out.0[l] = word.load(Ordering::Relaxed);
                        }
                    }
                }
                None => {
                    for l in lanes_of(mask) {
                        let words = words_of(region.elem, |i| buffer.read(offsets[l] as usize + i));
                        out.iter_mut().zip(words).for_each(|(out, word)| out.0[l] = word);
                    }
                }
            },
        }
        Ok(())
    }

    pub(crate) fn bits(&self, region: &Region, offset: u32) -> u64 {
        let Some(buffer) = &region.memory else {
            let size = region.elem.size();
            let word = |byte: u32| u64::from(self.shared[(region.base + byte / 4) as usize]);
            let byte = offset * size;
            return match size {
                8 => word(byte) | word(byte + 4) << 32,
                _ => word(byte) >> (8 * (byte % 4)) & (u64::MAX >> (64 - 8 * size)),
            };
        };
        buffer.read(offset as usize)
    }

    pub(crate) fn set_bits(&mut self, region: &Region, offset: u32, bits: u64) {
        if let Some(buffer) = &region.memory {
            return buffer.write(offset as usize, bits);
        }
        let size = region.elem.size();
        let byte = offset * size;
        let at = (region.base + byte / 4) as usize;
        match size {
            8 => (self.shared[at], self.shared[at + 1]) = (bits as u32, (bits >> 32) as u32),
            4 => self.shared[at] = bits as u32,
            _ => {
                let (shift, low) = (8 * (byte % 4), u32::MAX >> (32 - 8 * size));
                let kept = self.shared[at] & !(low << shift);
                self.shared[at] = kept | (bits as u32 & low) << shift;
            }
        }
    }

    pub(crate) fn store(
        &mut self,
        memory: &Memory,
        value: &StoredValue,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut values = Quad::default();
        self.value(value, regs, mask, &mut values)?;
        let offsets = self.accessed(AccessKind::Write, memory, regs, mask)?;
        self.write(memory, &offsets, &values, mask);
        Ok(())
    }

    /// Evaluates the value of a store: the words of a vector, or one value whose low word comes
    /// first.
    pub(crate) fn value(
        &mut self,
        value: &StoredValue,
        regs: &Registers,
        mask: u32,
        out: &mut Quad,
    ) -> Result<(), BoxedTrap> {
        match value {
            StoredValue::Lane(lane) => {
                let mut buffer = Lanes::ZERO;
                out[0] = *self.lane(lane, regs, mask, &mut buffer)?;
            }
            StoredValue::Wide(wide) => {
                let mut value = [0; WARP];
                self.wide(wide, regs, mask, &mut value)?;
                out[0].0 = value.map(|v| v as u32);
                out[1].0 = value.map(|v| (v >> 32) as u32);
            }
            StoredValue::Vector(vector) => self.vector(vector, regs, mask, out)?,
        }
        Ok(())
    }

    pub(super) fn write(&mut self, memory: &Memory, offsets: &Offsets, values: &Quad, mask: u32) {
        if self.compares_writes {
            self.look_at_write(memory, offsets, values, mask);
        } else {
            self.happened += 1;
        }
        let region = self.region(memory);
        let elem = region.elem;
        if region.space != Space::Register
            && let Some(recorder) = self.recorder()
        {
            let count = (region.width(memory.vector) * elem.size()).div_ceil(4) as usize;
            let of = |lane: usize| values[..count].iter().map(move |word| word.0[lane]);
            recorder.wrote(lanes_of(mask).flat_map(of));
        }
        let words = region.memory.as_ref().and_then(NumberedMemory::words);
        match (&region.memory, words, memory.vector) {
            (None, _, true) => {
                for l in lanes_of(mask) {
                    let at = (region.base + offsets[l] * elem.size() / 4) as usize;
                    for (word, value) in self.shared[at..].iter_mut().zip(values) {
                        *word = value.0[l];
                    }
                }
            }
            (Some(_), Some(memory), vector) => {
                let width = if vector { 4 } else { 1 };
                for l in lanes_of(mask) {
                    let words = memory[offsets[l] as usize..].iter();
                    for (word, value) in words.zip(&values[..width]) {
                        word.store(value.0[l], Ordering::Relaxed);
                    }
                }
            }
            (Some(buffer), _, true) => {
                for l in lanes_of(mask) {
                    let words = values.each_ref().map(|v| v.0[l]);
                    for i in 0..elem.vector_lanes().into() {
                        buffer.write(offsets[l] as usize + i, part_bits(elem, &words, i));
                    }
                }
            }
            (_, _, false) => {
                for l in lanes_of(mask) {
                    let bits = u64::from(values[0].0[l]) | u64::from(values[1].0[l]) << 32;
                    self.set_bits(region, offsets[l], bits);
                }
            }
        }
    }

    /// Adds the old content to the undo log. Counts a change only if the write changes memory.
    #[cold]
    #[inline(never)]
    fn look_at_write(&mut self, memory: &Memory, offsets: &Offsets, values: &Quad, mask: u32) {
        let region = self.region(memory);
        let mut changes = false;
        for l in lanes_of(mask) {
            let words = values.each_ref().map(|v| v.0[l]);
            for i in 0..region.width(memory.vector) {
                let at = offsets[l] + i;
                let old = self.bits(region, at);
                changes |= old != part_bits(region.elem, &words, i as usize);
                if region.memory.is_some()
                    && let Some(undo_log) = &mut self.undo_log
                {
                    undo_log.note(ElementId { buffer: memory.region as usize, element: at }, old);
                }
            }
        }
        self.happened += u64::from(changes);
    }

    /// Issues an asynchronous copy. The data is moved at once. An access is a race unless the
    /// thread knows that the copy is complete.
    pub(crate) fn copy(
        &mut self,
        target: &Memory,
        source: &Memory,
        valid: u32,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut values = Quad::default();
        if valid != 0 {
            if source.vector {
                self.load_vector(source, regs, valid, AccessKind::CopyRead, &mut values)?;
            } else if self.region(source).elem.size() == 8 {
                let mut wide = [0; WARP];
                self.load_wide(source, regs, valid, AccessKind::CopyRead, &mut wide)?;
                values[0].0 = wide.map(|v| v as u32);
                values[1].0 = wide.map(|v| (v >> 32) as u32);
            } else {
                self.load(source, regs, valid, AccessKind::CopyRead, &mut values[0])?;
            }
        }
        if valid != ALL {
            for value in &mut values {
                for l in 0..WARP {
                    value.0[l] &= (valid >> l & 1).wrapping_neg();
                }
            }
        }
        let offsets = self.accessed(AccessKind::CopyWrite, target, regs, mask)?;
        self.write(target, &offsets, &values, mask);
        Ok(())
    }
}
