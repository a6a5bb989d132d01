//! The scratch memory of launches.

use super::Gpu;
use super::memory::{Allocation, GpuAddress, bytes};
use crate::error::Result;
use gemm_dsl::ir::Elem;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{MutexGuard, PoisonError};

/// The number of a temporary and the binary logarithm of the bytes that it has room for. What is kept under one
/// is never replaced: a captured graph may refer to it.
type Class = (usize, u32);

/// Scratch memory, which all programs of a device share.
#[derive(Default)]
pub(super) struct Scratch {
    /// With anything in it.
    any: HashMap<Class, Allocation>,
    /// Zeros wherever no program is under way, each of which leaves them so. Only when it is made is it set to
    /// zero: no launch waits for that, and no graph repeats it.
    kept: HashMap<Class, Kept>,
}

struct Kept {
    allocation: Allocation,
    /// Not before it was set to zero, nor behind a program that was not launched to its end.
    holds_zeros: bool,
}

/// The scratch memory, held while the launches of one program are put on the stream. Those of
/// another thread come after them, so that both may use the same memory.
pub struct Workspace<'d> {
    gpu: &'d Gpu,
    scratch: MutexGuard<'d, Scratch>,
    /// What is kept that the program under way has been given.
    given: Vec<Class>,
}

impl Workspace<'_> {
    /// The address of temporary `number`, with room for at least `len` elements. Where there are none nothing is
    /// allocated, which a capture would forbid, and no thread goes to the address.
    pub(super) fn scratch(&mut self, number: usize, elem: Elem, len: u64) -> Result<GpuAddress> {
        if len == 0 {
            return Ok(GpuAddress { at: 0, elem });
        }
        let (class, room) = self.class(number, elem, len)?;
        let allocation = match self.scratch.any.entry(class) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.gpu.allocate(Elem::U8, room)?),
        };
        Ok(GpuAddress { elem, ..allocation.address() })
    }

    /// As [`scratch`](Self::scratch), with zeros in it, which the program leaves so.
    pub(super) fn kept(&mut self, number: usize, elem: Elem, len: u64) -> Result<GpuAddress> {
        if len == 0 {
            return Ok(GpuAddress { at: 0, elem });
        }
        let (class, room) = self.class(number, elem, len)?;
        let kept = match self.scratch.kept.entry(class) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let allocation = self.gpu.allocate(Elem::U8, room)?;
                entry.insert(Kept { allocation, holds_zeros: false })
            }
        };
        if !kept.holds_zeros {
            self.gpu.refuse_capture("setting memory to zero")?;
            self.gpu.set_zero(&kept.allocation.address(), room)?;
            kept.holds_zeros = true;
        }
        self.given.push(class);
        Ok(GpuAddress { elem, ..kept.allocation.address() })
    }

    /// Says whether what is kept that the program was given holds zeros.
    pub(super) fn holds_zeros(&mut self, holds: bool) {
        for class in &self.given {
            if let Some(kept) = self.scratch.kept.get_mut(class) {
                kept.holds_zeros = holds;
            }
        }
    }

    /// Where such a temporary is kept, and the bytes of what is kept there.
    fn class(&self, number: usize, elem: Elem, len: u64) -> Result<(Class, u64)> {
        let room = bytes(elem, len).checked_next_power_of_two();
        let room = room.ok_or_else(|| self.gpu.too_large(elem, len))?;
        Ok(((number, room.ilog2()), room))
    }
}

impl Gpu {
    /// Waits for the scratch memory.
    pub(super) fn lock_scratch(&self) -> Workspace<'_> {
        // A thread that panicked left no entry half made, and what held no zeros is known.
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        Workspace { gpu: self, scratch, given: Vec::new() }
    }
}
