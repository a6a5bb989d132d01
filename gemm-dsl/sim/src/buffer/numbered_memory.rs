//! The memory of a global parameter: one buffer, or that of a list of them.
//!
//! Elements are numbered. Those of one buffer are from its first on; of a list they are by where they lie: the
//! buffers of one allocation lie in one stretch of it, and the stretches follow one another. So an element of
//! two buffers of the list has one number, and whoever keeps something for each number finds out.

use crate::buffer::Buffer;
use crate::buffer::BufferArg;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

/// Stretches begin on multiples of so many elements, in their allocation as among the numbers: an address is
/// aligned to 32 bytes where its number is.
const STEP: usize = 32;

/// Numbered memory.
#[derive(Clone)]
pub(crate) struct NumberedMemory {
    /// Each with the number of its first element, in ascending order.
    parts: Vec<(usize, Buffer)>,
}

/// A buffer of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedArray {
    /// The number of its first element.
    pub(crate) first: u64,
    pub(crate) len: u64,
}

impl NumberedMemory {
    /// The memory of what is given, and the buffers of a list.
    pub(crate) fn new(given: &BufferArg) -> (Self, Option<Vec<ListedArray>>) {
        match given {
            BufferArg::One(buffer) => (Self { parts: vec![(0, buffer.clone())] }, None),
            BufferArg::List(buffers) => {
                let (stretches, listed) = Self::of_list(buffers);
                (stretches, Some(listed))
            }
        }
    }

    fn of_list(buffers: &[Buffer]) -> (Self, Vec<ListedArray>) {
        let mut by_address: Vec<usize> = (0..buffers.len()).collect();
        by_address.retain(|&i| !buffers[i].is_empty());
        by_address.sort_by_key(|&i| buffers[i].addresses().start);
        let mut parts: Vec<(usize, Buffer)> = Vec::new();
        let mut listed = vec![ListedArray { first: 0, len: 0 }; buffers.len()];
        for i in by_address {
            let (buffer, Range { start, end }) = (&buffers[i], buffers[i].elements());
            let (first, stretch) = match parts.last_mut() {
                Some((first, stretch)) if stretch.is_of_same_allocation(buffer) => {
                    let Range { start, end: until } = stretch.elements();
                    *stretch = buffer.of_allocation(start..until.max(end));
                    (*first, start)
                }
                last => {
                    let behind = last.map_or(0, |(first, stretch)| *first + stretch.len());
                    let (first, from) = (behind.next_multiple_of(STEP), start / STEP * STEP);
                    parts.push((first, buffer.of_allocation(from..end)));
                    (first, from)
                }
            };
            let first = (first + (start - stretch)) as u64;
            listed[i] = ListedArray { first, len: buffer.len() as u64 };
        }
        (Self { parts }, listed)
    }

    /// One more than the last number; not every one has an element.
    pub(crate) fn len(&self) -> usize {
        self.parts.last().map_or(0, |(first, stretch)| first + stretch.len())
    }

    /// The words of elements of 4 bytes by their numbers, where they lie one after the other.
    #[inline]
    pub(crate) fn words(&self) -> Option<&[AtomicU32]> {
        match self.parts.as_slice() {
            [(_, stretch)] => stretch.words(),
            _ => None,
        }
    }

    /// The stretch of an element, and which of it the element is.
    #[inline]
    fn find(&self, at: usize) -> (&Buffer, usize) {
        let part = self.parts.partition_point(|(first, _)| *first <= at) - 1;
        let (first, stretch) = &self.parts[part];
        (stretch, at - first)
    }

    /// The bits of an element.
    #[inline]
    pub(crate) fn read(&self, at: usize) -> u64 {
        let (stretch, at) = self.find(at);
        stretch.read(at)
    }

    /// Sets the bits of an element.
    #[inline]
    pub(crate) fn write(&self, at: usize, bits: u64) {
        let (stretch, at) = self.find(at);
        stretch.write(at, bits);
    }

    /// Memory of its own with the same numbers, which holds what its elements hold now.
    pub(crate) fn copied(&self) -> Self {
        let copied = |(first, stretch): &(usize, Buffer)| (*first, stretch.copied());
        Self { parts: self.parts.iter().map(copied).collect() }
    }

    /// Where the stretches lie in the memory of the host.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(|(_, stretch)| stretch.addresses())
    }
}
