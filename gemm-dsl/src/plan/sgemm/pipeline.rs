//! Pipeline of the K loop, and the position of a K tile that may be ragged.

use crate::ir::Variant;
use crate::spec::SgemmSpec;

/// Bytes of the smallest asynchronous copy.
pub(super) const LEAST_BYTES: u32 = 4;

/// Overlap of tile loads with computation in the K loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipeline {
    /// No overlap: load, barrier, compute, barrier.
    Single,
    /// No overlap, and the tile of B is staged in parts: load, barrier, compute, barrier for each.
    Parts {
        /// Number of parts: columns of a thread.
        parts: u32,
    },
    /// The next tile is prefetched to registers; one shared buffer.
    Prefetch,
    /// The next tile is prefetched to registers, and then stored to the second of two shared
    /// buffers.
    DoubleBuffer,
    /// Asynchronous copies fill a ring of shared buffers.
    Async {
        /// Number of buffers of the ring; at least 2.
        stages: u32,
        /// Number of steps of the k loop over which the copies of a tile are spread; from 1 to the
        /// tile's K.
        spread: u32,
    },
}

impl Pipeline {
    pub(crate) fn buffers(self) -> u32 {
        match self {
            Self::Single | Self::Parts { .. } | Self::Prefetch => 1,
            Self::DoubleBuffer => 2,
            Self::Async { stages, .. } => stages,
        }
    }

    /// Chooses the pipeline of a variant. An asynchronous copy moves at least [`LEAST_BYTES`], so
    /// a variant with scalar accesses and smaller elements copies through registers.
    pub(super) fn from_spec(spec: &SgemmSpec, variant: Variant) -> Self {
        let is_scalar = matches!(variant, Variant::Scalar | Variant::Guarded);
        let is_small = spec.types().a.size() < LEAST_BYTES && !spec.converts_matrices();
        match (spec.stages, spec.double_buffer, spec.prefetch) {
            (Some(_), _, _) if is_small && is_scalar => Self::DoubleBuffer,
            (Some(stages), _, _) => Self::Async { stages, spread: spec.spread },
            (None, true, _) => Self::DoubleBuffer,
            (None, false, true) => Self::Prefetch,
            (None, false, false) if spec.b_in_parts => Self::Parts { parts: spec.parts_of_b() },
            (None, false, false) => Self::Single,
        }
    }
}

/// Position of the tile of K that may be shorter than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ragged {
    /// No tile: K is a multiple of the tile's K.
    Nowhere,
    /// The first tile, so that the main loop checks no element along K.
    First,
    /// The last tile, so that all others start at multiples of the tile's K. Tensor cores need this
    /// position. So do 16-byte accesses to K-major operands with a row stride.
    Last,
}
