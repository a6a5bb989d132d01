//! What the simulator has counted, in the report of a launch.

use crate::report::{LaunchReport, StepReport};
use gemm_sim::{Counters, Profile, SassCounters};

/// Counters of a step.
#[derive(Clone, Copy)]
pub struct StepCounters {
    counters: Counters,
    /// As the machine code does it, if that was asked for.
    compiled: Option<SassCounters>,
}

impl StepCounters {
    pub(super) fn from_profile(profile: &Profile) -> Self {
        Self { counters: profile.total, compiled: profile.compiled }
    }
}

impl LaunchReport {
    /// What the simulator counted of the [main step](Self::main_step); none on a GPU. What all of them did say the
    /// [steps](Self::steps). It needs the feature `sim`.
    pub fn counters(&self) -> Option<&Counters> {
        self.main_step()?.counters()
    }
}

impl<'a> StepReport<'a> {
    /// What the simulator counted; none on a GPU. It needs the feature `sim`.
    pub fn counters(&self) -> Option<&'a Counters> {
        Some(&self.step_counters()?.counters)
    }

    /// What the machine code was charged with, as predicted; none but of a device that counts that too
    /// ([`Simulation::compiled`](crate::Simulation::compiled)). It needs the feature `sim`.
    pub fn compiled_counters(&self) -> Option<&'a SassCounters> {
        self.step_counters()?.compiled.as_ref()
    }

    fn step_counters(&self) -> Option<&'a StepCounters> {
        self.launch.report.as_ref()?.as_deref()
    }
}
