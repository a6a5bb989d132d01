//! Device memory of the simulator.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// An array of `f32` in simulated device memory, or a part of one.
///
/// A clone is the same memory, as a copied pointer is. Words are atomic, so blocks of one launch and
/// concurrent launches may share a buffer; every access is relaxed, and whether two accesses of a
/// launch are ordered is the race detector's business. An allocation starts on 256 bytes.
#[derive(Clone)]
pub struct Buffer {
    words: Arc<[AtomicU32]>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// A new allocation that holds a copy of `values`, bit for bit.
    pub fn from_f32(values: &[f32]) -> Self {
        Self::from_words(values.iter().map(|v| AtomicU32::new(v.to_bits())).collect())
    }

    /// A new allocation of `len` zeros.
    pub fn zeros(len: usize) -> Self {
        Self::from_words((0..len).map(|_| AtomicU32::new(0)).collect())
    }

    fn from_words(words: Arc<[AtomicU32]>) -> Self {
        let len = words.len();
        Self { words, start: 0, len }
    }

    /// The elements, copied out bit for bit.
    pub fn to_vec(&self) -> Vec<f32> {
        let words = self.words().iter();
        words.map(|w| f32::from_bits(w.load(Ordering::Relaxed))).collect()
    }

    /// Overwrites the first `values.len()` elements; `false`, and nothing written, if they do not fit.
    pub fn copy_from(&self, values: &[f32]) -> bool {
        let fits = values.len() <= self.len;
        if fits {
            for (word, value) in self.words().iter().zip(values) {
                word.store(value.to_bits(), Ordering::Relaxed);
            }
        }
        fits
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Elements `offset .. offset + len` of the same memory; `None` if they are not all inside. An
    /// offset that is no multiple of 4 gives a base that is not aligned to 16 bytes.
    pub fn view(&self, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Self {
            words: Arc::clone(&self.words),
            start: self.start + offset,
            len,
        })
    }

    /// The distance of the first element from a 256-byte boundary's start, in bytes.
    pub(super) fn byte_offset(&self) -> u64 {
        4 * self.start as u64
    }

    /// Whether an element belongs to both.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.words, &other.words)
            && self.start.max(other.start) < (self.start + self.len).min(other.start + other.len)
    }

    pub(super) fn words(&self) -> &[AtomicU32] {
        self.words.get(self.start..self.start + self.len).unwrap_or(&[])
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
