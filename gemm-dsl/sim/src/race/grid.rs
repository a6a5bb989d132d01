//! Races between blocks. Nothing orders the blocks of a launch.
//!
//! Blocks run in parallel, so the recorded state must not depend on their order. For each word, it
//! consists of the lowest write, the lowest write of another block, and the lowest and highest
//! read. A conflict is therefore found on every run or on none. [`crate::schedule::grid`] then runs
//! the blocks sequentially to identify the accesses.
//!
//! Blocks of a cluster can synchronise, and the clocks order their accesses. A cluster therefore
//! counts as one block here.

use crate::mask::WARP;
use crate::race::model::{MODEL, Timeline};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Access of a word: block, thread, statement and timeline.
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
    /// Packs the access into a number that sorts by block, thread and statement. It is never equal
    /// to `NONE`.
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

/// Recorded accesses of a buffer that the kernel writes.
struct WatchedBuffer {
    writes: Vec<AtomicU64>,
    /// For each word, the lowest write of any block except the block of the lowest write, if there
    /// is one.
    second: Mutex<BTreeMap<usize, u64>>,
    /// For each word, the lowest read, and the complement of the highest read. Empty if the kernel
    /// never reads the buffer.
    reads: Vec<[AtomicU64; 2]>,
}

/// Two accesses of the same word by two blocks, at least one of which is a write.
pub(crate) struct GridConflict {
    pub(crate) buffer: usize,
    pub(crate) element: usize,
    pub(crate) lower: GridAccess,
    pub(crate) lower_writes: bool,
    pub(crate) higher: GridAccess,
    pub(crate) higher_writes: bool,
}

/// Recorded accesses of all blocks of a launch.
pub(crate) struct GridRace {
    buffers: Vec<Option<WatchedBuffer>>,
    cluster: ClusterSize,
}

/// Number of consecutive blocks that form a cluster.
#[derive(Clone, Copy)]
struct ClusterSize(u32);

impl ClusterSize {
    /// Returns true if two packed accesses belong to different clusters.
    fn parts(self, a: u64, b: u64) -> bool {
        let number = |packed: u64| (packed >> 32) / u64::from(self.0);
        number(a) != number(b)
    }
}

impl GridRace {
    /// Records accesses of clusters of `cluster` blocks. `watched` has the number of words of each
    /// recorded buffer, and true if the kernel also reads it.
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

    #[inline]
    pub(crate) fn watches(&self, buffer: usize) -> bool {
        matches!(self.buffers.get(buffer), Some(Some(_)))
    }

    /// Returns true if some block has written the word.
    pub(crate) fn is_written(&self, buffer: usize, word: usize) -> bool {
        let Some(Some(watched)) = self.buffers.get(buffer) else {
            return false;
        };
        watched.writes.get(word).is_some_and(|write| write.load(Ordering::Relaxed) != NONE)
    }

    pub(crate) fn touch(&self, buffer: usize, word: usize, writes: bool, touch: GridAccess) {
        let Some(Some(watched)) = self.buffers.get(buffer) else {
            return;
        };
        let packed = touch.pack();
        if !writes {
            if let Some([lowest, highest]) = watched.reads.get(word) {
                lower(lowest, packed);
                lower(highest, !packed);
            }
            return;
        }
        let Some(lowest) = watched.writes.get(word) else {
            return;
        };
        let before = lower(lowest, packed);
        if before != NONE && self.cluster.parts(before, packed) {
            // The higher of two writes is kept here. Every write passes here once, except the
            // writes of the lowest block.
            let loser = before.max(packed);
            let mut second = watched.second.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = second.entry(word).or_insert(loser);
            *entry = (*entry).min(loser);
        }
    }

    /// Returns the first conflict in ascending order of buffers and words.
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

/// Lowers a number to `to` and returns its old value. A load is cheaper than an atomic minimum, and
/// most numbers are already lower.
fn lower(number: &AtomicU64, to: u64) -> u64 {
    match number.load(Ordering::Relaxed) {
        before if before <= to => before,
        _ => number.fetch_min(to, Ordering::Relaxed),
    }
}

/// Returns a read by a cluster other than the cluster of the write, if there is one.
fn other_block(reads: &[AtomicU64; 2], write: u64, cluster: ClusterSize) -> Option<u64> {
    let [lowest, highest] = reads.each_ref().map(|r| r.load(Ordering::Relaxed));
    let candidates = [lowest, !highest];
    let read = lowest != NONE;
    candidates.into_iter().find(|r| read && cluster.parts(*r, write))
}
