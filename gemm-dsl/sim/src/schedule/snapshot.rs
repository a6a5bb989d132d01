//! Content of written buffers before a launch, used to run the launch again.
//!
//! Only elements that the launch has written are compared and restored. Elements that a concurrent
//! launch writes in the same buffers are not changed.

use crate::buffer::numbered_memory::NumberedMemory;
use crate::launch::Launch;
use crate::lower::code::Code;

struct BufferCopy<'l> {
    region: usize,
    memory: &'l NumberedMemory,
    copy: NumberedMemory,
}

/// Content of the written buffers at one point in time.
pub(crate) struct Snapshot<'l>(Vec<BufferCopy<'l>>);

impl<'l> Snapshot<'l> {
    /// Copies the buffers that the kernel writes.
    pub(crate) fn take(launch: &'l Launch<'_>, code: &Code<'_>) -> Self {
        let regions = launch.regions.iter().enumerate().filter(|&(i, _)| code.stored[i]);
        let kept = regions.filter_map(|(region, r)| {
            let memory = r.memory.as_ref()?;
            Some(BufferCopy { region, memory, copy: memory.copied() })
        });
        Self(kept.collect())
    }

    /// Restores the elements for which `which(buffer, element)` is true.
    pub(crate) fn restore(&self, which: impl Fn(usize, usize) -> bool) {
        for BufferCopy { region, memory, copy } in &self.0 {
            let elements = (0..copy.len()).filter(|&at| which(*region, at));
            elements.for_each(|at| memory.write(at, copy.read(at)));
        }
    }

    /// Returns the first element that differs from the snapshot, with its old and new bits. Only
    /// elements for which `which(buffer, element)` is true are compared.
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
