//! The matrix instructions of a warp that are in flight, and the sums that they change.

use std::collections::VecDeque;
use std::ops::Range;

/// Sums that matrix instructions change: lane slots, and the array that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) array: u32,
}

impl Sums {
    pub(super) fn slots(&self) -> Range<u32> {
        self.first..self.first + self.count
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.first < other.first + other.count && other.first < self.first + self.count
    }
}

/// The matrix instructions of a warp that are in flight, and the arrays of sums that they may change.
#[derive(Debug, Default)]
pub(in crate::sim) struct Flight {
    /// Arrays that nothing has touched since a fence.
    pub(super) fenced: Vec<u32>,
    /// Sums that change in instructions of no group yet, in the groups in flight, and in groups that are over, but were not
    /// named by the wait.
    pub(super) open: Vec<Sums>,
    pub(super) groups: VecDeque<Vec<Sums>>,
    pub(super) over: Vec<Sums>,
}

impl Flight {
    pub(super) fn in_flight(&self) -> impl Iterator<Item = &Sums> {
        self.open.iter().chain(self.groups.iter().flatten())
    }

    /// Whether a lane slot holds a sum that has no value yet.
    pub(in crate::sim) fn holds(&self, slot: u32) -> bool {
        self.in_flight().chain(&self.over).any(|sums| sums.slots().contains(&slot))
    }
}
