//! Devices that are simulators, and their counters in the report of a launch.

use crate::backend::StepCounters;
use crate::backend::simulator::watch::Watch;
use crate::backend::simulator::{Simulation, Simulator};
use crate::device::{Device, DeviceBackend};
use crate::error::{Error, Result};
use crate::report::{LaunchReport, StepReport};
use gemm_sim::{Counters, SassCounters};
use std::sync::Arc;

/// Simulators, which need the feature `sim`.
impl Device {
    /// The simulator. A device of its own: its buffers belong to this handle and its clones. It needs the feature `sim`, as
    /// do all simulators.
    pub fn simulator() -> Self {
        Self::simulator_of(Simulation::default())
    }

    /// The simulator, where the warps of one launch may execute at most so many instructions together
    /// (one stands for a statement, a test or a branch; [`Device::simulator`] allows 2^36, some hours of
    /// one core). A launch that would need more fails with [`Error::Simulator`]; what it has written
    /// stays written.
    pub fn simulator_within(instructions: u64) -> Self {
        Self::simulator_of(Simulation { instructions, ..Simulation::default() })
    }

    /// The simulator, with somebody who looks on: what each statement is charged with, and what happens in some blocks, event
    /// by event. Pages that explain a kernel are drawn from that.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    /// use gemm_runtime::watch::{KernelRun, VerifiedKernel, Watch};
    /// use std::sync::{Arc, Mutex};
    ///
    /// /// Keeps how much happened in the first block of each launch.
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

    /// The simulator, which also counts what the machine code of each kernel does, as far as that follows from the text:
    /// [`StepReport::compiled_counters`](crate::StepReport::compiled_counters). It is there to count: it looks for no races, and blocks
    /// that speak to one another run in one order alone.
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

    /// The simulator, with whatever of this is asked for: one that looks for races, counts what the machine code does and has
    /// somebody look on runs each kernel once for all three.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, Simulation, reduce_kernel};
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
        Self::new("the simulator".to_owned(), DeviceBackend::Simulator(Simulator(simulation)))
    }

    /// The device where there is no GPU.
    pub(crate) fn instead_of_gpu(_: Error) -> Result<Self> {
        Ok(Self::simulator())
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
