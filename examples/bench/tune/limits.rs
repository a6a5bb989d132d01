use std::time::{Duration, Instant};

pub struct SearchLimits {
    pub start: Instant,
    pub time: Duration,
    pub seed: u64,
    /// Number of specs timed thoroughly, for each size.
    pub finalists: usize,
    /// Number of random specs to time instead of a search.
    pub sample: Option<usize>,
}

impl SearchLimits {
    /// Returns true if a share of the time limit has passed.
    pub fn passed(&self, share: f64) -> bool {
        self.start.elapsed() > self.time.mul_f64(share)
    }
}
