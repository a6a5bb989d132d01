//! What a thread did that the IR forbids.

use super::{MbarrierFault, RefusedAccess, WaitingWarp, coordinates, in_order, in_turns};
use crate::error::deadlock::{named, not_begun};
use gemm_dsl::ir::{BinaryOp, RegisterLimit, Scope, Space, Ty};
use std::fmt;
use thiserror::Error;

/// What a thread did wrong, and where.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "`{kernel}`, block {}, thread ({}, {}): {kind}\n    in `{statement}`{}{}",
    coordinates(*block), thread.0, thread.1, in_order(*.order), in_turns(*.turns)
)]
pub struct Fault {
    /// The kernel.
    pub kernel: String,
    /// `blockIdx`.
    pub block: (u32, u32, u32),
    /// `threadIdx`.
    pub thread: (u32, u32),
    /// The first line of the statement's text.
    pub statement: String,
    /// The number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub number: u32,
    /// The access that is at fault, where it was not made at all: some lane would have been outside of its array, or not on 16 bytes.
    pub refused: Option<Box<RefusedAccess>>,
    /// The order in which blocks ran, where there are several that synchronise: ascending,
    /// descending, shuffled with a seed, or interleaved.
    pub order: Option<&'static str>,
    /// How the threads of the block took turns, where no order of blocks says that, they ask one another
    /// by atomics, and it was not from the first to the last: reversed, interleaved, both, or shuffled with
    /// a seed.
    pub turns: Option<&'static str>,
    /// What is wrong.
    pub kind: FaultKind,
}

/// An element of a buffer by its logical index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The name of the buffer.
    pub buffer: String,
    /// The memory it lives in.
    pub space: Space,
    /// One index for each logical dimension.
    pub index: Vec<i128>,
    /// How many elements it is from the first of its buffer, as accesses are recorded; none of what is not there.
    pub at: Option<u64>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.buffer)?;
        self.index.iter().try_for_each(|i| write!(f, "[{i}]"))
    }
}

/// The earlier of two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierAccess {
    /// `blockIdx` of its thread.
    pub block: (u32, u32, u32),
    /// `threadIdx` of its thread.
    pub thread: (u32, u32),
    /// Whether it wrote.
    pub wrote: bool,
    /// What of that thread made it, as the text has it: nothing for its own statements.
    pub(crate) by: &'static str,
}

impl EarlierAccess {
    /// Who made it.
    fn who(&self) -> String {
        let ((x, y), block) = (self.thread, coordinates(self.block));
        format!("{}thread ({x}, {y}) of block {block}", self.by)
    }

    /// Whether an asynchronous copy of that thread made it.
    pub fn by_copy(&self) -> bool {
        !self.by.is_empty()
    }
}

impl fmt::Display for EarlierAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.wrote { "write" } else { "read" };
        write!(f, "the {verb} by {}", self.who())
    }
}

