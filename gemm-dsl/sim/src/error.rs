//! What a simulated launch reports instead of a result.

mod deadlock;
mod fault;
mod mbarrier;
mod refused_access;

pub use deadlock::{WaitReason, WaitingWarp};
pub use fault::{EarlierAccess, Fault, FaultKind, Position};
pub use mbarrier::MbarrierFault;
pub use refused_access::{Reach, RefusedAccess};

use gemm_dsl::ir::HostError;
use gemm_dsl::ir::contract::ContractError;
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
    Unmet(Box<ContractError>),
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
    /// The warps of the launch have executed more instructions than [`crate::Options`] allow.
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
        at: Box<UnfinishedWarp>,
    },
    /// A kernel whose blocks synchronise is launched by what watches the progress of another such
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

impl From<ContractError> for SimError {
    fn from(unmet: ContractError) -> Self {
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
pub struct UnfinishedWarp {
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

impl fmt::Display for UnfinishedWarp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, order, turns) =
            (coordinates(self.block), in_order(self.order), in_turns(self.turns));
        write!(f, "warp {} of block {block} is in `{}`{order}{turns}", self.warp, self.statement)
    }
}

fn in_order(order: Option<&str>) -> String {
    order.map_or_else(String::new, |order| format!("\n    with the blocks in {order} order"))
}

fn in_turns(turns: Option<&str>) -> String {
    turns.map_or_else(String::new, |turns| {
        format!("\n    with the threads of the block in {turns} turns")
    })
}

/// The coordinates of a block, all three, as all that names blocks has them.
fn coordinates(block: (u32, u32, u32)) -> String {
    let (x, y, z) = block;
    format!("({x}, {y}, {z})")
}
