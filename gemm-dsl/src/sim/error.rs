//! What a simulated launch reports instead of a result.

use crate::ir::contract::Unmet;
use crate::ir::{BinaryOp, HostError, Scope, Space, Ty};
use std::fmt;
use thiserror::Error;

/// Why a launch has no result.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The number of buffers is not that of the kernel's buffer parameters.
    #[error("`{kernel}` takes {expected} buffers, {given} given")]
    BufferCount {
        /// The kernel.
        kernel: String,
        /// Its buffer parameters.
        expected: usize,
        /// The buffers of the launch.
        given: usize,
    },
    /// The number of scalars is not that of the kernel's scalar parameters.
    #[error("`{kernel}` takes {expected} scalars, {given} given")]
    ScalarCount {
        /// The kernel.
        kernel: String,
        /// Its scalar parameters.
        expected: usize,
        /// The scalars of the launch.
        given: usize,
    },
    /// The arguments do not meet the kernel's contract.
    #[error(transparent)]
    Unmet(Box<Unmet>),
    /// A grid extent, buffer extent or stride has no value for these scalars.
    #[error("{what}: {reason}")]
    Extent {
        /// What was to be computed.
        what: String,
        /// Why it has no value.
        reason: HostError,
    },
    /// A grid extent, buffer extent or stride is negative or too large.
    #[error("{what} is {value}, which is not between 0 and {limit}")]
    ExtentRange {
        /// What was computed.
        what: String,
        /// Its value.
        value: i128,
        /// The largest value allowed.
        limit: u64,
    },
    /// Two buffers share memory and the kernel writes one of them; its pointers are `__restrict__`.
    #[error("`{written}`, which the kernel writes, shares memory with `{other}`")]
    Overlap {
        /// The buffer that is written.
        written: String,
        /// The other buffer.
        other: String,
    },
    /// The results depend on the order in which blocks run, and the kernel does not say that they may.
    #[error(
        "`{kernel}`: the results depend on the order in which blocks run: {place} has the bits {:#x} \
         if they run in ascending order, and {:#x} in {order} order", .bits[0], .bits[1]
    )]
    OrderDependent {
        /// The kernel.
        kernel: String,
        /// The first element that differs.
        place: Box<Position>,
        /// The other order: descending, shuffled with a seed, or interleaved.
        order: &'static str,
        /// The bits of the element in ascending order, and in the other.
        bits: [u64; 2],
    },
    /// The results of a block depend on the order in which its threads run, and the kernel does not say
    /// that they may.
    #[error(
        "`{kernel}`, block {}: the results depend on the order in which threads run: {place} has the \
         bits {:#x} if they take turns from the first to the last, and {:#x} in {turns} turns",
        coordinates(*.block), .bits[0], .bits[1]
    )]
    TurnDependent {
        /// The kernel.
        kernel: String,
        /// `blockIdx`.
        block: (u32, u32, u32),
        /// The first element that differs.
        place: Box<Position>,
        /// The other turns: reversed, interleaved, both, or shuffled with a seed.
        turns: &'static str,
        /// The bits of the element from the first to the last, and in the other turns.
        bits: [u64; 2],
    },
    /// The warps of the launch have executed more instructions than [`super::Options`] allow.
    #[error(
        "`{kernel}` has executed the {instructions} instructions that a launch may, and is not done: {at}"
    )]
    OutOfInstructions {
        /// The kernel.
        kernel: String,
        /// The instructions allowed.
        instructions: u64,
        /// One of the warps that were not done. Which of those that run at the same time, is not the same
        /// on every run.
        at: Box<Unfinished>,
    },
    /// A kernel whose blocks speak to one another is launched by what watches the progress of another such
    /// launch, and shares a buffer with it that one of them writes: each would wait for the other.
    #[error("`{kernel}` uses `{buffer}`, which the launch that this thread watches needs alone")]
    InUse {
        /// The kernel.
        kernel: String,
        /// The buffer.
        buffer: String,
    },
    /// A thread did what the IR forbids.
    #[error(transparent)]
    Fault(Box<Fault>),
}

impl From<Unmet> for SimError {
    fn from(unmet: Unmet) -> Self {
        Self::Unmet(Box::new(unmet))
    }
}

impl SimError {
    /// As an error of a block whose threads took these turns.
    pub(super) fn in_turns(mut self, turns: &'static str) -> Self {
        match &mut self {
            SimError::Fault(fault) => fault.turns = Some(turns),
            SimError::OutOfInstructions { at, .. } => at.turns = Some(turns),
            _ => {}
        }
        self
    }

    /// As an error of blocks that ran in this order.
    pub(super) fn in_order(mut self, order: &'static str) -> Self {
        match &mut self {
            SimError::Fault(fault) => fault.order = Some(order),
            SimError::OutOfInstructions { at, .. } => at.order = Some(order),
            _ => {}
        }
        self
    }
}

