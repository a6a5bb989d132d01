//! The matrix instructions of a warp that are in flight, and the sums that they change.

use std::collections::VecDeque;
use std::ops::Range;

/// Accumulators that matrix instructions change: lane slots, and the array that they belong to.
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

/// The matrix instructions of a warp that are in flight, and the arrays of sums that they may change.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    /// Arrays that nothing has touched since a fence.
    pub(crate) fenced: Vec<u32>,
    /// Accumulators that change in instructions of no group yet, in the groups in flight, and in groups that are over, but were not
    /// named by the wait.
    pub(crate) open: Vec<Accumulators>,
    pub(crate) groups: VecDeque<Vec<Accumulators>>,
    pub(crate) over: Vec<Accumulators>,
}

impl Flight {
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Accumulators> {
        self.open.iter().chain(self.groups.iter().flatten())
    }

    /// Whether a lane slot holds a sum that has no value yet.
    pub(crate) fn holds(&self, slot: u32) -> bool {
        self.in_flight().chain(&self.over).any(|sums| sums.slots().contains(&slot))
    }
}
