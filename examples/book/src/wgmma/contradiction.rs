//! Contradictions between recorded tensor-core events. A contradiction is a fault of the book, not
//! of the kernel.

use thiserror::Error;

/// Contradiction between two recorded events.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// An event refers to a barrier that the kernel does not declare.
    #[error("barrier {barrier} was used in a kernel that has {barriers} barriers")]
    NoBarrier {
        barrier: u32,
        /// Number of barriers of the kernel.
        barriers: usize,
    },
    /// The number of barriers of a declaration is unknown before the launch.
    #[error("the number of barriers `{declaration}` is unknown")]
    NoCount { declaration: String },
    /// TMA boxes signal barriers of two declarations.
    #[error("boxes arrive both at `{barrier}` and at barriers named `{full}`")]
    OtherBarrier {
        /// Barrier that a box signals.
        barrier: String,
        /// Declaration of the barrier that the first box signals.
        full: String,
    },
    /// A barrier completed a phase other than its current one.
    #[error("`{barrier}` completed phase {completed} while in phase {phase}")]
    OtherPhase { barrier: String, phase: u32, completed: u32 },
    /// A slot was released in a phase in which no tile was requested.
    #[error("{by} released slot {slot} in phase {phase}, for which no tile was requested")]
    NothingGiven { by: String, slot: u64, phase: u32 },
    /// A warp waited for a phase in which no tile was requested.
    #[error("{by} waited for phase {phase} of `{barrier}`, for which no tile was requested")]
    NothingAwaited { by: String, barrier: String, phase: i64 },
    /// Matrix instructions read a slot before any store.
    #[error("{by} multiplied before anything was stored")]
    NothingStored { by: String },
    /// Part of a tile is read at an address other than the one it was written to.
    #[error(
        "chunk {part} of row {row} of a tile of `{array}` was written at byte {written} and is \
         read at byte {read}"
    )]
    OtherAddress {
        array: String,
        row: u32,
        /// Index of the 16-byte part in the row.
        part: u32,
        written: u32,
        read: u32,
    },
    /// The rows of a box and of the tile that it fills differ in length.
    #[error(
        "a box has rows of {written} bytes, and the tile of `{array}` has rows of {read} bytes"
    )]
    OtherRows {
        array: String,
        /// Bytes of a row of the box.
        written: u32,
        /// Bytes of a row of the tile.
        read: u32,
    },
    /// TMA boxes fill an array, but no tile that is read starts at a box.
    #[error("boxes are written to `{array}`, but no read of the array begins at a box")]
    NoBeginning { array: String },
    /// An array read by tensor cores has no rows.
    #[error("`{array}`, which tensor cores read, is not row-major")]
    NoRows { array: String },
    /// A tile has more rows than are recorded.
    #[error("row {row} of a tile of `{array}` was recorded, but the tile has {rows} rows")]
    NoRow { array: String, row: u32, rows: u32 },
}
