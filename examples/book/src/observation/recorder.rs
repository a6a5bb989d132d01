//! Recording of launches on the simulator.

use gemm_runtime::Device;
use gemm_runtime::sim::watch::{Arguments, KernelRun, Profile, Trace, VerifiedKernel, Watch};
use gemm_runtime::sim::{SimError, Simulation};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records the first `count(grid)` blocks of the main launch, and the first launch with a fault.
pub(super) struct Recorder {
    count: fn([u32; 3]) -> u32,
    /// Name of the kernel to record instead of the main one.
    kernel: Option<String>,
    /// See [`Simulation::unchecked`].
    unchecked: bool,
    kept: Mutex<(Option<Recording>, Option<LaunchRecord>)>,
}

/// Recorded launch with the traces of its blocks.
pub(super) struct Recording {
    pub(super) kernel: VerifiedKernel,
    pub(super) grid: [u32; 3],
    pub(super) profile: Profile,
    pub(super) trace: Trace,
    /// Traces of the blocks after the first.
    pub(super) others: Vec<Trace>,
    pub(super) arguments: Arguments,
}

/// Kernel, grid and arguments of a launch.
pub(crate) struct LaunchRecord {
    pub(crate) kernel: VerifiedKernel,
    pub(crate) grid: [u32; 3],
    pub(crate) arguments: Arguments,
}

impl Recorder {
    pub(super) fn new(count: fn([u32; 3]) -> u32) -> Self {
        Self { count, kernel: None, unchecked: false, kept: Mutex::default() }
    }

    /// Records the kernel of this name, even if it is not the main one.
    pub(super) fn at(self, kernel: String) -> Self {
        Self { kernel: Some(kernel), ..self }
    }

    /// Skips race detection.
    pub(super) fn unchecked(self) -> Self {
        Self { unchecked: true, ..self }
    }

    /// Returns a simulator that reports to the recorder and predicts SASS counters.
    pub(super) fn device(self: &Arc<Self>) -> Device {
        let watch: Option<Arc<dyn Watch>> = Some(self.clone());
        let simulation = Simulation {
            compiled: true,
            unchecked: self.unchecked,
            watch,
            ..Simulation::default()
        };
        Device::simulator_of(simulation)
    }

    pub(super) fn seen(&self) -> Option<Recording> {
        self.kept().0.take()
    }

    /// Removes and returns the recorded launch with a fault.
    pub(super) fn failed(&self) -> Option<LaunchRecord> {
        self.kept().1.take()
    }

    fn kept(&self) -> MutexGuard<'_, (Option<Recording>, Option<LaunchRecord>)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(
        &self,
        launch: LaunchRecord,
        is_looked_at: bool,
        ran: Result<&Profile, &SimError>,
        traces: Vec<Trace>,
    ) {
        let mut traces = traces.into_iter();
        match (ran, traces.next()) {
            (Ok(profile), Some(trace)) if is_looked_at => {
                let LaunchRecord { kernel, grid, arguments } = launch;
                let (profile, others) = (profile.clone(), traces.collect());
                self.kept().0 = Some(Recording { kernel, grid, profile, trace, others, arguments });
            }
            (Err(SimError::Fault(_)), _) => {
                self.kept().1.get_or_insert(launch);
            }
            _ => {}
        }
    }
}

impl Watch for Recorder {
    fn blocks(&self, _: &VerifiedKernel, grid: [u32; 3]) -> Vec<u32> {
        (0..(self.count)(grid)).collect()
    }

    fn ran(&self, seen: KernelRun<'_>) {
        let is_looked_at = match &self.kernel {
            Some(kernel) => *kernel == seen.kernel.name,
            None => seen.is_main,
        };
        let (kernel, grid) = (seen.kernel.clone(), seen.grid);
        let launch = LaunchRecord { kernel, grid, arguments: seen.arguments };
        self.keep(launch, is_looked_at, seen.ran, seen.traces);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{Spec, looked};
    use crate::sync;
    use gemm_bench::family::Family;
    use gemm_dsl::cuda;

    /// A removed barrier simulates a fault of the generator.
    #[test]
    fn a_launch_that_fails_by_itself_is_drawn() {
        let line = "tile: 32x32x32";
        let spec = Spec::parse(Family::Sgemm, line).expect("a spec");
        let looked = looked(Family::Sgemm, line);
        let listing = cuda::listing(&looked.kernel);
        let barrier = *sync::lines(&looked.kernel, &listing).last().expect("it has barriers");
        let faulty = sync::changed(&looked.kernel, &listing, barrier).expect("a kernel");
        let (faulty, _) = faulty.expect("a barrier");
        let replay = looked.arguments.replay(&faulty, &[0], 1 << 24).expect("it fits");
        let eye = Recorder::new(|_| 1);
        let (grid, arguments) = (looked.grid, looked.arguments.clone());
        let launch = LaunchRecord { kernel: faulty, grid, arguments };
        eye.keep(launch, true, replay.ran.as_ref(), replay.traces);
        assert!(eye.seen().is_none(), "it has no profile");
        let failed = eye.failed().expect("a fault");
        let drawn = failed.drawn("sgemm_kernel", line.to_owned()).expect("a page");
        let broken = drawn.expect("a fault");
        assert!(broken.change.is_none());
        assert!(broken.fault.what.starts_with("data race on As[0][0]"), "{:?}", broken.fault);
        assert_eq!(broken.accesses.len(), 2);
        // A launch without a fault is not recorded as failed.
        assert!(spec.failed(spec.at().expect("a shape")).is_none());
    }
}
