//! Accesses that the simulator refuses to perform, because they are out of bounds or misaligned.

use crate::cost::pattern::{Kind, Pattern};

/// Access that no lane of a warp performs, because at least one lane would be out of bounds or not
/// aligned to 16 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedAccess {
    pub buffer: usize,
    pub kind: Kind,
    /// Number of elements per lane: 1, or the vector width.
    pub width: u32,
    /// Logical extents of the buffer. For an access through a pointer, which has no extents, the
    /// number of elements of the array.
    pub extents: Vec<u64>,
    /// Elements of each active lane, in lane order.
    pub lanes: Vec<Reach>,
    /// Address pattern as for a recorded access, and the access's cost. `None` for a register
    /// array, or if some lane's element does not exist or is too far away to represent.
    pub pattern: Option<Pattern>,
}

/// Elements that one lane would have accessed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reach {
    pub lane: u32,
    /// Index of the first element, with one number per dimension. Through a pointer, it is the
    /// distance from the first element of the array. If the buffer is a list of arrays
    /// (`BufferArg::List`), the number of the array comes first. Empty if the pointer was never
    /// set.
    pub index: Vec<i128>,
    /// Distance from the first element of the buffer to this element in elements, as in recorded
    /// accesses; negative if the element comes before it. `None` if the list has no such array, or
    /// if the pointer was never set.
    pub at: Option<i64>,
    /// True if this lane's access is out of bounds or misaligned.
    pub is_refused: bool,
}
