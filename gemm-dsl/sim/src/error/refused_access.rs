//! An access to memory that does not happen, as it would have been.

use crate::cost::pattern::{Kind, Pattern};

/// What the lanes of a warp would have accessed where at least one of them may not: outside of its array, or not on 16 bytes. No lane
/// has then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedAccess {
    /// The number of the buffer.
    pub buffer: usize,
    /// What would have been done.
    pub kind: Kind,
    /// The elements of a lane: 1, or those of a vector.
    pub width: u32,
    /// The logical extents of the buffer; of one that is accessed through a pointer, which knows none, the elements of its array.
    pub extents: Vec<u64>,
    /// The lanes that take part, in their order.
    pub lanes: Vec<Reach>,
    /// How they are apart, as of an access that is recorded, and what it would have cost. None of a register array, and none where
    /// a lane is at no element, or at one too far off to be told.
    pub pattern: Option<Pattern>,
}

/// What a lane would have accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    /// The lane.
    pub lane: u32,
    /// Its first element: an index along each dimension. Through a pointer how far it is from the first of the array, of a list behind
    /// which array of it; nothing where the pointer was never set.
    pub index: Vec<i128>,
    /// How many elements that is from the first of the buffer, as accesses are recorded: negative before it. None where a list has no
    /// such array, and where no pointer is set.
    pub at: Option<i64>,
    /// Whether it may not access that.
    pub is_refused: bool,
}
