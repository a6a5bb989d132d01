//! The pipeline of a K loop: how its tiles come in.

use crate::spec::SgemmSpec;

/// How the tiles of the K loop come in while others are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// They do not: load, barrier, compute, barrier.
    Single,
    /// The next tile waits in registers; one shared buffer.
    Prefetch,
    /// The next tile waits in registers, then goes to the other of two shared buffers.
    DoubleBuffer,
    /// Asynchronous copies fill a ring of shared buffers.
    Async {
        /// Buffers of the ring; at least 2.
        stages: u32,
        /// Steps of the k loop over which the copies of a tile are issued; from 1 to the tile's K.
        spread: u32,
    },
}

impl Pipeline {
    /// Shared buffers of each operand.
    pub(super) fn buffers(self) -> u32 {
        match self {
            Self::Single | Self::Prefetch => 1,
            Self::DoubleBuffer => 2,
            Self::Async { stages, .. } => stages,
        }
    }

    pub(super) fn from_spec(spec: &SgemmSpec) -> Self {
        match (spec.stages, spec.double_buffer, spec.prefetch) {
            (Some(stages), _, _) => Self::Async { stages, spread: spec.spread },
            (None, true, _) => Self::DoubleBuffer,
            (None, false, true) => Self::Prefetch,
            (None, false, false) => Self::Single,
        }
    }
}

/// Which tile of K may have fewer terms than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ragged {
    /// None: K is a multiple of the tile's.
    Nowhere,
    /// The first, so that the main loop needs no guard along K.
    First,
    /// The last: only then does every other tile of a pitched operand that is contiguous along K
    /// start on 16 bytes.
    Last,
}
