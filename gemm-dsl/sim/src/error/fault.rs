//! Faults: actions of a thread that the IR forbids.

use super::{MbarrierFault, RefusedAccess, WaitingWarp, coordinates, in_order, in_turns};
use crate::error::deadlock::{named, not_begun};
use gemm_dsl::ir::{BinaryOp, RegisterLimit, Scope, Space, Ty};
use std::fmt;
use thiserror::Error;

/// Fault of a thread, with its position.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "`{kernel}`, block {}, thread ({}, {}): {kind}\n    in `{statement}`{}{}",
    coordinates(*block), thread.0, thread.1, in_order(*.order), in_turns(*.turns)
)]
pub struct Fault {
    pub kernel: String,
    pub block: (u32, u32, u32),
    pub thread: (u32, u32),
    /// First line of the statement's CUDA source.
    pub statement: String,
    /// Number of the statement ([`Kernel::statements`](gemm_dsl::ir::Kernel::statements)).
    pub number: u32,
    /// Pattern of the refused access. It is set if no lane performed the access because some lane
    /// was out of bounds or not aligned to 16 bytes.
    pub refused: Option<Box<RefusedAccess>>,
    /// Block order in which the fault occurred, if several were run because blocks synchronise:
    /// ascending, descending, shuffled with a seed, or interleaved.
    pub order: Option<&'static str>,
    /// Thread interleaving in which the fault occurred: reversed, interleaved, both, or shuffled
    /// with a seed. `None` for the forward interleaving, if threads of a block do not synchronise
    /// by atomics, or if `order` already determines it.
    pub turns: Option<&'static str>,
    pub kind: FaultKind,
}

/// Buffer element, by its logical index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub buffer: String,
    pub space: Space,
    /// One index per logical dimension.
    pub index: Vec<i128>,
    /// Distance from the first element of the buffer in elements, as in recorded accesses. `None`
    /// if the element does not exist.
    pub at: Option<u64>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.buffer)?;
        self.index.iter().try_for_each(|i| write!(f, "[{i}]"))
    }
}

/// Earlier of two accesses that are not ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierAccess {
    pub block: (u32, u32, u32),
    pub thread: (u32, u32),
    pub wrote: bool,
    /// Prefix for messages that names the asynchronous unit that made the access. It is empty for
    /// the thread's own statements.
    pub(crate) by: &'static str,
}

impl EarlierAccess {
    fn who(&self) -> String {
        let ((x, y), block) = (self.thread, coordinates(self.block));
        format!("{}thread ({x}, {y}) of block {block}", self.by)
    }

