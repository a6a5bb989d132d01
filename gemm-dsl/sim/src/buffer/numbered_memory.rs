//! Memory of a global parameter, one buffer or a list of buffers, with numbered elements.
//!
//! The elements of a single buffer are numbered from its first element on. In a list, the buffers
//! of one allocation form one stretch, in address order, and the stretches follow one another. An
//! element that two buffers of the list share therefore has one number, so records per element
//! detect the overlap.

use crate::buffer::Buffer;
use crate::buffer::BufferArg;
use std::ops::Range;
use std::sync::atomic::AtomicU32;

/// Alignment of stretches, in elements, both in their allocation and in the numbering. A number is
/// a multiple of 32 bytes exactly if the address is.
const STEP: usize = 32;

#[derive(Clone)]
pub(crate) struct NumberedMemory {
    /// Stretches, each with the number of its first element, in ascending order.
    parts: Vec<(usize, Buffer)>,
}

/// Array of a list, as a range of element numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListedArray {
    /// Number of its first element.
    pub(crate) first: u64,
    pub(crate) len: u64,
}

impl NumberedMemory {
    /// Numbers the memory of an argument, and returns the arrays if it is a list.
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

    /// End of the numbering. Some numbers below it belong to no element.
    pub(crate) fn len(&self) -> usize {
        self.parts.last().map_or(0, |(first, stretch)| first + stretch.len())
    }

    /// Cells of 4-byte elements by number, if there is only one stretch.
    #[inline]
    pub(crate) fn words(&self) -> Option<&[AtomicU32]> {
        match self.parts.as_slice() {
            [(_, stretch)] => stretch.words(),
            _ => None,
        }
    }

    /// Returns the stretch of an element, and the element's position in it.
    #[inline]
    fn find(&self, at: usize) -> (&Buffer, usize) {
        let part = self.parts.partition_point(|(first, _)| *first <= at) - 1;
        let (first, stretch) = &self.parts[part];
        (stretch, at - first)
    }

    #[inline]
    pub(crate) fn read(&self, at: usize) -> u64 {
        let (stretch, at) = self.find(at);
        stretch.read(at)
    }

    #[inline]
    pub(crate) fn write(&self, at: usize, bits: u64) {
        let (stretch, at) = self.find(at);
        stretch.write(at, bits);
    }

    /// Copies the current content into new memory with the same numbers.
    pub(crate) fn copied(&self) -> Self {
        let copied = |(first, stretch): &(usize, Buffer)| (*first, stretch.copied());
        Self { parts: self.parts.iter().map(copied).collect() }
    }

    /// Host address ranges of the stretches.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(|(_, stretch)| stretch.addresses())
    }
}