/// The kinds of faults.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An index is outside the logical extents of its buffer.
    #[error("{place} is out of bounds: the extents are {extents:?}{}", width_note(*.width))]
    OutOfBounds {
        /// The element.
        place: Position,
        /// The logical extents.
        extents: Vec<u64>,
        /// The elements accessed: 1, or those of a vector.
        width: u32,
    },
    /// An access through a pointer, which knows no extents, lies outside the memory given to the
    /// launch.
    #[error("{place} is element {offset} of an allocation of {len}")]
    BeyondAllocation {
        /// The element.
        place: Position,
        /// Its distance from the base, in elements.
        offset: u64,
        /// The number of elements allocated.
        len: u64,
    },
    /// A pointer is used before it is set.
    #[error("a pointer into `{into}` is used before it points anywhere")]
    UnsetPointer {
        /// The buffer that it would point into.
        into: String,
    },
    /// An array of pointers is indexed outside.
    #[error("pointer {index} of an array of {count}")]
    NoSuchPointer {
        /// The index.
        index: i64,
        /// The number of pointers.
        count: u32,
    },
    /// A 16-byte access is not aligned to 16 bytes.
    #[error("the 16-byte access at {place} is not aligned")]
    Misaligned {
        /// Its first element.
        place: Position,
    },
    /// An element is read that no thread has written.
    #[error("{place} is read and was never written")]
    Uninitialised {
        /// The element.
        place: Position,
    },
    /// Two accesses of one element, one of them a write, are not ordered.
    #[error("data race on {place}: this {} is not ordered after {earlier}", verb(*.writes))]
    Race {
        /// The element.
        place: Position,
        /// Whether the later access writes.
        writes: bool,
        /// The access it conflicts with.
        earlier: EarlierAccess,
    },
    /// Data of an asynchronous copy is read before the copying thread has waited for it.
    #[error("asynchronous copy consumed before its wait: {place} is being written by {}", .earlier.who())]
    CopyNotAwaited {
        /// The element.
        place: Position,
        /// The copy.
        earlier: EarlierAccess,
    },
    /// Something is wrong at a barrier in shared memory.
    #[error("barrier {barrier}[{index}]{}: {wrong}", of_block(*.block))]
    Mbarrier {
        /// The name of its declaration.
        barrier: String,
        /// Which of them it is.
        index: u32,
        /// The block in whose memory it is, where that is another one of the cluster than the thread's.
        block: Option<(u32, u32, u32)>,
        /// What is wrong.
        wrong: MbarrierFault,
    },
    /// A cluster has no block of this number.
    #[error("block {block} of a cluster of {blocks}")]
    NoSuchBlock {
        /// The number.
        block: i64,
        /// Blocks of a cluster.
        blocks: u32,
    },
    /// A box is copied to blocks that a cluster does not have, or to none.
    #[error("a copy to the blocks of the bits {mask:#b} of a cluster of {blocks}")]
    NoSuchBlocks {
        /// The bits of the blocks.
        mask: i64,
        /// Blocks of a cluster.
        blocks: u32,
    },
    /// A box that is copied, or a tile that is multiplied, is not inside of its buffer.
    #[error(
        "a tile of {tile:?} elements from {place} on is out of bounds: the extents are {extents:?}"
    )]
    BoxOutside {
        /// Where it begins.
        place: Position,
        /// Its extents, along the last dimensions.
        tile: Vec<u64>,
        /// The extents of the buffer.
        extents: Vec<u64>,
    },
    /// A box or a tile does not start where the rows of its swizzle do.
    #[error("the tile at {place} does not start on {bytes} bytes")]
    MisalignedTile {
        /// Where it begins.
        place: Position,
        /// The alignment.
        bytes: u64,
    },
    /// A box begins within 16 bytes of a row: an H200 takes the copy for an illegal instruction.
    #[error(
        "a box begins at element {index} of a row, {bytes} bytes from its start: no multiple of 16"
    )]
    MisalignedBox {
        /// Where in a row of the array it begins.
        index: i64,
        /// The same in bytes.
        bytes: i64,
    },
    /// Sums are read or written while matrix instructions change them.
    #[error("{place} is a sum in flight: no wait that names it covers its matrix instruction")]
    AccumulatorsInFlight {
        /// The sum.
        place: Position,
    },
    /// Matrix instructions change sums that were touched since the last fence that names them, or there is none.
    #[error("no fence orders what was done with `{buffer}` before the matrix instruction")]
    AccumulatorsNotFenced {
        /// The register array.
        buffer: String,
    },
    /// Threads of a warpgroup name different operands of a matrix instruction.
    #[error("the threads of the warpgroup name different operands")]
    OperandsDiffer,
    /// A warp executes what the others of its warpgroup do not.
    #[error("the warps of a warpgroup are apart: {}", apart(.other.as_deref()))]
    WarpgroupApart {
        /// The statement that another one has come to; none where it has left the kernel.
        other: Option<String>,
    },
    /// A limit of registers that gives nothing, or takes nothing back.
    #[error("{}: a thread has {has}", limited(.limit))]
    RegisterLimit {
        /// What is asked for.
        limit: RegisterLimit,
        /// The registers that a thread of the warp has.
        has: u32,
    },
    /// The warps of a block ask for more registers than it was given: one of them waits for ever.
    #[error(
        "registers that are never there: the warps of the block ask for {asked} in all, and it was given {given}"
    )]
    TooManyRegisters {
        /// What they have in the end.
        asked: u32,
        /// What the block was given when it started.
        given: u32,
    },
    /// A barrier is reached by some threads of its scope only.
    #[error("{} under divergence: {absent} of its threads are not there", barrier(*.scope))]
    DivergentBarrier {
        /// Who should take part.
        scope: Scope,
        /// How many threads of the scope are missing.
        absent: u32,
    },
    /// A barrier with a name is reached by some lanes of a warp only.
    #[error("barrier {barrier} under divergence: {absent} lanes of the warp are not there")]
    DivergentNamedBarrier {
        /// The barrier.
        barrier: u32,
        /// How many lanes are missing.
        absent: u32,
    },
    /// A warp comes to a barrier with a name, and nothing has told it that the round before is complete:
    /// it may be counted there.
    #[error(
        "nothing says that the last round of barrier {barrier} is complete: the warp may count in it"
    )]
    NamedBarrierTooEarly {
        /// The barrier.
        barrier: u32,
    },
    /// Warps wait for one another, or for a block that need not run at the same time.
    #[error("deadlock: {}{}", named(.waiting), not_begun(*.to_come))]
    Deadlock {
        /// All that wait.
        waiting: Vec<WaitingWarp>,
        /// Blocks that have not begun, and need not before those that wait are done.
        to_come: u32,
    },
    /// Threads of a block, or of a cluster, wait at two barriers at once.
    #[error("threads wait here while others wait at `{other}`")]
    BarrierMismatch {
        /// The other barrier, with the text of its surroundings.
        other: String,
    },
    /// Some threads of a block, or of a cluster, wait at its barrier and others have left the kernel.
    #[error(
        "threads wait at this barrier and {exited} threads that it is for have left the kernel"
    )]
    BarrierAfterExit {
        /// How many have left.
        exited: u32,
    },
    /// A warp-wide intrinsic is called by some lanes only.
    #[error("`{intrinsic}` under divergence: {absent} lanes of the warp are not there")]
    DivergentIntrinsic {
        /// Its name in the text.
        intrinsic: &'static str,
        /// How many lanes are missing.
        absent: u32,
    },
    /// A shuffle is asked for a distance, or bits, outside 0 to 31, or for a lane that does not exist because
    /// the last warp of the block is partial.
    #[error("a shuffle by {delta} reads a lane that does not exist")]
    ShuffleSource {
        /// The distance, or the bits.
        delta: i32,
    },
    /// The result of an integer operation does not fit its type.
    #[error("{} of {} and {} overflows", operator(*.op), .operands[0], .operands[1])]
    Overflow {
        /// The operator.
        op: BinaryOp,
        /// The operands.
        operands: [i128; 2],
    },
    /// What the compiler was told does not hold.
    #[error("the assumption does not hold")]
    BrokenAssumption,
    /// An integer is divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A value does not fit the integer type it is converted to, or negated in.
    #[error("{value} does not fit {ty}")]
    Conversion {
        /// The value.
        value: i128,
        /// The type.
        ty: Ty,
    },
}

