//! Matrix instructions of a warp that are in flight, and their accumulators.

use std::collections::VecDeque;
use std::ops::Range;

/// Accumulators of a matrix instruction: their lane slots, and the array that contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accumulators {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) array: u32,
}

impl Accumulators {
    pub(crate) fn slots(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.first < other.first + other.count && other.first < self.first + self.count
    }
}

/// Matrix instructions of a warp that are in flight, with the accumulator arrays that they may
/// change.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Accumulator arrays that no ordinary statement has accessed since their last fence.
    pub(crate) fenced: Vec<u32>,
    /// Accumulators of instructions that are not yet committed. `groups` contains the accumulators
    /// of committed groups in flight. `over` contains the accumulators of complete groups that no
    /// wait has named.
    pub(crate) open: Vec<Accumulators>,
    pub(crate) groups: VecDeque<Vec<Accumulators>>,
    pub(crate) over: Vec<Accumulators>,
}

impl Flight {
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Accumulators> {
        self.open.iter().chain(self.groups.iter().flatten())
    }

    /// Returns true if a lane slot is an accumulator that has no value yet.
    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.in_flight().chain(&self.over).any(|sums| sums.slots().contains(&slot))
    }
}
