//! How the lanes of a warp access memory, wherever that is, and what it costs.

use crate::cost::Wavefronts;
use crate::mask::WARP;

/// What is done to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A load.
    Load,
    /// A store.
    Store,
    /// What an asynchronous copy reads.
    CopyRead,
    /// What an asynchronous copy writes.
    CopyWrite,
    /// An atomic.
    Atomic,
}

impl Kind {
    /// Whether memory is written.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Load | Self::CopyRead)
    }
}

/// How the lanes of a warp access a buffer, wherever that is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Pattern {
    /// The number of the buffer.
    pub buffer: usize,
    /// What is done.
    pub kind: Kind,
    /// For each lane that takes part, how many elements it is from the first that does.
    pub lanes: [Option<i32>; WARP],
    /// Bytes of a lane.
    pub bytes: u32,
    /// Where the first lane is: of global memory the bytes since the last boundary of a sector, of shared memory the word,
    /// counted from bank 0.
    pub skew: u32,
    /// What it costs.
    pub cost: Price,
}

/// What an access costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Price {
    /// Global memory: sectors of 32 bytes.
    Sectors(u64),
    /// Shared memory.
    Shared(Wavefronts),
}
