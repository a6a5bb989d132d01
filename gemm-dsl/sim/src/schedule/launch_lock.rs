//! Launches that must have what they write to themselves.
//!
//! One whose blocks synchronise is run in several orders, and each begins with what the launch
//! was given: another launch that does so must not write the same memory, or read what this one writes,
//! until it is done. Such launches wait for one another. Each runs on one thread and waits for nothing
//! while it is on, so that all come to their turn.

use crate::buffer::numbered_memory::NumberedMemory;
use crate::error::SimError;
use crate::launch::Launch;
use crate::lower::code::Code;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Memory that a launch uses.
struct MemoryUse {
    launch: u64,
    by: ThreadId,
    memory: Range<usize>,
    writes: bool,
}

impl MemoryUse {
    fn excludes(&self, other: &Self) -> bool {
        (self.writes || other.writes)
            && self.memory.start.max(other.memory.start) < self.memory.end.min(other.memory.end)
    }
}

/// All that is used, and the number of the next launch.
static IN_USE: Mutex<(Vec<MemoryUse>, u64)> = Mutex::new((Vec::new(), 0));
static FREED: Condvar = Condvar::new();

fn in_use() -> MutexGuard<'static, (Vec<MemoryUse>, u64)> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A launch that has its buffers to itself, until this is dropped.
pub(crate) struct LaunchLock {
    launch: u64,
}

impl LaunchLock {
    /// Waits until no other such launch uses the buffers. Fails where that would be for ever: this thread
    /// is in the midst of one that does.
    pub(crate) fn acquire(launch: &Launch<'_>, code: &Code<'_>) -> Result<Self, SimError> {
        let mut all = in_use();
        let number = all.1;
        all.1 += 1;
        let by = thread::current().id();
        let used: Vec<(usize, MemoryUse)> = (launch.regions.iter().enumerate())
            .flat_map(|(i, region)| {
                let memory = region.memory.iter().flat_map(NumberedMemory::addresses);
                let held =
                    move |memory| MemoryUse { launch: number, by, memory, writes: code.stored[i] };
                memory.map(move |memory| (i, held(memory)))
            })
            .collect();
        loop {
            let busy = all.0.iter().find_map(|other| {
                used.iter().find(|(_, own)| own.excludes(other)).map(|(i, _)| (*i, other.by))
            });
            match busy {
                None => break,
                Some((region, of)) if of == by => {
                    return Err(SimError::InUse {
                        kernel: launch.kernel.name.clone(),
                        buffer: launch.regions[region].name.clone(),
                    });
                }
                Some(_) => all = FREED.wait(all).unwrap_or_else(PoisonError::into_inner),
            }
        }
        all.0.extend(used.into_iter().map(|(_, own)| own));
        Ok(Self { launch: number })
    }
}

impl Drop for LaunchLock {
    fn drop(&mut self) {
        in_use().0.retain(|other| other.launch != self.launch);
        FREED.notify_all();
    }
}
