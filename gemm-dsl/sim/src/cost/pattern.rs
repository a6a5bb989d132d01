//! Address pattern of a warp's access that does not depend on its position, and the access's cost.

use crate::cost::Wavefronts;
use crate::mask::WARP;

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Load,
    Store,
    /// Read by an asynchronous copy.
    CopyRead,
    /// Write by an asynchronous copy.
    CopyWrite,
    Atomic,
}

impl Kind {
    /// Returns true if memory is written.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Load | Self::CopyRead)
    }
}

/// Address pattern of a warp's access, relative to its first lane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pattern {
    pub buffer: usize,
    pub kind: Kind,
    /// Distance of each active lane from the first active lane, in elements.
    pub lanes: [Option<i32>; WARP],
    /// Bytes accessed by each active lane.
    pub bytes: u32,
    /// Position of the first active lane: bytes since the last sector boundary in global memory, or
    /// words since bank 0 in shared memory.
    pub skew: u32,
    pub cost: Price,
}

/// Cost of an access, in units of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// Global memory: number of 32-byte sectors.
    Sectors(u64),
    Shared(Wavefronts),
}