    /// Returns true if an asynchronous unit made the access for the thread.
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

#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum FaultKind {
    #[error("{place} is out of bounds: the extents are {extents:?}{}", width_note(*.width))]
    OutOfBounds {
        place: Position,
        extents: Vec<u64>,
        /// Number of elements per access: 1, or the vector width.
        width: u32,
    },
    /// An access through a pointer, which has no extents, is outside the allocation.
    #[error("{place} is out of bounds: it is element {offset} of an allocation of {len}")]
    BeyondAllocation {
        place: Position,
        /// Distance from the base of the allocation, in elements.
        offset: u64,
        len: u64,
    },
    #[error("a pointer into `{into}` is used before it is set")]
    UnsetPointer { into: String },
    #[error("pointer {index} does not exist in an array of {count}")]
    NoSuchPointer { index: i64, count: u32 },
    #[error("the 16-byte access at {place} is not aligned")]
    Misaligned { place: Position },
    #[error("{place} is read but was never written")]
    Uninitialised { place: Position },
    /// Two accesses of the same element are not ordered, and at least one is a write.
    #[error("data race on {place}: this {} is not ordered after {earlier}", verb(*.writes))]
    Race {
        place: Position,
        /// True if the later access is a write.
        writes: bool,
        earlier: EarlierAccess,
    },
    /// Data of an asynchronous copy is read before the thread that issued the copy has waited for
    /// it.
    #[error("asynchronous copy consumed before its wait: {place} is being written by \
        {}", .earlier.who())]
    CopyNotAwaited { place: Position, earlier: EarlierAccess },
    #[error("barrier {barrier}[{index}]{}: {wrong}", of_block(*.block))]
    Mbarrier {
        barrier: String,
        /// Index in the declared array of mbarriers.
        index: u32,
        /// Block whose shared memory contains the mbarrier, if it is another block of the cluster.
        block: Option<(u32, u32, u32)>,
        wrong: MbarrierFault,
    },
    /// A thread writes shared memory of another block of the cluster, which may not have started or
    /// may have exited.
    #[error(
        "this store to shared memory of block {} is not ordered {}", coordinates(*.block),
        if *.exited { "before its exit" } else { "after its start" }
    )]
    RemoteStore {
        block: (u32, u32, u32),
        /// True if the block may have exited, false if it may not have started.
        exited: bool,
    },
    #[error("block {block} does not exist in a cluster of {blocks}")]
    NoSuchBlock { block: i64, blocks: u32 },
    /// A multicast TMA copy selects no block, or a block that is not in the cluster.
    #[error("the block mask {mask:#b} of a copy does not fit a cluster of {blocks}")]
    NoSuchBlocks {
        /// Bit mask of the destination blocks.
        mask: i64,
        blocks: u32,
    },
    /// A TMA box, or a tile of a matrix instruction, is not inside its buffer.
    #[error(
        "a tile of {tile:?} elements from {place} on is out of bounds: the extents are {extents:?}"
    )]
    BoxOutside {
        place: Position,
        /// Extents of the tile along the last dimensions.
        tile: Vec<u64>,
        extents: Vec<u64>,
    },
    /// A TMA box or a tile is not aligned to the period of its swizzle.
    #[error("the tile at {place} is not aligned to {bytes} bytes")]
    MisalignedTile { place: Position, bytes: u64 },
    /// A TMA box does not start at a multiple of 16 bytes in a row. An H200 reports such a copy as
    /// an illegal instruction.
    #[error(
        "a box begins at element {index} of a row, {bytes} bytes from its start: not a multiple \
         of 16"
    )]
    MisalignedBox {
        /// Index of the box's first element in the row.
        index: i64,
        /// Offset of this element in bytes.
        bytes: i64,
    },
    /// Accumulators are read or written while a matrix instruction is in flight.
    #[error(
        "{place} is an accumulator in flight: no wait that names it covers its matrix instruction"
    )]
    AccumulatorsInFlight { place: Position },
    /// Accumulators were accessed by ordinary statements, and no fence that names them follows
    /// before the matrix instruction.
    #[error("no fence orders the accesses to `{buffer}` before the matrix instruction")]
    AccumulatorsNotFenced { buffer: String },
    #[error("the threads of the warpgroup name different operands")]
    OperandsDiffer,
    /// The warps of a warpgroup execute different statements, or the same statement with different
    /// operands.
    #[error("the warps of a warpgroup have diverged: {}", apart(.other.as_deref()))]
    WarpgroupApart {
        /// Statement that another warp has reached; `None` if the other warp has left the kernel.
        other: Option<String>,
    },
    /// A `setmaxnreg` for an increase requests fewer registers than the thread has, or one for a
    /// decrease requests more.
    #[error("{}: a thread has {has}", limited(.limit))]
    RegisterLimit {
        limit: RegisterLimit,
        /// Registers per thread of the warp before the statement.
        has: u32,
    },
    /// The warps of a block request more registers than the block has, so one of them waits
    /// forever.
    #[error(
        "registers that never become free: the warps of the block request {asked} in total, and \
         the block has {given}"
    )]
    TooManyRegisters {
        /// Number of registers that all warps would have in the end.
        asked: u32,
        /// Number of registers that were allocated to the block at its start.
        given: u32,
    },
    /// Only some threads of a barrier's scope reach it.
    #[error("{} under divergence: {absent} of its threads are absent", barrier(*.scope))]
    DivergentBarrier {
        scope: Scope,
        /// Number of threads of the scope that do not reach the barrier.
        absent: u32,
    },
    /// Only some lanes of a warp reach a named barrier.
    #[error("barrier {barrier} under divergence: {absent} lanes of the warp are absent")]
    DivergentNamedBarrier {
        barrier: u32,
        /// Number of lanes of the warp that do not reach the barrier.
        absent: u32,
    },
    /// A warp arrives at a named barrier, and nothing orders this arrival after the completion of
    /// the previous round. The arrival may therefore count in the previous round.
    #[error(
        "this arrival is not ordered after the last round of barrier {barrier}: it may count in \
         that round"
    )]
    NamedBarrierTooEarly { barrier: u32 },
    /// Warps wait for one another, or for a block that need not be resident at the same time.
    #[error("deadlock: {}{}", named(.waiting), not_begun(*.to_come))]
    Deadlock {
        waiting: Vec<WaitingWarp>,
        /// Number of blocks that have not started, and that need not start before the waiting
        /// blocks finish.
        to_come: u32,
    },
    /// Threads of a block or cluster wait at two different barriers at once.
    #[error("threads wait here while others wait at `{other}`")]
    BarrierMismatch {
        /// Source of the other barrier and of its surroundings.
        other: String,
    },
    /// Some threads of a block or cluster wait at its barrier, but other threads have left the
    /// kernel.
    #[error("threads wait at this barrier, but {exited} threads of its scope have left the kernel")]
    BarrierAfterExit { exited: u32 },
    #[error("`{intrinsic}` under divergence: {absent} lanes of the warp are absent")]
    DivergentIntrinsic {
        /// Name of the intrinsic in the CUDA source.
        intrinsic: &'static str,
        /// Number of lanes of the warp that do not execute the intrinsic.
        absent: u32,
    },
    /// The distance or lane mask of a shuffle is not from 0 to 31, or the source lane does not
    /// exist because the last warp of the block is partial.
    #[error("a shuffle by {delta} reads a lane that does not exist")]
    ShuffleSource {
        /// Distance (`shfl.down`) or lane mask (`shfl.bfly`).
        delta: i32,
    },
    #[error("{} of {} and {} overflows", operator(*.op), .operands[0], .operands[1])]
    Overflow { op: BinaryOp, operands: [i128; 2] },
    #[error("division by zero")]
    DivisionByZero,
    /// The result of a conversion or negation is out of range for its integer type.
    #[error("{value} does not fit {ty}")]
    Conversion { value: i128, ty: Ty },
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
        true => format!("{registers} registers are requested as an increase"),
        false => format!("all but {registers} registers are released"),
    }
}

fn apart(other: Option<&str>) -> String {
    match other {
        Some(statement) => format!("another one has reached `{statement}`, with its operands"),
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
