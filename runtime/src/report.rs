//! What a launch tells of itself.

use crate::backend::StepCounters;
use crate::compile::Resources;
use crate::program::{CachedKernel, CachedProgram, KernelLoad};
use gemm_dsl::ir::Variant;
use gemm_dsl::ir::program::{ExecutedLaunch, Execution};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a launch did.
#[derive(Clone)]
#[non_exhaustive]
pub struct LaunchReport {
    pub(crate) program: Arc<CachedProgram>,
    /// The launches that were made.
    pub(crate) execution: Execution<Option<Box<StepCounters>>>,
    pub(crate) load_times: LoadTimes,
}

/// What a launch took to have machine code that the device had not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadTimes {
    compiled: Option<Duration>,
    found: Option<Duration>,
}

impl LoadTimes {
    /// Adds what a kernel took, if it was not there.
    pub(crate) fn add(&mut self, made: Option<KernelLoad>) {
        let Some(KernelLoad { took, is_compiled }) = made else { return };
        let sum = if is_compiled { &mut self.compiled } else { &mut self.found };
        *sum = Some(sum.unwrap_or_default() + took);
    }
}

/// One kernel launch of a [`LaunchReport`] program.
#[derive(Clone, Copy)]
pub struct StepReport<'a> {
    program: &'a CachedProgram,
    pub(crate) launch: &'a ExecutedLaunch<Option<Box<StepCounters>>>,
}

impl LaunchReport {
    /// The access variant that ran: of a reduction, the one of the first pass; of a product with splits, the one that
    /// multiplies them.
    pub fn variant(&self) -> Variant {
        self.program.kernel(self.execution.main).kernel.variant
    }

    /// The number of kernel launches: more than one where a reduction took several passes, 0 where
    /// there was nothing to compute.
    pub fn passes(&self) -> usize {
        self.execution.launches.len()
    }

    /// The kernel launches, in order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepReport<'_>> {
        let launches = self.execution.launches.iter();
        launches.map(|launch| StepReport { program: &self.program, launch })
    }

    /// How long it compiled: the time from the text of its kernels to machine code that is loaded, as a first launch
    /// takes it. None where it compiled nothing, which is so of every later launch, behind a
    /// [`warm`](crate::warm), for what another thread compiled meanwhile, and in the simulator.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator();
    /// let (x, mut sum) = (device.upload(&[1.0; 100])?, device.alloc(1)?);
    /// SUM.warm(&device)?;
    /// assert_eq!(SUM.launch(&device, &x, &mut sum)?.compiled(), None);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn compiled(&self) -> Option<Duration> {
        self.load_times.compiled
    }

    /// How long it took to load kernels that were found in the disk cache; none where it has loaded none from there.
    pub fn loaded_from_disk(&self) -> Option<Duration> {
        self.load_times.found
    }

    /// Registers of a thread, its stack and the static shared memory of a block, as the driver
    /// reports them of the machine code of the variant that ran. Spilled registers lie on the
    /// stack; the driver does not tell them apart, so their fields are 0. None in the simulator.
    pub fn resources(&self) -> Option<Resources> {
        self.program.kernel(self.execution.main).resources()
    }

    /// The launch of the kernel whose text is the program's, or of the one that stood in for it; the first one where another way
    /// was gone. None where there was nothing for it to do.
    pub fn main_step(&self) -> Option<StepReport<'_>> {
        self.steps().find(StepReport::is_main)
    }
}

impl<'a> StepReport<'a> {
    /// The name of the kernel.
    pub fn kernel(&self) -> &'a str {
        &self.cached_kernel().kernel.name
    }

    /// Which of the kernels that compute the same it is.
    pub fn variant(&self) -> Variant {
        self.cached_kernel().kernel.variant
    }

    /// The blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.launch.grid
    }

    /// Whether it is the [main one](LaunchReport::main_step).
    pub fn is_main(&self) -> bool {
        self.launch.is_main
    }

    /// As [`LaunchReport::resources`], of this kernel.
    pub fn resources(&self) -> Option<Resources> {
        self.cached_kernel().resources()
    }

    fn cached_kernel(&self) -> &'a CachedKernel {
        self.program.kernel(self.launch.kernel)
    }
}

impl fmt::Debug for LaunchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchReport")
            .field("variant", &self.variant())
            .field("steps", &self.steps().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for StepReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepReport")
            .field("kernel", &self.kernel())
            .field("variant", &self.variant())
            .field("grid", &self.grid())
            .finish_non_exhaustive()
    }
}
