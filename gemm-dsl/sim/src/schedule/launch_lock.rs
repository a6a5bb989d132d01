//! Exclusive access of launches to the buffers that they write.
//!
//! The simulator repeats a launch whose blocks synchronise with several block orders. Each order
//! starts from the initial content of the buffers. Until the launch is done, other such launches
//! wait if they would write memory that this launch uses, or read memory that this launch writes.
//!
//! Each launch runs on one thread. A progress callback may start another launch on this thread,
//! which then holds two locks or more. A thread that holds a lock never waits for another one, but
//! receives [`SimError::InUse`]. Launches therefore cannot wait for one another in a circle.

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

/// All current launches whose blocks synchronise.
struct CurrentLaunches {
    uses: Vec<MemoryUse>,
    /// Number of the next launch.
    next_launch: u64,
}

static CURRENT: Mutex<CurrentLaunches> =
    Mutex::new(CurrentLaunches { uses: Vec::new(), next_launch: 0 });
/// Signalled when a launch ends and its memory is no longer in use.
static FREED: Condvar = Condvar::new();

fn current() -> MutexGuard<'static, CurrentLaunches> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Guard for the exclusive use of a launch's buffers, which ends when it is dropped.
pub(crate) struct LaunchLock {
    launch: u64,
}

impl LaunchLock {
    /// Waits until no launch whose blocks synchronise uses the buffers in a conflicting way. If
    /// this thread is inside such a launch itself, returns [`SimError::InUse`] instead of waiting.
    pub(crate) fn acquire(launch: &Launch<'_>, code: &Code<'_>) -> Result<Self, SimError> {
        let mut all = current();
        let number = all.next_launch;
        all.next_launch += 1;
        let by = thread::current().id();
        let used: Vec<(usize, MemoryUse)> = (launch.regions.iter().enumerate())
            .flat_map(|(i, region)| {
                let memory = region.memory.iter().flat_map(NumberedMemory::addresses);
                let held =
                    move |memory| MemoryUse { launch: number, by, memory, writes: code.stored[i] };
                memory.map(move |memory| (i, held(memory)))
            })
            .collect();
        let is_nested = all.uses.iter().any(|held| held.by == by);
        loop {
            let busy = all.uses.iter().find_map(|other| {
                used.iter().find(|(_, own)| own.excludes(other)).map(|(i, _)| *i)
            });
            match busy {
                None => break,
                Some(region) if is_nested => {
                    return Err(SimError::InUse {
                        kernel: launch.kernel.name.clone(),
                        buffer: launch.regions[region].name.clone(),
                    });
                }
                Some(_) => all = FREED.wait(all).unwrap_or_else(PoisonError::into_inner),
            }
        }
        all.uses.extend(used.into_iter().map(|(_, own)| own));
        Ok(Self { launch: number })
    }
}

impl Drop for LaunchLock {
    fn drop(&mut self) {
        current().uses.retain(|other| other.launch != self.launch);
        FREED.notify_all();
    }
}
