//! Assignments to variables, and to elements of register arrays whose indices are static.

use super::lanes::{Lanes, blend, fma};
use super::machine::{Machine, Registers};
use super::memory::Quad;
use crate::lower::code::expr::{Lane, Pred, Vector, Wide};
use crate::lower::code::{AsyncCopy, NOWHERE};
use crate::mask::WARP;
use crate::observe::BoxedTrap;
use std::ops::Range;

impl Registers {
    /// Sets the slot of a 32-bit variable in the active lanes, and marks it as initialised.
    #[inline]
    fn set(&mut self, slot: u32, value: &Lanes, mask: u32) {
        blend(&mut self.lanes[slot as usize].0, &value.0, mask);
        self.ready[slot as usize] |= mask;
    }

    pub(super) fn forget(&mut self, slots: Range<u32>, mask: u32) {
        slots.for_each(|slot| self.ready[slot as usize] &= !mask);
    }

    pub(super) fn zero(&mut self, slots: Range<u32>, mask: u32) {
        slots.for_each(|slot| self.set(slot, &Lanes::ZERO, mask));
    }

    pub(super) fn unset(&mut self, slots: Range<u32>, mask: u32) {
        slots.for_each(|slot| blend(&mut self.wides[slot as usize], &[NOWHERE; WARP], mask));
    }
}

impl Machine<'_> {
    #[inline(always)]
    pub(super) fn multiply_add(
        &self,
        target: u32,
        operands: [u32; 3],
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let [a, b, c] = operands.map(|slot| slot as usize);
        let ready = regs.ready[a] & regs.ready[b] & regs.ready[c];
        if mask & !ready != 0 {
            for slot in operands {
                self.ready(slot, regs, mask)?;
            }
        }
        let value = fma(self.arch, &regs.lanes[a], &regs.lanes[b], &regs.lanes[c]);
        regs.set(target, &value, mask);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn set_lane(
        &mut self,
        slot: u32,
        lane: &Lane,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut buffer = Lanes::ZERO;
        let value = *self.lane(lane, regs, mask, &mut buffer)?;
        regs.set(slot, &value, mask);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn set_wide(
        &mut self,
        slot: u32,
        wide: &Wide,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut value = [0; WARP];
        self.wide(wide, regs, mask, &mut value)?;
        blend(&mut regs.wides[slot as usize], &value, mask);
        Ok(())
    }

    #[inline(always)]
    pub(super) fn set_pred(
        &mut self,
        slot: u32,
        pred: &Pred,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let holds = self.pred(pred, regs, mask)?;
        let variable = &mut regs.preds[slot as usize];
        *variable = *variable & !mask | holds;
        Ok(())
    }

    #[inline(always)]
    pub(super) fn set_vector(
        &mut self,
        slot: u32,
        vector: &Vector,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut values = Quad::default();
        self.vector(vector, regs, mask, &mut values)?;
        for (slot, value) in (slot..).zip(&values) {
            regs.set(slot, value, mask);
        }
        Ok(())
    }

    /// Sets an 8-byte element of a register array.
    #[inline(always)]
    pub(super) fn set_element(
        &mut self,
        slot: u32,
        wide: &Wide,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let mut value = [0; WARP];
        self.wide(wide, regs, mask, &mut value)?;
        regs.set(slot, &Lanes(value.map(|v| v as u32)), mask);
        regs.set(slot + 1, &Lanes(value.map(|v| (v >> 32) as u32)), mask);
        Ok(())
    }

    /// Issues an asynchronous copy in the lanes in which its guard is true.
    #[inline(always)]
    pub(super) fn async_copy(
        &mut self,
        copy: &AsyncCopy,
        regs: &Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let (valid, written) = match &copy.guard {
            Some((guard, or_zero)) => {
                let valid = self.pred(guard, regs, mask)?;
                (valid, if *or_zero { mask } else { valid })
            }
            None => (mask, mask),
        };
        if written != 0 {
            self.copy(&copy.target, &copy.source, valid, regs, written)?;
        }
        Ok(())
    }
}
