//! How far a search goes.

use std::time::{Duration, Instant};

/// How far a search may go.
pub struct SearchLimits {
    pub start: Instant,
    pub time: Duration,
    pub seed: u64,
    /// Specs that are timed at leisure, for each size.
    pub finalists: usize,
    /// Specs that are drawn at random, where nothing is searched.
    pub sample: Option<usize>,
}

impl SearchLimits {
    /// Whether a share of the time has passed.
    pub fn passed(&self, share: f64) -> bool {
        self.start.elapsed() > self.time.mul_f64(share)
    }
}
