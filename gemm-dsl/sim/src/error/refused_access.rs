//! Accesses that the simulator refuses: out of bounds or misaligned.

use crate::cost::pattern::{Kind, Pattern};

/// Access that no lane of a warp makes, because at least one lane would be out of bounds or not
/// 16-byte aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedAccess {
    pub buffer: usize,
    pub kind: Kind,
    /// Elements per lane: 1, or the vector width.
    pub width: u32,
    /// Logical extents of the buffer. For an access through a pointer, which has no extents: the
    /// number of elements of its array.
    pub extents: Vec<u64>,
    /// Active lanes, in lane order.
    pub lanes: Vec<Reach>,
    /// Address pattern, as for a recorded access, and its cost. `None` for a register array, and if
    /// a lane has no element or one too far away to represent.
    pub pattern: Option<Pattern>,
}

/// Elements that one lane would have accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    pub lane: u32,
    /// Index of the first element, one number per dimension. Through a pointer: the distance from
    /// the first element of the array, preceded by the number of the array if it is one of a list.
    /// Empty if the pointer was never set.
    pub index: Vec<i128>,
    /// Distance of that element from the first of the buffer, in elements, as in recorded accesses;
    /// negative before it. `None` if the list has no such array or the pointer was never set.
    pub at: Option<i64>,
    /// True if this lane's access is out of bounds or misaligned.
    pub is_refused: bool,
}
