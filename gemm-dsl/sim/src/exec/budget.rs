//! What a launch may cost, and how far it has got.

use crate::error::{SimError, UnfinishedWarp};
use crate::launch::Launch;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the instructions of a launch, and stops it when they are too many.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: AtomicU64,
}

impl Budget {
    /// Instructions that a warp executes between two looks at the budget, at most but for code without
    /// a jump back.
    pub(crate) const STRIDE: u64 = 1 << 12;

    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0) }
    }

    /// The error of a launch that has executed as many instructions as it may.
    pub(crate) fn spent(&self, launch: &Launch<'_>, at: UnfinishedWarp) -> SimError {
        let (kernel, instructions) = (launch.kernel.name.clone(), self.limit);
        SimError::OutOfInstructions { kernel, instructions, at: Box::new(at) }
    }

    /// Adds instructions; whether all are within the limit.
    pub(crate) fn charge(&self, instructions: u64) -> bool {
        self.spent.fetch_add(instructions, Ordering::Relaxed).saturating_add(instructions)
            <= self.limit
    }
}
