//! What the buffers that a launch writes held before, so that it can be run again.
//!
//! Only what the launch itself has written is looked at and put back: what a concurrent one writes
//! elsewhere in the same buffers stays.

use crate::buffer::numbered_memory::NumberedMemory;
use crate::launch::Launch;
use crate::lower::code::Code;

/// A buffer that the kernel writes, and a copy.
struct BufferCopy<'l> {
    region: usize,
    memory: &'l NumberedMemory,
    copy: NumberedMemory,
}

/// What the buffers held at one time.
pub(crate) struct Snapshot<'l>(Vec<BufferCopy<'l>>);

impl<'l> Snapshot<'l> {
    /// What the buffers that the kernel writes hold now.
    pub(crate) fn take(launch: &'l Launch<'_>, code: &Code<'_>) -> Self {
        let regions = launch.regions.iter().enumerate().filter(|&(i, _)| code.stored[i]);
        let kept = regions.filter_map(|(region, r)| {
            let memory = r.memory.as_ref()?;
            Some(BufferCopy { region, memory, copy: memory.copied() })
        });
        Self(kept.collect())
    }

    /// Puts back the elements of which that holds, by the numbers of their buffer and their own.
    pub(crate) fn restore(&self, which: impl Fn(usize, usize) -> bool) {
        for BufferCopy { region, memory, copy } in &self.0 {
            let elements = (0..copy.len()).filter(|&at| which(*region, at));
            elements.for_each(|at| memory.write(at, copy.read(at)));
        }
    }

    /// The first element of those of which that holds that is another one now, with its bits then and now.
    pub(crate) fn differing(
        &self,
        which: impl Fn(usize, usize) -> bool,
    ) -> Option<((usize, usize), [u64; 2])> {
        self.0.iter().find_map(|BufferCopy { region, memory, copy }| {
            let elements = (0..copy.len()).filter(|&at| which(*region, at));
            let mut pairs = elements.map(|at| ((*region, at), [copy.read(at), memory.read(at)]));
            pairs.find(|(_, [then, now])| then != now)
        })
    }
}
