//! What the simulator has counted of a launch.

use gemm_sim::{Counters, Profile, SassCounters};

/// Counters of a step.
#[derive(Clone, Copy)]
pub struct StepCounters {
    pub(crate) counters: Counters,
    /// As the machine code does it, if that was asked for.
    pub(crate) compiled: Option<SassCounters>,
}

impl StepCounters {
    pub(super) fn from_profile(profile: &Profile) -> Self {
        Self { counters: profile.total, compiled: profile.compiled }
    }
}
