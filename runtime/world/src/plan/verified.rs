//! Schedules that have been verified.

use super::roles::Roles;
use super::schedule::{Schedule, StagingBuffer};
use super::{Block, Factor};
use std::ops::Deref;

/// Verified schedule, with the shards and staging buffers that the verification has computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSchedule {
    pub(super) schedule: Schedule,
    pub(super) shards: Shards,
    pub(super) staging: Vec<Vec<StagingBuffer>>,
    pub(super) roles: Roles,
}

impl VerifiedSchedule {
    /// Returns the schedule for modification, unverified.
    pub fn into_inner(self) -> Schedule {
        self.schedule
    }

    /// Returns the blocks of A, B and C on each rank.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// Returns the buffers that each rank needs beside its shards.
    ///
    /// ```
    /// use gemm_world::plan::{Distribution, Distributions, Factor, Place};
    /// use gemm_world::plan::{Schedule, StagingBuffer, Strategy};
    ///
    /// let distributions = Distributions {
    ///     a: Distribution::rows(8, 8),
    ///     b: Distribution::cols(8, 8),
    ///     c: Distribution::cols(8, 8),
    /// };
    /// let rotate = Schedule::new(distributions.clone(), 4, Strategy::Rotate)?;
    /// let slot = |slot| StagingBuffer { factor: Factor::A, place: Place::Slot(slot), len: 2 * 8 };
    /// assert_eq!(rotate.staging()[0], [slot(0), slot(1)]);
    /// let gather = Schedule::new(distributions, 4, Strategy::Gather { parts: 2 })?;
    /// let gathered = StagingBuffer { factor: Factor::A, place: Place::Gathered, len: 8 * 8 };
    /// assert_eq!(gather.staging()[0], [gathered]);
    /// # Ok::<(), gemm_world::plan::ScheduleFault>(())
    /// ```
    pub fn staging(&self) -> &[Vec<StagingBuffer>] {
        &self.staging
    }
}

impl Deref for VerifiedSchedule {
    type Target = Schedule;

    fn deref(&self) -> &Schedule {
        &self.schedule
    }
}

/// Blocks of A, B and C on each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Blocks of A, by rank.
    pub a: Vec<Block>,
    /// Blocks of B, by rank.
    pub b: Vec<Block>,
    /// Blocks of C, by rank.
    pub c: Vec<Block>,
}

impl Shards {
    /// Returns the blocks of a factor, by rank.
    pub fn of_factor(&self, factor: Factor) -> &[Block] {
        match factor {
            Factor::A => &self.a,
            Factor::B => &self.b,
        }
    }
}
