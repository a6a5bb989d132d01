//! Races between blocks: nothing orders the blocks of a launch.
//!
//! Blocks run in parallel, so what is kept must not depend on their order: of each word the lowest
//! write and the lowest write of another block, the lowest and the highest read. Whether two of them
//! conflict is then the same on every run; which do, [`crate::schedule::grid`] finds out with one at a time.
//!
//! Blocks of a cluster can synchronise: what they touch is ordered by the clocks, and none is another one here.

use crate::mask::WARP;
use crate::race::model::{MODEL, Timeline};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// An access of a word: which block, thread and statement, and by which of the thread's timelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridAccess {
    pub(crate) block: u32,
    pub(crate) thread: u32,
    pub(crate) stmt: u32,
    pub(crate) on: Timeline,
}

const THREAD_BITS: u32 = 10;
const STMT_BITS: u32 = 20;
const TIMELINE_BITS: u32 = 2;
const LOW_BITS: u32 = STMT_BITS + TIMELINE_BITS;
const _: () = assert!(gemm_dsl::target::arch::BLOCK_THREADS == 1 << THREAD_BITS && WARP == 32);
const _: () = assert!(MODEL.timelines.len() < 1 << TIMELINE_BITS && THREAD_BITS + LOW_BITS == 32);

impl GridAccess {
    /// As a number that sorts by block, then thread, then statement, and is not `NONE`.
    fn pack(self) -> u64 {
        u64::from(self.block) << 32
            | u64::from(self.thread) << LOW_BITS
            | u64::from(self.stmt.min((1 << STMT_BITS) - 1)) << TIMELINE_BITS
            | self.on.0 as u64
    }

    fn unpack(packed: u64) -> Self {
        let bits = |first: u32, count: u32| (packed >> first) as u32 & ((1 << count) - 1);
        Self {
            block: (packed >> 32) as u32,
            thread: bits(LOW_BITS, THREAD_BITS),
            stmt: bits(TIMELINE_BITS, STMT_BITS),
            on: Timeline(bits(0, TIMELINE_BITS) as usize),
        }
    }
}

const NONE: u64 = u64::MAX;

/// The words of one buffer that the kernel writes.
struct WatchedBuffer {
    /// The lowest write of each word.
    writes: Vec<AtomicU64>,
    /// The lowest write of another block, where there is one.
    second: Mutex<BTreeMap<usize, u64>>,
    /// The lowest read and the complement of the highest, if the kernel reads the buffer.
    reads: Vec<[AtomicU64; 2]>,
}

/// Two accesses of one word by two blocks, one of them a write.
pub(crate) struct GridConflict {
    pub(crate) buffer: usize,
    pub(crate) element: usize,
    pub(crate) lower: GridAccess,
    pub(crate) lower_writes: bool,
    pub(crate) higher: GridAccess,
    pub(crate) higher_writes: bool,
}

/// What the blocks of a launch have touched.
pub(crate) struct GridRace {
    buffers: Vec<Option<WatchedBuffer>>,
    cluster: ClusterSize,
}

/// How many blocks, which follow one another, are as one.
#[derive(Clone, Copy)]
struct ClusterSize(u32);

impl ClusterSize {
    /// Whether two packed accesses are by blocks of different clusters.
    fn parts(self, a: u64, b: u64) -> bool {
        let number = |packed: u64| (packed >> 32) / u64::from(self.0);
        number(a) != number(b)
    }
}

impl GridRace {
    /// Watches buffers: for each the words to watch, and whether it is read too; of clusters of so many blocks.
    pub(crate) fn new(watched: impl Iterator<Item = Option<(usize, bool)>>, cluster: u32) -> Self {
        let none = || AtomicU64::new(NONE);
        let watch = |(words, read): (usize, bool)| WatchedBuffer {
            writes: (0..words).map(|_| none()).collect(),
            second: Mutex::new(BTreeMap::new()),
            reads: (0..if read { words } else { 0 }).map(|_| [none(), none()]).collect(),
        };
        let buffers = watched.map(|w| w.map(watch)).collect();
        Self { buffers, cluster: ClusterSize(cluster) }
    }

    /// Whether the kernel writes the buffer.
    #[inline]
    pub(crate) fn watches(&self, buffer: usize) -> bool {
        matches!(self.buffers.get(buffer), Some(Some(_)))
    }

    /// Whether a block has written a word.
    pub(crate) fn is_written(&self, buffer: usize, word: usize) -> bool {
        let Some(Some(watched)) = self.buffers.get(buffer) else {
            return false;
        };
        watched.writes.get(word).is_some_and(|write| write.load(Ordering::Relaxed) != NONE)
    }

    /// Records an access.
    pub(crate) fn touch(&self, buffer: usize, word: usize, writes: bool, touch: GridAccess) {
        let Some(Some(watched)) = self.buffers.get(buffer) else {
            return;
        };
        let packed = touch.pack();
        if !writes {
            if let Some([lowest, highest]) = watched.reads.get(word) {
                lowest.fetch_min(packed, Ordering::Relaxed);
                highest.fetch_min(!packed, Ordering::Relaxed);
            }
            return;
        }
        let Some(lowest) = watched.writes.get(word) else {
            return;
        };
        let before = lowest.fetch_min(packed, Ordering::Relaxed);
        if before != NONE && self.cluster.parts(before, packed) {
            // Every write but those of the lowest block comes by here once.
            let loser = before.max(packed);
            let mut second = watched.second.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = second.entry(word).or_insert(loser);
            *entry = (*entry).min(loser);
        }
    }

    /// The first conflict in the order of buffers and words.
    pub(crate) fn conflict(&self) -> Option<GridConflict> {
        let buffers = self.buffers.iter().enumerate();
        buffers.filter_map(|(b, w)| w.as_ref()?.conflict(b, self.cluster)).next()
    }
}

impl WatchedBuffer {
    fn conflict(&self, buffer: usize, cluster: ClusterSize) -> Option<GridConflict> {
        let second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        let double = second.first_key_value().map(|(&word, &other)| (word, other));
        let mixed = self.reads.iter().zip(&self.writes).position(|(reads, write)| {
            let write = write.load(Ordering::Relaxed);
            write != NONE && other_block(reads, write, cluster).is_some()
        });
        let word = match (double, mixed) {
            (Some((d, _)), Some(m)) => d.min(m),
            (d, m) => m.or(d.map(|(d, _)| d))?,
        };
        let write = self.writes.get(word)?.load(Ordering::Relaxed);
        let (other, other_writes) = match double {
            Some((d, other)) if d == word => (other, true),
            _ => (other_block(self.reads.get(word)?, write, cluster)?, false),
        };
        let write_first = write <= other;
        let (lower, higher) = (write.min(other), write.max(other));
        Some(GridConflict {
            buffer,
            element: word,
            lower: GridAccess::unpack(lower),
            lower_writes: write_first || other_writes,
            higher: GridAccess::unpack(higher),
            higher_writes: !write_first || other_writes,
        })
    }
}

/// A read by another block than that of the write.
fn other_block(reads: &[AtomicU64; 2], write: u64, cluster: ClusterSize) -> Option<u64> {
    let [lowest, highest] = reads.each_ref().map(|r| r.load(Ordering::Relaxed));
    let candidates = [lowest, !highest];
    let read = lowest != NONE;
    candidates.into_iter().find(|r| read && cluster.parts(*r, write))
}
