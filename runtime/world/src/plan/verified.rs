//! A schedule that may be carried out.

use super::Block;
use super::roles::Roles;
use super::schedule::{Room, Schedule, Side};
use std::ops::Deref;

/// A schedule that computes its product, with what was found when it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedSchedule {
    pub(super) schedule: Schedule,
    pub(super) shards: Shards,
    pub(super) rooms: Vec<Vec<Room>>,
    pub(super) roles: Roles,
}

impl VerifiedSchedule {
    /// The schedule, to be changed.
    pub fn into_inner(self) -> Schedule {
        self.schedule
    }

    /// What each rank has of each matrix.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }

    /// What memory each rank needs beside its shards.
    ///
    /// ```
    /// use gemm_world::plan::{Layout, Layouts, Place, Room, Schedule, Side, Way};
    ///
    /// let layouts = Layouts { a: Layout::rows(8, 8), b: Layout::cols(8, 8), c: Layout::cols(8, 8) };
    /// let rotate = Schedule::new(layouts.clone(), 4, Way::Rotate)?;
    /// let slot = |slot| Room { side: Side::A, place: Place::Slot(slot), len: 2 * 8 };
    /// assert_eq!(rotate.rooms()[0], [slot(0), slot(1)]);
    /// let gather = Schedule::new(layouts, 4, Way::Gather { parts: 2 })?;
    /// assert_eq!(gather.rooms()[0], [Room { side: Side::A, place: Place::Gathered, len: 8 * 8 }]);
    /// # Ok::<(), gemm_world::plan::ScheduleFault>(())
    /// ```
    pub fn rooms(&self) -> &[Vec<Room>] {
        &self.rooms
    }
}

impl Deref for VerifiedSchedule {
    type Target = Schedule;

    fn deref(&self) -> &Schedule {
        &self.schedule
    }
}

/// What each rank has of each matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shards {
    /// Of A.
    pub a: Vec<Block>,
    /// Of B.
    pub b: Vec<Block>,
    /// Of C.
    pub c: Vec<Block>,
}

impl Shards {
    /// Of a matrix that is multiplied.
    pub fn of(&self, side: Side) -> &[Block] {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}
