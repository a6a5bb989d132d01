//! Reports of launches and of their single kernel launches.

use crate::backend::StepCounters;
use crate::compile::Resources;
use crate::compile::unit::CodeOrigin;
use crate::program::{CachedProgram, KernelLoad};
use gemm_dsl::ir::Variant;
use gemm_dsl::ir::contract::Contract;
use gemm_dsl::ir::program::{ExecutedLaunch, Execution};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Report of a launch: the access variant that ran, its kernel launches, compile times and
/// resources.
///
/// ```
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum);
/// let device = Device::simulator();
/// let (x, mut sum) = (device.upload(&[1.0; 100])?, device.alloc(1)?);
/// let report = SUM.launch(&device, &x, &mut sum)?;
/// assert_eq!(report.steps().len(), report.passes());
/// assert!(report.main_step().is_some_and(|step| step.grid()[0] > 0));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct LaunchReport {
    pub(crate) program: Arc<CachedProgram>,
    /// Kernel launches of the program, in order.
    pub(crate) execution: Execution<Option<Box<StepCounters>>>,
    pub(crate) load_times: LoadTimes,
}

/// Time that a launch spent on compiling and loading machine code.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LoadTimes {
    compiled: Option<Duration>,
    from_disk: Option<Duration>,
    from_archive: Option<Duration>,
}

impl LoadTimes {
    /// Adds the load time of a kernel that was not loaded before.
    pub(crate) fn add(&mut self, made: Option<KernelLoad>) {
        let Some(KernelLoad { took, origin }) = made else { return };
        let sum = match origin {
            CodeOrigin::Compiler => &mut self.compiled,
            CodeOrigin::DiskCache => &mut self.from_disk,
            CodeOrigin::Archive { .. } => &mut self.from_archive,
        };
        *sum = Some(sum.unwrap_or_default() + took);
    }
}

/// One kernel launch within a [`LaunchReport`].
#[derive(Clone, Copy)]
pub struct StepReport<'a> {
    program: &'a CachedProgram,
    pub(crate) launch: &'a ExecutedLaunch<Option<Box<StepCounters>>>,
}

impl LaunchReport {
    /// Returns the access variant of the kernel that ran. For a reduction, this is the first pass;
    /// for a GEMM with splits, the kernel that multiplies the splits.
    pub fn variant(&self) -> Variant {
        self.program.contract(self.execution.main).variant
    }

    /// Returns the number of kernel launches, which is 0 if there was nothing to compute.
    pub fn passes(&self) -> usize {
        self.execution.launches.len()
    }

    /// Returns the kernel launches, in order.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = StepReport<'_>> {
        let launches = self.execution.launches.iter();
        launches.map(|launch| StepReport { program: &self.program, launch })
    }

    /// Returns the compile time of this launch, from the CUDA source to loaded machine code, or
    /// `None` if this launch compiled nothing.
    ///
    /// Only the first launch of a kernel on a GPU compiles it. The launch compiles nothing if
    /// [`warm`](crate::warm) or another thread has compiled the kernel, or if an archive or the
    /// disk cache has it. On the simulator nothing is compiled.
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

    /// Returns the time to load kernels from the disk cache, or `None` if this launch loaded none
    /// from the disk cache.
    pub fn loaded_from_disk(&self) -> Option<Duration> {
        self.load_times.from_disk
    }

    /// Returns the time to load kernels from an [`Archive`](crate::Archive), or `None` if this
    /// launch loaded none from an archive.
    pub fn loaded_from_archive(&self) -> Option<Duration> {
        self.load_times.from_archive
    }

    /// Returns the resources of the variant that ran, or `None` in the simulator. The driver
    /// reports the registers and the stack of a thread, and the static shared memory of a block.
    ///
    /// Spilled registers are part of the stack. The driver does not report spills separately, so
    /// their fields are 0.
    pub fn resources(&self) -> Option<Resources> {
        self.program.kernel(self.execution.main).resources()
    }

    /// Returns the launch of the program's main kernel, in any of its variants. If this launch did
    /// not run the main kernel, returns its first kernel launch, or `None` if there was nothing to
    /// compute.
    pub fn main_step(&self) -> Option<StepReport<'_>> {
        self.steps().find(StepReport::is_main)
    }
}

impl<'a> StepReport<'a> {
    /// Returns the name of the kernel.
    pub fn kernel(&self) -> &'a str {
        &self.contract().kernel
    }

    /// Returns the access variant of the kernel.
    pub fn variant(&self) -> Variant {
        self.contract().variant
    }

    /// Returns the number of blocks along x, y and z.
    pub fn grid(&self) -> [u32; 3] {
        self.launch.grid
    }

    /// Returns true if this is the [main step](LaunchReport::main_step).
    pub fn is_main(&self) -> bool {
        self.launch.is_main
    }

    /// Returns the resources of this kernel, in the form of [`LaunchReport::resources`].
    pub fn resources(&self) -> Option<Resources> {
        self.program.kernel(self.launch.kernel).resources()
    }

    fn contract(&self) -> &'a Contract {
        self.program.contract(self.launch.kernel)
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
