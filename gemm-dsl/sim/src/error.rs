//! Errors of a simulated launch.

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

/// Reason why a launch has no result.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum SimError {
    #[error("`{kernel}` takes {expected} buffers, {given} given")]
    BufferCount { kernel: String, expected: usize, given: usize },
    #[error("`{kernel}` takes {expected} scalars, {given} given")]
    ScalarCount { kernel: String, expected: usize, given: usize },
    #[error(transparent)]
    Unmet(Box<ContractError>),
    #[error("{what}: {reason}")]
    Extent { what: String, reason: HostError },
    #[error("{what} is {value}, which is not between 0 and {limit}")]
    ExtentRange { what: String, value: i128, limit: u64 },
    /// Two buffers share memory, and the kernel writes one of them. This is forbidden because
    /// kernel pointers are `__restrict__`, except those of a kernel that works in place.
    #[error("`{written}`, which the kernel writes, shares memory with `{other}`")]
    Overlap { written: String, other: String },
    /// The results depend on the block order, which the kernel does not permit.
    #[error(
        "`{kernel}`: the results depend on the order in which blocks run: {place} has the bits \
         {:#x} if they run in ascending order, and {:#x} in {order} order", .bits[0], .bits[1]
    )]
    OrderDependent {
        kernel: String,
        place: Box<Position>,
        /// Name of the other order: descending, shuffled with a seed, or interleaved.
        order: &'static str,
        /// Bits of the element in ascending order, and in the other order.
        bits: [u64; 2],
    },
    /// The results of a block depend on the interleaving of its threads, which the kernel does not
    /// permit.
    #[error(
        "`{kernel}`, block {}: the results depend on the order in which threads run: {place} has \
         the bits {:#x} if they take turns from the first to the last, and {:#x} in {turns} turns",
        coordinates(*.block), .bits[0], .bits[1]
    )]
    InterleavingDependent {
        kernel: String,
        block: (u32, u32, u32),
        place: Box<Position>,
        /// Name of the other interleaving: reversed, interleaved, both, or shuffled with a seed.
        turns: &'static str,
        /// Bits of the element in the forward interleaving, and in the other one.
        bits: [u64; 2],
    },
    /// The launch has executed as many instructions as [`crate::Options`] allows.
    #[error(
        "`{kernel}` has executed {instructions} instructions, the limit of a launch, and is not \
         done: {at}"
    )]
    OutOfInstructions {
        kernel: String,
        instructions: u64,
        /// One of the unfinished warps. If several run concurrently, the choice may vary between
        /// runs.
        at: Box<UnfinishedWarp>,
    },
    /// A progress callback launched a kernel whose blocks synchronise. This kernel shares a buffer
    /// with the observed launch, or with a launch of another thread, and one of the two writes it.
    /// Such a launch is refused, because launches could otherwise wait for one another forever.
    #[error(
        "`{kernel}` uses `{buffer}`, which is in exclusive use by another launch, and a launch \
         inside a progress callback does not wait"
    )]
    InUse { kernel: String, buffer: String },
    #[error(transparent)]
    Fault(Box<Fault>),
}

impl From<ContractError> for SimError {
    fn from(unmet: ContractError) -> Self {
        Self::Unmet(Box::new(unmet))
    }
}

impl SimError {
    /// Adds the thread interleaving to an error.
    pub(super) fn in_turns(mut self, turns: &'static str) -> Self {
        match &mut self {
            SimError::Fault(fault) => fault.turns = Some(turns),
            SimError::OutOfInstructions { at, .. } => at.turns = Some(turns),
            _ => {}
        }
        self
    }

    /// Adds the block order to an error.
    pub(super) fn in_order(mut self, order: &'static str) -> Self {
        match &mut self {
            SimError::Fault(fault) => fault.order = Some(order),
            SimError::OutOfInstructions { at, .. } => at.order = Some(order),
            _ => {}
        }
        self
    }
}

/// Unfinished warp of a launch that has spent its instruction limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedWarp {
    pub block: (u32, u32, u32),
    /// Number of the warp in the block.
    pub warp: u32,
    /// First line of the last executed statement.
    pub statement: String,
    /// Block order, as in [`Fault`].
    pub order: Option<&'static str>,
    /// Thread interleaving, as in [`Fault`].
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

fn coordinates(block: (u32, u32, u32)) -> String {
    let (x, y, z) = block;
    format!("({x}, {y}, {z})")
}
