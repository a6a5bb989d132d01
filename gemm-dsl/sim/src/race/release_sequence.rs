//! Release sequences: synchronisation between threads through the words of atomics.
//!
//! A word keeps the clocks that atomics have released, for atomics that acquire. Every atomic reads
//! the word and writes it, so it continues the sequence of the previous atomic. The sequence ends
//! if two consecutive atomics are not in each other's scope.
//!
//! Clocks that are released to the whole launch are stored with the word. Clocks that only threads
//! of the block may acquire are stored with the block, and are dropped at the end of the block.

use super::clock::Clocks;
use crate::race::vector_clock::PendingRelease;
use crate::race::vector_clock::ReleaseClock;
use crate::region::ElementId;
use gemm_dsl::ir::{MemoryOrder, Scope};
use std::collections::HashMap;

/// Release sequence of a word.
#[derive(Debug, Default)]
struct ReleaseSequence {
    /// Clock released to all threads of the launch.
    left: Option<ReleaseClock>,
    /// Block and scope of the last atomic that wrote.
    last: Option<(u32, Scope)>,
    /// Number of times that the sequence has ended, which discards the earlier clocks.
    breaks: u32,
}

/// Release sequences by buffer and element number.
#[derive(Debug, Default)]
pub(crate) struct ReleaseSequences(HashMap<ElementId, ReleaseSequence>);

/// Clocks released within a block, and the effects of its fences.
#[derive(Debug, Default)]
pub(crate) struct BlockReleases {
    /// For each word, the clock that threads of the block have released, and the number of breaks
    /// at this time.
    left: HashMap<ElementId, (u32, ReleaseClock)>,
    fenced: Vec<ThreadFences>,
}

/// Effects of a thread's fences.
#[derive(Debug, Default)]
struct ThreadFences {
    /// Clocks at the thread's last fence of block scope and at its last fence of device scope.
    /// Every later atomic releases these clocks.
    left: [Option<PendingRelease>; 2],
    /// Clocks that atomics have read since the last fence of each scope. The next fence acquires
    /// them.
    found: [Option<ReleaseClock>; 2],
}

/// Atomic of a thread on an element.
pub(crate) struct AtomicAccess {
    pub(crate) at: ElementId,
    pub(crate) block: u32,
    pub(crate) thread: usize,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// True if the atomic wrote the word. A failed compare-and-exchange does not write.
    pub(crate) wrote: bool,
}

fn acquires(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Acquire | MemoryOrder::AcqRel | MemoryOrder::SeqCst)
}

fn releases(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel | MemoryOrder::SeqCst)
}

impl ReleaseSequences {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Applies an atomic of a thread. As its order specifies, it acquires from the word, and
    /// releases to the word if it wrote.
    pub(crate) fn synchronise(
        &mut self,
        atomic: &AtomicAccess,
        clocks: &mut Clocks,
        block_releases: &mut BlockReleases,
    ) {
        let AtomicAccess { at, block, thread, order, scope, wrote } = *atomic;
        let word = self.0.entry(at).or_default();
        let fenced = &mut block_releases.fenced[thread];
        let device = scope == Scope::Device;
        let continues = word.last.is_none_or(|(of, s)| of == block || device && s == Scope::Device);
        let own = block_releases.left.get(&at).filter(|(breaks, _)| *breaks == word.breaks);
        let own = own.map(|(_, left)| left);
        let global = word.left.as_ref().filter(|_| device);
        if let Some(found) = ReleaseClock::and(own, global).filter(|_| continues) {
            if acquires(order) {
                clocks.acquire(block, thread, &found);
            } else {
                // A later fence acquires the clocks that are in the scope of the atomic and in the
                // scope of the fence.
                fenced.found[0] = ReleaseClock::and(fenced.found[0].as_ref(), own);
                fenced.found[1] = ReleaseClock::and(fenced.found[1].as_ref(), Some(&found));
            }
        }
        if !wrote {
            return;
        }
        word.last = Some((block, scope));
        if !continues {
            word.left = None;
            word.breaks += 1;
        }
        let mut more = None;
        let mut leave = |left: &ReleaseClock, device: bool| {
            if device {
                word.left = ReleaseClock::and(word.left.as_ref(), Some(left));
            }
            more = ReleaseClock::and(more.as_ref(), Some(left));
        };
        if releases(order) {
            leave(&clocks.release(block, thread), device);
        }
        for (i, pending_release) in fenced.left.iter().enumerate() {
            if let Some(pending_release) = pending_release {
                leave(pending_release.left(block), device && i == 1);
            }
        }
        if more.is_some() {
            let own = block_releases.left.get(&at).filter(|(breaks, _)| *breaks == word.breaks);
            let own = ReleaseClock::and(own.map(|(_, left)| left), more.as_ref());
            own.into_iter().for_each(|own| _ = block_releases.left.insert(at, (word.breaks, own)));
        }
    }
}

impl BlockReleases {
    /// Starts a block of `threads` threads.
    pub(crate) fn begin(&mut self, threads: usize) {
        self.left.clear();
        self.fenced.clear();
        self.fenced.resize_with(threads, ThreadFences::default);
    }

    /// Applies a fence of threads of a warp. It acquires the clocks that earlier atomics have read,
    /// and stores the clocks that later atomics release.
    pub(crate) fn fence(
        &mut self,
        clocks: &mut Clocks,
        block: u32,
        threads: impl Iterator<Item = usize>,
        scope: Scope,
    ) {
        let device = usize::from(scope == Scope::Device);
        let mut last = None;
        for thread in threads {
            // In a kernel without atomics, no thread can acquire.
            let Some(fenced) = self.fenced.get_mut(thread) else { return };
            if let Some(found) = fenced.found[device].take() {
                clocks.acquire(block, thread, &found);
            }
            fenced.left[device] = Some(clocks.pending_release(thread));
            last = Some(thread);
        }
        last.into_iter().for_each(|thread| clocks.compare(thread..thread + 1));
    }
}
