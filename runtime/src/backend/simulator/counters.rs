//! Counters of a simulated launch.

use gemm_sim::{Counters, Profile, SassCounters};

/// Counters of one kernel launch.
#[derive(Clone, Copy)]
pub struct StepCounters {
    pub(crate) counters: Counters,
    /// Predicted counters of the machine code, if the device predicts them.
    pub(crate) compiled: Option<SassCounters>,
}

impl StepCounters {
    pub(super) fn from_profile(profile: &Profile) -> Self {
        Self { counters: profile.total, compiled: profile.compiled }
    }
}
