//! What was seen of tensor cores that the pictures cannot both show: a fault of this program, and not of the kernel.

use thiserror::Error;

/// Two things that were seen and are not both so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// Something happened at a barrier that the kernel does not have.
    #[error("something was done at barrier {barrier} of a kernel that has {barriers}")]
    NoBarrier {
        /// Its number.
        barrier: u32,
        /// How many there are.
        barriers: usize,
    },
    /// The number of barriers of a declaration is not known before the launch.
    #[error("nobody knows how many barriers `{declaration}` are")]
    NoCount {
        /// The name of the declaration.
        declaration: String,
    },
    /// Boxes count at barriers of two declarations.
    #[error("boxes count at `{barrier}` and at barriers named `{full}`")]
    OtherBarrier {
        /// The barrier at which one counts.
        barrier: String,
        /// The declaration of those at which the first does.
        full: String,
    },
    /// A barrier has completed another phase than the one that it was in.
    #[error("`{barrier}` has completed phase {completed} when it was in phase {phase}")]
    OtherPhase {
        /// The barrier.
        barrier: String,
        /// The phase after those that were complete.
        phase: u32,
        /// The one that was completed.
        completed: u32,
    },
    /// A slot is given back that nothing was asked for in.
    #[error("{by} has given slot {slot} back in phase {phase}, for which nobody has asked")]
    NothingGiven {
        /// The warp.
        by: String,
        /// The slot.
        slot: u64,
        /// The phase.
        phase: u32,
    },
    /// A phase was waited for in which nothing was asked for.
    #[error("{by} has waited for phase {phase} of `{barrier}`, for which nobody has asked")]
    NothingAwaited {
        /// The warp.
        by: String,
        /// The barrier.
        barrier: String,
        /// The phase.
        phase: i64,
    },
    /// Matrix instructions read what nobody has stored.
    #[error("{by} has multiplied before anything was stored")]
    NothingStored {
        /// The warp.
        by: String,
    },
    /// The bytes of a tile lie elsewhere for those who write them than for those who read them.
    #[error(
        "part {part} of row {row} of a tile of `{array}` was written at byte {written} and is read at byte {read}"
    )]
    OtherAddress {
        /// The array.
        array: String,
        /// The row of the tile.
        row: u32,
        /// The 16 bytes of it.
        part: u32,
        /// Where they were written.
        written: u32,
        /// Where they are read.
        read: u32,
    },
    /// The rows of a box are not those of the tile that it writes.
    #[error("a box has rows of {written} bytes, and the tile of `{array}` rows of {read}")]
    OtherRows {
        /// The array.
        array: String,
        /// Bytes of a row of the box.
        written: u32,
        /// Bytes of a row of the tile.
        read: u32,
    },
    /// Boxes write an array, and tensor cores read no tile of it that a box begins with.
    #[error("boxes are written to `{array}`, and what is read of it begins with none of them")]
    NoBeginning {
        /// The array.
        array: String,
    },
    /// An array that tensor cores read has no rows.
    #[error("`{array}`, which tensor cores read, does not lie in rows")]
    NoRows {
        /// The array.
        array: String,
    },
    /// More rows of a tile were seen than those that are recorded.
    #[error("row {row} of a tile of `{array}` was seen, of {rows}")]
    NoRow {
        /// The array.
        array: String,
        /// The row.
        row: u32,
        /// How many are recorded.
        rows: u32,
    },
}
