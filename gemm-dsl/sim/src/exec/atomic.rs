//! Execution of atomics, one lane after another.

use super::machine::{Machine, Registers};
use super::memory::Quad;
use crate::error::FaultKind;
use crate::lower::code::{Atomic, StoredValue, Update};
use crate::mask::turns;
use crate::observe::{AccessKind, AtomicRequest, BoxedTrap, Observer, Sync, trap};
use gemm_dsl::ir::{BinaryOp, Elem};

impl Machine<'_> {
    /// Executes an atomic, one lane after another.
    pub(crate) fn atomic(
        &mut self,
        atomic: &Atomic,
        regs: &mut Registers,
        mask: u32,
    ) -> Result<(), BoxedTrap> {
        let value = self.operand(&atomic.value, regs, mask)?;
        let expected = match &atomic.update {
            Update::CompareExchange(expected) => Some(self.operand(expected, regs, mask)?),
            _ => None,
        };
        let kind = AccessKind::Atomic(atomic.scope);
        let offsets = self.accessed(kind, &atomic.target, regs, mask)?;
        let region = self.region(&atomic.target);
        let elem = region.elem;
        let mut wrote = mask;
        for lane in turns(mask, self.reversed) {
            let old = self.bits(region, offsets[lane]);
            let operand = bits(elem, &value, lane);
            let new = match (&atomic.update, &expected) {
                (Update::CompareExchange(_), Some(expected)) => {
                    let equal = old == bits(elem, expected, lane);
                    wrote &= !(u32::from(!equal) << lane);
                    if equal { operand } else { old }
                }
                (Update::Load, _) => {
                    wrote &= !(1 << lane);
                    old
                }
                (update, _) => updated(update, elem, old, operand)
                    .map_err(|operands| overflow(lane as u32, operands))?,
            };
            if new != old {
                self.set_bits(region, offsets[lane], new);
                self.happened += 1;
            }
            match atomic.old {
                Some(slot) if elem.size() == 8 => regs.wides[slot as usize][lane] = old,
                Some(slot) => regs.lanes[slot as usize].0[lane] = old as u32,
                None => {}
            }
        }
        self.observers.sync(Sync::Atomic(&AtomicRequest {
            warp: self.warp,
            mask,
            wrote,
            buffer: atomic.target.region as usize,
            elements: &offsets,
            order: atomic.order,
            scope: atomic.scope,
            reversed: self.reversed,
        }));
        Ok(())
    }

    fn operand(
        &mut self,
        value: &StoredValue,
        regs: &Registers,
        mask: u32,
    ) -> Result<Quad, BoxedTrap> {
        let mut words = Quad::default();
        self.value(value, regs, mask, &mut words)?;
        Ok(words)
    }
}

/// Bits of a 4-byte or 8-byte element in a lane.
fn bits(elem: Elem, words: &Quad, lane: usize) -> u64 {
    let low = u64::from(words[0].0[lane]);
    if elem.size() == 8 { low | u64::from(words[1].0[lane]) << 32 } else { low }
}

/// Returns the new value of an atomic, or the operands if their sum overflows.
fn updated(update: &Update, elem: Elem, old: u64, operand: u64) -> Result<u64, [i128; 2]> {
    let signed = |bits: u64| match elem {
        Elem::I32 => i128::from(bits as u32 as i32),
        Elem::I64 => i128::from(bits as i64),
        _ => i128::from(bits),
    };
    let (a, b) = (signed(old), signed(operand));
    Ok(match update {
        Update::Add => {
            let sum = a + b;
            let fits = match elem {
                Elem::I32 => i32::try_from(sum).is_ok(),
                Elem::I64 => i64::try_from(sum).is_ok(),
                _ => true,
            };
            if !fits {
                return Err([a, b]);
            }
            if elem.size() == 8 { sum as u64 } else { sum as u32 as u64 }
        }
        Update::Min => {
            if a <= b {
                old
            } else {
                operand
            }
        }
        Update::Max => {
            if a >= b {
                old
            } else {
                operand
            }
        }
        Update::Exchange => operand,
        Update::Load | Update::CompareExchange(_) => {
            unreachable!("loads and compare-and-exchanges are handled earlier")
        }
    })
}

fn overflow(lane: u32, operands: [i128; 2]) -> BoxedTrap {
    trap(lane, FaultKind::Overflow { op: BinaryOp::ADD, operands })
}