fn of_block(block: Option<(u32, u32, u32)>) -> String {
    block.map_or_else(String::new, |block| format!(" of block {}", coordinates(block)))
}

fn width_note(width: u32) -> String {
    let number = match width {
        1 => return String::new(),
        2 => "two",
        4 => "four",
        8 => "eight",
        _ => "sixteen",
    };
    format!(", and {number} elements are accessed")
}

fn limited(limit: &RegisterLimit) -> String {
    let RegisterLimit { registers, more } = limit;
    match more {
        true => format!("{registers} registers are asked for as more"),
        false => format!("all but {registers} registers are given back"),
    }
}

fn apart(other: Option<&str>) -> String {
    match other {
        Some(statement) => format!("another one has come to `{statement}`, with its operands"),
        None => "another one has left the kernel".to_owned(),
    }
}

fn verb(writes: bool) -> &'static str {
    if writes { "write" } else { "read" }
}

fn barrier(scope: Scope) -> &'static str {
    match scope {
        Scope::Warp => "warp barrier",
        Scope::Block => "block barrier",
        Scope::Cluster => "cluster barrier",
        Scope::Device => unreachable!("verified: the device has no barrier"),
    }
}

fn operator(op: BinaryOp) -> String {
    match op {
        BinaryOp::Arith(op) => format!("{op:?}"),
        BinaryOp::Integer(op) => format!("{op:?}"),
        BinaryOp::Cmp(op) => format!("{op:?}"),
        BinaryOp::Logic(op) => format!("{op:?}"),
    }
}
