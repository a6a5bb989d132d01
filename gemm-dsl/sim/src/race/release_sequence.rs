//! What atomics hand on between threads: an atomic's word is a synchronisation object.
//!
//! It keeps what was left in it by those that released, for those that acquire. Every atomic reads and
//! writes, so each hands on what was left before it, unless it and the one before are not in each
//! other's scope: then the chain breaks.
//!
//! What was left for all threads of the launch is kept with the word; what only those of a block may
//! find is kept with the block, and goes when that has ended.

use super::clock::Clocks;
use crate::race::vector_clock::PendingRelease;
use crate::race::vector_clock::ReleaseClock;
use crate::region::ElementId;
use gemm_dsl::ir::{MemoryOrder, Scope};
use std::collections::HashMap;

/// The word of an atomic.
#[derive(Debug, Default)]
struct ReleaseSequence {
    /// What was left for all threads of the launch.
    left: Option<ReleaseClock>,
    /// The block and scope of the last atomic that wrote.
    last: Option<(u32, Scope)>,
    /// How often the chain was broken: what was left before is lost.
    breaks: u32,
}

/// Those of words on which there were atomics, by the number of their buffer and element.
#[derive(Debug, Default)]
pub(crate) struct ReleaseSequences(HashMap<ElementId, ReleaseSequence>);

/// What the threads of a block hand on to one another, and what their fences stand for.
#[derive(Debug, Default)]
pub(crate) struct BlockReleases {
    /// What was left in a word by threads of the block, and how often its chain was broken until then.
    left: HashMap<ElementId, (u32, ReleaseClock)>,
    fenced: Vec<ThreadFences>,
}

/// What the fences of a thread stand for.
#[derive(Debug, Default)]
struct ThreadFences {
    /// What the thread has done before its last fence of the block, and of the device: left by every
    /// atomic behind it.
    left: [Option<PendingRelease>; 2],
    /// What the atomics before the next fence have found, for those fences to take over.
    found: [Option<ReleaseClock>; 2],
}

/// An atomic of a thread on an element.
pub(crate) struct AtomicAccess {
    pub(crate) at: ElementId,
    pub(crate) block: u32,
    pub(crate) thread: usize,
    pub(crate) order: MemoryOrder,
    pub(crate) scope: Scope,
    /// Whether it has written: one that compares may not.
    pub(crate) wrote: bool,
}

/// Whether an order takes over what others have left.
fn acquires(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Acquire | MemoryOrder::AcqRel | MemoryOrder::SeqCst)
}

/// Whether an order leaves something for others.
fn releases(order: MemoryOrder) -> bool {
    matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel | MemoryOrder::SeqCst)
}

impl ReleaseSequences {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// A thread's atomic on a word takes over what its order says, and leaves it where it has written.
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
                // A fence behind it takes over what is in the scopes of both.
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
    /// A block begins, of so many threads.
    pub(crate) fn begin(&mut self, threads: usize) {
        self.left.clear();
        self.fenced.clear();
        self.fenced.resize_with(threads, ThreadFences::default);
    }

    /// A fence of threads of a warp: what atomics have found comes before it, and what it stands behind will
    /// be left by those that follow.
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
            // A kernel without atomics has nobody to tell.
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
