//! Instruction budget of a launch.

use crate::error::{SimError, UnfinishedWarp};
use crate::launch::Launch;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the instructions of a launch against its limit.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: AtomicU64,
}

impl Budget {
    /// Number of instructions of a warp between two checks of the budget. Only code without a
    /// backward jump may exceed this number.
    pub(crate) const STRIDE: u64 = 1 << 12;

    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0) }
    }

    /// Creates the error for a spent budget.
    pub(crate) fn spent(&self, launch: &Launch<'_>, at: UnfinishedWarp) -> SimError {
        let (kernel, instructions) = (launch.kernel.name.clone(), self.limit);
        SimError::OutOfInstructions { kernel, instructions, at: Box::new(at) }
    }

    /// Adds executed instructions. Returns true if the total is within the limit.
    pub(crate) fn charge(&self, instructions: u64) -> bool {
        self.spent.fetch_add(instructions, Ordering::Relaxed).saturating_add(instructions)
            <= self.limit
    }
}
