//! Exclusive access of launches to the buffers that they write.
//!
//! A launch whose blocks synchronise runs in several orders, and each order starts from the initial
//! content of the buffers. Until it is done, another such launch must neither write memory that it
//! uses, nor read memory that it writes. Such launches wait for one another. Each runs on one
//! thread and waits for nothing while it holds the lock, so all of them make progress.

use crate::buffer::numbered_memory::NumberedMemory;
use crate::error::SimError;
use crate::launch::Launch;
use crate::lower::code::Code;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

/// Host memory that a launch uses.
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

/// Memory of all current launches, and the next launch number.
static IN_USE: Mutex<(Vec<MemoryUse>, u64)> = Mutex::new((Vec::new(), 0));
static FREED: Condvar = Condvar::new();

fn in_use() -> MutexGuard<'static, (Vec<MemoryUse>, u64)> {
    IN_USE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard for the exclusive use of a launch's buffers, which ends when it is dropped.
pub(crate) struct LaunchLock {
    launch: u64,
}

impl LaunchLock {
    /// Waits until no other such launch uses the buffers in a conflicting way. Returns
    /// [`SimError::InUse`] if this thread is inside such a launch itself, because the wait would
    /// never end.
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
