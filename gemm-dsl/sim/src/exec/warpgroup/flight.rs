//! Matrix instructions of a warp in flight, and their accumulators.

use std::collections::VecDeque;
use std::ops::Range;

/// Accumulators of a matrix instruction: lane slots, and the array they belong to.
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

/// Matrix instructions of a warp in flight, and the accumulator arrays they may change.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Accumulator arrays without an ordinary access since their last fence.
    pub(crate) fenced: Vec<u32>,
    /// Accumulators of uncommitted instructions. `groups` holds those of committed groups in
    /// flight; `over` holds those of complete groups that no wait has named.
    pub(crate) open: Vec<Accumulators>,
    pub(crate) groups: VecDeque<Vec<Accumulators>>,
    pub(crate) over: Vec<Accumulators>,
}

impl Flight {
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Accumulators> {
        self.open.iter().chain(self.groups.iter().flatten())
    }

    /// Returns true if a lane slot holds an accumulator without a value yet.
    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.in_flight().chain(&self.over).any(|sums| sums.slots().contains(&slot))
    }
}
