//! Scratch memory for the temporaries of launches.

use super::Gpu;
use super::memory::{Allocation, GpuAddress, bytes};
use crate::error::Result;
use gemm_dsl::ir::Elem;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{MutexGuard, PoisonError};

/// Class of an allocation: the number of a temporary, and the binary logarithm of the capacity in
/// bytes. The allocation of a class is never replaced, because a captured graph may refer to it.
type Class = (usize, u32);

/// Scratch memory, shared by all programs of a device.
#[derive(Default)]
pub(super) struct Scratch {
    /// Allocations of temporaries that a program writes before it reads them.
    any: HashMap<Class, Allocation>,
    /// Allocations that are zero whenever no program is under way, because every program leaves
    /// zeros in them. They are zeroed only when they are allocated, so no graph repeats the
    /// zeroing.
    kept: HashMap<Class, Kept>,
}

struct Kept {
    allocation: Allocation,
    /// False before the allocation is zeroed, and after a program whose later launches failed.
    holds_zeros: bool,
}

/// Scratch memory, locked while the launches of one program are enqueued. Launches of other threads
/// follow them on the stream, so all programs may use the same memory.
pub struct Workspace<'d> {
    gpu: &'d Gpu,
    scratch: MutexGuard<'d, Scratch>,
    /// Zeroed allocations that the current program uses.
    given: Vec<Class>,
}

impl Workspace<'_> {
    /// Address of temporary `number`, with a capacity of at least `len` elements. If `len` is 0,
    /// nothing is allocated, because a capture would forbid it, and no thread accesses the address.
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

    /// Address of a zeroed temporary, otherwise like [`scratch`](Self::scratch). The program must
    /// leave zeros in it.
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

    /// Records whether the zeroed allocations of the program hold zeros.
    pub(super) fn holds_zeros(&mut self, holds: bool) {
        for class in &self.given {
            if let Some(kept) = self.scratch.kept.get_mut(class) {
                kept.holds_zeros = holds;
            }
        }
    }

    /// Class of an allocation for a temporary, and its capacity in bytes.
    fn class(&self, number: usize, elem: Elem, len: u64) -> Result<(Class, u64)> {
        let room = bytes(elem, len).checked_next_power_of_two();
        let room = room.ok_or_else(|| self.gpu.too_large(elem, len))?;
        Ok(((number, room.ilog2()), room))
    }
}

impl Gpu {
    pub(super) fn lock_scratch(&self) -> Workspace<'_> {
        // A lock that another thread has poisoned is usable: a panic leaves no partial entry, and
        // `holds_zeros` is accurate.
        let scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        Workspace { gpu: self, scratch, given: Vec::new() }
    }
}