/// A warp that was not done when the instructions of the launch were spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// `blockIdx` of its block.
    pub block: (u32, u32, u32),
    /// Its number in the block.
    pub warp: u32,
    /// The first line of the text of the statement that it has executed last.
    pub statement: String,
    /// The order in which blocks ran, as in [`Fault`].
    pub order: Option<&'static str>,
    /// How the threads of the block took turns, as in [`Fault`].
    pub turns: Option<&'static str>,
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, order, turns) =
            (coordinates(self.block), in_order(self.order), in_turns(self.turns));
        write!(f, "warp {} of block {block} is in `{}`{order}{turns}", self.warp, self.statement)
    }
}

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
    /// The order in which blocks ran, where there are several that speak to one another: ascending,
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
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.buffer)?;
        self.index.iter().try_for_each(|i| write!(f, "[{i}]"))
    }
}

/// The earlier of two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// `blockIdx` of its thread.
    pub block: (u32, u32, u32),
    /// `threadIdx` of its thread.
    pub thread: (u32, u32),
    /// Whether it wrote.
    pub wrote: bool,
    /// What of that thread made it, as the text has it: nothing for its own statements.
    pub(super) by: &'static str,
}

impl Earlier {
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

impl fmt::Display for Earlier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.wrote { "write" } else { "read" };
        write!(f, "the {verb} by {}", self.who())
    }
}

/// A warp that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// `blockIdx` of its block.
    pub block: (u32, u32, u32),
    /// Its number in the block.
    pub warp: u32,
    /// The first line of the text of the statement at which it waits.
    pub statement: String,
    /// For what.
    pub waits_for: WaitsFor,
}

/// What a warp waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// All warps of the block.
    Block,
    /// Those that are to arrive at a barrier with a name.
    Named {
        /// The barrier.
        barrier: u32,
        /// The threads that have arrived.
        arrived: u32,
        /// The threads that take part.
        expected: u32,
    },
    /// Memory that others write: it goes round in a loop, and nobody else does anything.
    Change,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {} of block {} waits ", self.warp, coordinates(self.block))?;
        match self.waits_for {
            WaitsFor::Block => f.write_str("for all warps of the block")?,
            WaitsFor::Named { barrier, arrived, expected } => {
                write!(
                    f,
                    "at barrier {barrier}, where {arrived} of {expected} threads have arrived"
                )?;
            }
            WaitsFor::Change => f.write_str("for others to write memory")?,
        }
        write!(f, ", in `{}`", self.statement)
    }
}

/// The most warps that the message of a deadlock names.
const NAMED: usize = 4;

/// The warps that wait, the first few of them.
fn named(waiting: &[Waiting]) -> String {
    let names: Vec<String> = waiting.iter().take(NAMED).map(|w| w.to_string()).collect();
    let more = match waiting.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    names.join("; ") + &more
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
        earlier: Earlier,
    },
    /// Data of an asynchronous copy is read before the copying thread has waited for it.
    #[error("asynchronous copy consumed before its wait: {place} is being written by {}", .earlier.who())]
    CopyNotAwaited {
        /// The element.
        place: Position,
        /// The copy.
        earlier: Earlier,
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
        waiting: Vec<Waiting>,
        /// Blocks that have not begun, and need not before those that wait are done.
        to_come: u32,
    },
    /// Threads of a block wait at two barriers at once.
    #[error("threads wait here while others wait at `{other}`")]
    BarrierMismatch {
        /// The other barrier, with the text of its surroundings.
        other: String,
    },
    /// Some threads of a block wait at a barrier and others have left the kernel.
    #[error("threads wait at this barrier and {exited} threads of the block have left the kernel")]
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
    /// A shuffle is asked for a distance outside 0 to 31, or for a lane that does not exist because
    /// the last warp of the block is partial.
    #[error("a shuffle by {delta} reads a lane that does not exist")]
    ShuffleSource {
        /// The distance.
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

fn in_order(order: Option<&str>) -> String {
    order.map_or_else(String::new, |order| format!("\n    with the blocks in {order} order"))
}

fn in_turns(turns: Option<&str>) -> String {
    turns.map_or_else(String::new, |turns| {
        format!("\n    with the threads of the block in {turns} turns")
    })
}

/// The blocks that those which wait may have waited for.
fn not_begun(blocks: u32) -> String {
    match blocks {
        0 => String::new(),
        1 => "; and one block need not begin before these are done".into(),
        more => format!("; and {more} blocks need not begin before these are done"),
    }
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

fn verb(writes: bool) -> &'static str {
    if writes { "write" } else { "read" }
}

fn barrier(scope: Scope) -> &'static str {
    match scope {
        Scope::Warp => "warp barrier",
        Scope::Block => "block barrier",
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

/// The coordinates of a block, the third only where it tells blocks apart.
fn coordinates((x, y, z): (u32, u32, u32)) -> String {
    if z == 0 { format!("({x}, {y})") } else { format!("({x}, {y}, {z})") }
}
