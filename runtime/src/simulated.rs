//! Simulated devices, and simulator counters in launch reports.

use crate::backend::StepCounters;
use crate::backend::simulator::watch::Watch;
use crate::backend::simulator::{Simulation, Simulator};
use crate::device::{Device, DeviceBackend};
use crate::error::{Error, Result};
use crate::report::{LaunchReport, StepReport};
use gemm_sim::{Counters, SassCounters};
use std::sync::Arc;

/// Constructors of simulators. They need the feature `sim`.
impl Device {
    /// Creates a simulator with its own memory, which only this handle and its clones can access.
    /// Needs the feature `sim`.
    pub fn simulator() -> Self {
        Self::simulator_of(Simulation::default())
    }

    /// Creates a simulator that limits the instructions of a launch, summed over all warps. Needs
    /// the feature `sim`.
    ///
    /// A statement, a test or a branch counts as one instruction. [`Device::simulator`] allows
    /// 2^36, which takes some hours on one core. A launch that exceeds the limit fails with
    /// [`Error::Simulator`]. Elements that it has already written keep their new values.
    pub fn simulator_within(instructions: u64) -> Self {
        Self::simulator_of(Simulation { instructions, ..Simulation::default() })
    }

    /// Creates a simulator with an observer. The observer receives the cost of each statement and,
    /// for blocks that it selects, a trace of events. The book and `explain --html` draw their
    /// pages from these data. Needs the feature `sim`.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    /// use gemm_runtime::sim::watch::{KernelRun, VerifiedKernel, Watch};
    /// use std::sync::{Arc, Mutex};
    ///
    /// /// Records the number of events of the first block of each launch.
    /// #[derive(Default)]
    /// struct Events(Mutex<Vec<usize>>);
    ///
    /// impl Watch for Events {
    ///     fn blocks(&self, _: &VerifiedKernel, _: [u32; 3]) -> Vec<u32> {
    ///         vec![0]
    ///     }
    ///
    ///     fn ran(&self, seen: KernelRun<'_>) {
    ///         let events = seen.traces.iter().map(|trace| trace.events.len());
    ///         self.0.lock().unwrap().extend(events);
    ///     }
    /// }
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 64);
    /// let events = Arc::new(Events::default());
    /// SUM.run(&Device::simulator_watched(events.clone()), &[1.0; 64])?;
    /// assert!(events.0.lock().unwrap()[0] > 0);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn simulator_watched(watch: Arc<dyn Watch>) -> Self {
        Self::simulator_of(Simulation { watch: Some(watch), ..Simulation::default() })
    }

    /// Creates a simulator that also predicts the machine-code instructions of each kernel, for
    /// [`StepReport::compiled_counters`](crate::StepReport::compiled_counters). Needs the feature
    /// `sim`.
    ///
    /// This simulator only collects counters: it detects no races, and runs blocks with inter-block
    /// synchronisation in one order.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator_compiled();
    /// let (x, mut sum) = (device.upload(&[1.0; 100])?, device.alloc(1)?);
    /// let launched = SUM.launch(&device, &x, &mut sum)?;
    /// let counts = launched.steps().next().and_then(|step| step.compiled_counters());
    /// assert!(counts.is_some_and(|counts| counts.barriers > 0));
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn simulator_compiled() -> Self {
        Self::simulator_of(Simulation { compiled: true, unchecked: true, ..Simulation::default() })
    }

    /// Creates a simulator with any combination of options. One run of a kernel serves race
    /// detection, machine-code counters and the observer together. Needs the feature `sim`.
    ///
    /// ```
    /// use gemm_runtime::sim::Simulation;
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator_of(Simulation { compiled: true, ..Simulation::default() });
    /// let (x, mut sum) = (device.upload(&[1.0; 100])?, device.alloc(1)?);
    /// let launched = SUM.launch(&device, &x, &mut sum)?;
    /// let main = launched.main_step().expect("there is something to fold");
    /// assert!(main.counters().is_some() && main.compiled_counters().is_some());
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn simulator_of(simulation: Simulation) -> Self {
        Self::new("the simulator".to_owned(), DeviceBackend::Simulator(Simulator::new(simulation)))
    }

    /// Device of [`Device::auto`] if there is no GPU.
    pub(crate) fn instead_of_gpu(_: Error) -> Result<Self> {
        Ok(Self::simulator())
    }
}

impl LaunchReport {
    /// Returns the simulator's counters of the [main step](Self::main_step), or `None` on a GPU.
    /// Each of the [steps](Self::steps) has its own counters. Needs the feature `sim`.
    pub fn counters(&self) -> Option<&Counters> {
        self.main_step()?.counters()
    }
}

impl<'a> StepReport<'a> {
    /// Returns the simulator's counters of this step, or `None` on a GPU. Needs the feature `sim`.
    pub fn counters(&self) -> Option<&'a Counters> {
        Some(&self.step_counters()?.counters)
    }

    /// Returns the predicted machine-code counters of this step, or `None` unless the device
    /// predicts them ([`Simulation::compiled`](crate::sim::Simulation::compiled)). Needs the
    /// feature `sim`.
    pub fn compiled_counters(&self) -> Option<&'a SassCounters> {
        self.step_counters()?.compiled.as_ref()
    }

    fn step_counters(&self) -> Option<&'a StepCounters> {
        self.launch.report.as_ref()?.as_deref()
    }
}
