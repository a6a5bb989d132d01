//! Notice that the simulator is slow because it was compiled without optimisation.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NOTICE: &str = "\
note: the simulator of gemm-runtime was compiled without optimisation, so it takes 10 to 50 times \
as long. Add these lines to the Cargo.toml of your workspace:

[profile.dev.package.gemm-sim]
opt-level = 3
";

/// Time that a process simulates before it prints the notice.
const PATIENCE: Duration = Duration::from_secs(1);

/// Simulated launch whose time is added to the time of the process when it ends.
pub(super) struct Timed(Instant);

impl Timed {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        static SPENT: AtomicU64 = AtomicU64::new(0);
        if !gemm_sim::IS_OPTIMISED && is_due(&SPENT, self.0.elapsed()) {
            eprint!("{NOTICE}");
        }
    }
}

/// Adds the time of a launch. Returns true for the one launch with which the patience ends.
fn is_due(spent: &AtomicU64, took: Duration) -> bool {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let (took, patience) = (micros(took), micros(PATIENCE));
    let before = spent.fetch_add(took, Ordering::Relaxed);
    before < patience && before.saturating_add(took) >= patience
}

#[cfg(test)]
mod tests {
    use super::{PATIENCE, is_due};
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    #[test]
    fn the_notice_is_due_once_after_a_second() {
        let spent = AtomicU64::new(0);
        let third = Duration::from_micros(333_333);
        let due: Vec<bool> = (0..6).map(|_| is_due(&spent, third)).collect();
        assert_eq!(due, [false, false, false, true, false, false]);
        assert!(is_due(&AtomicU64::new(0), PATIENCE));
    }

    /// The workspace's Cargo.toml has the lines of the notice.
    #[test]
    fn the_simulator_of_this_workspace_is_optimised() {
        const { assert!(gemm_sim::IS_OPTIMISED) };
    }
}
