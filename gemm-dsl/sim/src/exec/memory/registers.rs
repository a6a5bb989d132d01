//! Register arrays with dynamic indices. An element occupies one lane slot, and an 8-byte element
//! two.

use super::super::lanes::{Lanes, WideLanes};
use super::super::machine::{Machine, Registers};
use super::{Quad, part};
use crate::error::{FaultKind, Position};
use crate::lower::code::{Memory, StoredValue};
use crate::mask::lanes_of;
use crate::observe::{AccessKind, BoxedTrap, trap};
use crate::region::{Region, slots_of};
use gemm_dsl::ir::Space;

impl Machine<'_> {
    /// Lane slots that one lane's access to a register array covers.
    fn covered(region: &Region, memory: &Memory, offset: u32) -> impl Iterator<Item = u32> {
        let unit = slots_of(region.elem);
        let first = region.base + offset * unit;
        first..first + region.width(memory.vector) * unit
    }

    /// Reads an element or a vector of a register array at a dynamic index, slot by slot.
    fn load_slots(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        mut take: impl FnMut(usize, usize, u32),
    ) -> Result<(), BoxedTrap> {
        let offsets = self.offsets(memory, regs, mask);
        let offsets =
            offsets.map_err(|trap| self.refused(AccessKind::Read, memory, regs, mask, trap))?;
        let region = self.region(memory);
        for l in lanes_of(mask) {
            for (i, slot) in Self::covered(region, memory, offsets[l]).enumerate() {
                self.ready(slot, regs, 1 << l)?;
                take(l, i, regs.lanes[slot as usize].0[l]);
            }
        }
        Ok(())
    }

    /// Reads an element of at most 4 bytes of a register array.
    pub(crate) fn load_register(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        self.load_slots(memory, regs, mask, |l, _, word| out.0[l] = word)
    }

    /// Reads an 8-byte element of a register array.
    pub(crate) fn load_register_wide(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        out: &mut WideLanes,
    ) -> Result<(), BoxedTrap> {
        self.load_slots(memory, regs, mask, |l, i, word| match i {
            0 => out[l] = word.into(),
            _ => out[l] |= u64::from(word) << 32,
        })
    }

    /// Reads a 16-byte vector of a register array.
    pub(crate) fn load_register_vector(
        &mut self,
        memory: &Memory,
        regs: &Registers,
        mask: u32,
        out: &mut Quad,
    ) -> Result<(), BoxedTrap> {
        let size = self.region(memory).elem.size();
        if size >= 4 {
            return self.load_slots(memory, regs, mask, |l, i, word| out[i].0[l] = word);
        }
        out.fill(Lanes::ZERO);
        let (per_word, low) = ((4 / size) as usize, u32::MAX >> (32 - 8 * size));
        self.load_slots(memory, regs, mask, |l, i, word| {
            out[i / per_word].0[l] |= (word & low) << (8 * size as usize * (i % per_word));
        })
    }

    /// Returns a fault unless a lane slot has a value in all active lanes.
    #[inline]
    pub(crate) fn ready(&self, slot: u32, regs: &Registers, mask: u32) -> Result<(), BoxedTrap> {
        let missing = mask & !regs.ready[slot as usize];
        if missing == 0 { Ok(()) } else { Err(self.unready(slot, regs, missing)) }
    }

    #[cold]
    fn unready(&self, slot: u32, regs: &Registers, missing: u32) -> BoxedTrap {
        let lane = missing.trailing_zeros();
        if regs.flight.holds(slot) {
            return self.touched(slot, lane);
        }
        trap(lane, FaultKind::Uninitialised { place: self.position_of(slot) })
    }

    /// Element of the register array to which a lane slot belongs.
    pub(crate) fn position_of(&self, slot: u32) -> Position {
        let holds = |r: &&Region| {
            r.space == Space::Register
                && (r.base..r.base + r.len as u32 * slots_of(r.elem)).contains(&slot)
        };
        let region = self.launch.regions.iter().find(holds);
        let place = region.map(|r| r.element((slot - r.base) / slots_of(r.elem)));
        place.unwrap_or_else(|| Position {
            buffer: String::new(),
            space: Space::Register,
            index: Vec::new(),
            at: None,
        })
    }

    /// Writes to a register array at a dynamic index.
    pub(crate) fn store_register(
        &mut self,
        memory: &Memory,
        value: &StoredValue,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let offsets = self.offsets(memory, regs, mask);
        let offsets =
            offsets.map_err(|trap| self.refused(AccessKind::Write, memory, regs, mask, trap))?;
        let mut values = Quad::default();
        self.value(value, regs, mask, &mut values)?;
        let region = self.region(memory);
        let elem = region.elem;
        for l in lanes_of(mask) {
            let words = values.each_ref().map(|v| v.0[l]);
            for (i, slot) in Self::covered(region, memory, offsets[l]).enumerate() {
                let word = if elem.size() >= 4 || !memory.vector {
                    words[i]
                } else {
                    part(elem, &words, i)
                };
                regs.lanes[slot as usize].0[l] = word;
                regs.ready[slot as usize] |= 1 << l;
            }
        }
        Ok(())
    }
}
