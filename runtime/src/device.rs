//! Devices: a GPU behind the CUDA driver, or the simulator.

use crate::archive::Archive;
use crate::backend::gpu::Gpu;
#[cfg(feature = "sim")]
use crate::backend::simulator::Simulator;
use crate::backend::{Backend, driver};
use crate::cache::Cache;
use crate::compile::Arch;
use crate::error::{Error, Result};
use crate::program::Programs;
use cudarc::driver::{CudaContext, CudaStream};
use gemm_dsl::tables::Target;
use std::fmt;
use std::sync::Arc;

/// A GPU or the simulator: a cheaply cloned handle that threads may share.
///
/// On a GPU all work of a device goes to one CUDA stream, in the order of the calls. The device
/// owns the scratch memory and the machine code of its launches. The memory exists until the last
/// handle and the last buffer of the device are dropped. Machine code may be evicted before:
/// [`kept_kernels`](Self::kept_kernels).
///
/// ```
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum);
/// let device = Device::simulator();
/// assert_eq!(SUM.run(&device, &[1.0, 2.0, 3.0])?, 6.0);
/// assert!(device.is_simulator() && device.arch().is_none());
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// # CUDA graphs
///
/// A launch neither allocates nor waits if its kernel has been launched with the same extents
/// before. You can then capture it from the device's stream, which [`Device::cudarc`] returns.
///
/// * A captured graph refers to the operands, and to the code and the scratch memory of the device.
///   Keep the operands and the device alive as long as the graph is replayed.
/// * Replay the graph on the device's stream, or while no launch is under way on this stream.
///   Launches of the graph and of the device use the same scratch memory.
/// * Before the capture, complete the work of other streams on the operands. During the capture,
///   drop no buffer and no list of the device.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    name: String,
    /// Kernels by spec. Dropped before the back end, so that machine code is unloaded first.
    programs: Programs,
    backend: DeviceBackend,
}

/// Back end of a device.
#[allow(clippy::large_enum_variant, reason = "a device has one, behind an `Arc`")]
pub enum DeviceBackend {
    /// GPU behind the CUDA driver.
    Gpu(Gpu),
    /// Simulator, which runs in this process.
    #[cfg(feature = "sim")]
    Simulator(Simulator),
}

/// Device together with its back end, for code that is generic over the back end.
pub struct On<'d, B> {
    /// Handle of the device; a buffer keeps a clone of it.
    pub device: &'d Device,
    /// Back end of the device.
    pub backend: &'d B,
}

impl<B> Clone for On<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for On<'_, B> {}

/// Evaluates an expression generically over the back end of a device.
macro_rules! dispatch {
    ($device:expr, $on:ident => $body:expr) => {{
        let device: &$crate::device::Device = $device;
        match device.backend() {
            $crate::device::DeviceBackend::Gpu(backend) => {
                let $on = $crate::device::On { device, backend };
                $body
            }
            #[cfg(feature = "sim")]
            $crate::device::DeviceBackend::Simulator(backend) => {
                let $on = $crate::device::On { device, backend };
                $body
            }
        }
    }};
}
pub(crate) use dispatch;

impl Device {
    /// Opens the first CUDA GPU, or the simulator if there is no NVIDIA driver or no GPU.
    ///
    /// # Errors
    /// * [`Error::DriverMissing`] if the driver is too old.
    /// * [`Error::Driver`] if the driver fails.
    /// * Without the feature `sim`, also [`Error::DriverMissing`] and [`Error::NoGpu`] if there is
    ///   no driver or no GPU.
    pub fn auto() -> Result<Self> {
        match Self::cuda(0) {
            Err(error) if !driver::is_installed() || matches!(error, Error::NoGpu) => {
                Self::instead_of_gpu(error)
            }
            result => result,
        }
    }

    #[cfg(not(feature = "sim"))]
    fn instead_of_gpu(error: Error) -> Result<Self> {
        Err(error)
    }

    /// Opens the CUDA GPU with this ordinal, from 0 on, with a new stream.
    ///
    /// # Errors
    /// * [`Error::DriverMissing`] if there is no usable driver.
    /// * [`Error::NoGpu`] if the driver reports no GPU.
    /// * [`Error::BadOrdinal`] if there are fewer GPUs.
    /// * [`Error::Driver`] if the driver fails.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        driver::check_ordinal(ordinal)?;
        let context =
            CudaContext::new(ordinal).map_err(driver::failed("creating a CUDA context"))?;
        let stream = context.new_stream().map_err(driver::failed("creating a stream"))?;
        Self::from_cudarc(context, stream)
    }

    /// Opens the GPU of an existing `cudarc` context. All work of the device goes to `stream`.
    ///
    /// Launches take `CudaSlice`s of this context without a copy, also those of another
    /// `CudaContext` for the same context of the driver. `cudarc`'s events order the launches with
    /// the work of other streams on these slices.
    ///
    /// The per-thread default stream is a different stream in each thread. If it is `stream`, as in
    /// candle's default device, the device creates a stream of its own, which
    /// [`Device::cudarc`] returns.
    ///
    /// # Errors
    /// * [`Error::Stream`] for a stream of another context, and for the per-thread default stream
    ///   of a context that does not track events.
    /// * [`Error::Driver`] if the driver fails.
    pub fn from_cudarc(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Self> {
        let gpu = Gpu::new(context, stream, Cache::from_env())?;
        Ok(Self::new(gpu.name().to_owned(), DeviceBackend::Gpu(gpu)))
    }

    pub(crate) fn new(name: String, backend: DeviceBackend) -> Self {
        let is_simulated = !matches!(backend, DeviceBackend::Gpu(_));
        Self(Arc::new(Inner { name, programs: Programs::new(is_simulated), backend }))
    }

    /// Creates a device with a new stream of the same GPU, which shares the buffers of this one.
    /// Work of the two streams may overlap, for example a transfer and a launch.
    ///
    /// Buffers, matrices and their views of one device may be operands of calls of the other. A
    /// call on a buffer waits for the conflicting calls on this buffer that were made before on
    /// other streams: a read for writes, and a write for reads and writes. The host does not wait.
    /// A buffer may be dropped while any stream uses it. Calls that share no buffer are not
    /// ordered; [`Device::record`] and [`Device::wait_for`] order them. Methods of a buffer, such
    /// as [`Buffer::write`](crate::Buffer::write), use the stream of its own device.
    ///
    /// The new device has its own kernels and its own scratch memory, and begins after all work of
    /// this device so far. From this call on, each use of a buffer records an event, which takes
    /// about a microsecond of the host's time. Build a [`MatrixList`](crate::MatrixList) from
    /// matrices of one device. Before a stream is captured into a graph, complete the work of other
    /// streams on the operands.
    ///
    /// On the simulator, every call is executed at once.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator();
    /// let transfers = device.on_new_stream()?;
    /// let (mut current, mut next) = (device.alloc(2)?, device.alloc(2)?);
    /// let (mut sum, mut totals) = (device.alloc(1)?, Vec::new());
    /// transfers.write(&mut current, &[1.0, 2.0])?;
    /// for round in 0..3 {
    ///     SUM.launch(&device, &current, &mut sum)?; // waits for the transfer
    ///     let mut elements = transfers.pinned(2)?;
    ///     elements.fill(round as f32);
    ///     let written = transfers.write_async(&mut next, elements)?; // overlaps the launch
    ///     totals.extend(device.download(&sum)?);
    ///     std::mem::swap(&mut current, &mut next);
    ///     written.wait()?;
    /// }
    /// assert_eq!(totals, [3.0, 0.0, 2.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn on_new_stream(&self) -> Result<Self> {
        let backend = match self.backend() {
            DeviceBackend::Gpu(gpu) => DeviceBackend::Gpu(gpu.on_new_stream()?),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(simulator) => {
                DeviceBackend::Simulator(simulator.on_new_stream())
            }
        };
        Ok(Self::new(self.name().to_owned(), backend))
    }

    /// Makes the device, and the devices that share its buffers, take machine code from an archive.
    ///
    /// The first launch of a kernel takes its machine code from the first archive that has it, else
    /// from the disk cache, else from NVRTC. Kernels that are loaded already are not loaded again.
    /// On the simulator the archive is only checked.
    ///
    /// The page [archives](crate::guide::archives) shows how to build an archive.
    ///
    /// # Errors
    /// [`Error::Archive`] if the bytes are not an archive of this release, or are damaged.
    pub fn add_archive(&self, archive: Archive) -> Result<()> {
        let archive = archive.open()?;
        if let Some(gpu) = self.gpu() {
            gpu.add_archive(archive);
        }
        Ok(())
    }

    /// Returns the GPU's name as the driver reports it, or `the simulator`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns true if kernels run in the simulator.
    pub fn is_simulator(&self) -> bool {
        self.gpu().is_none()
    }

    /// Returns the GPU's architecture, or `None` for the simulator.
    pub fn arch(&self) -> Option<Arch> {
        self.gpu().map(Gpu::arch)
    }

    /// Returns the number of SMs of the GPU, or `None` for the simulator.
    pub fn multiprocessors(&self) -> Option<u32> {
        self.gpu().map(Gpu::multiprocessors)
    }

    /// Returns the `cudarc` context and the stream of the GPU, or `None` for the simulator.
    pub fn cudarc(&self) -> Option<(&Arc<CudaContext>, &Arc<CudaStream>)> {
        self.gpu().map(|gpu| (gpu.context(), gpu.stream()))
    }

    /// Returns the number of specs whose kernels the device keeps.
    ///
    /// A device keeps the generated source and the machine code of each kernel, 0.1 to 0.4 MB of
    /// host memory for a spec. If there are more specs than [`keep_at_most`](Self::keep_at_most)
    /// allows, it evicts the least recently used. The next launch of an evicted spec generates and
    /// loads its kernels again, from the disk cache if there is one.
    ///
    /// Kernels stay as long as a [`LaunchReport`](crate::LaunchReport), a macro call or a captured
    /// CUDA graph refers to them.
    pub fn kept_kernels(&self) -> usize {
        self.programs().made()
    }

    /// Sets the number of specs whose kernels the device keeps, 512 by default, and evicts the
    /// least recently used beyond it.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel};
    ///
    /// let device = Device::simulator();
    /// device.keep_at_most(2);
    /// for line in ["op: sum", "op: max", "op: min", "op: prod"] {
    ///     let kernel: ReduceKernel = ReduceKernel::new(line.parse()?)?;
    ///     kernel.run(&device, &[1.0, 2.0])?;
    /// }
    /// assert_eq!(device.kept_kernels(), 2);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    pub fn keep_at_most(&self, specs: usize) {
        self.programs().keep_at_most(specs);
    }

    /// Waits for all work launched so far.
    ///
    /// # Errors
    /// [`Error::Driver`] if some of this work failed.
    pub fn synchronize(&self) -> Result<()> {
        dispatch!(self, on => on.backend.synchronize())
    }

    /// Architecture and number of SMs, by which GEMM tables choose a rule. The simulator reports
    /// the values of an H200.
    pub(crate) fn target(&self) -> Target {
        self.gpu().map_or(Target::H200, |gpu| Target {
            arch: gpu.arch().number(),
            sms: gpu.multiprocessors(),
        })
    }

    /// Number of allocations of device memory so far, for tests. Simulated scratch memory does not
    /// count.
    #[doc(hidden)]
    pub fn allocations(&self) -> u64 {
        dispatch!(self, on => on.backend.allocations())
    }

    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns true if the devices share buffers: they are the same, or one was created by
    /// [`on_new_stream`](Self::on_new_stream) from the other or from a device that shares its
    /// buffers.
    pub(crate) fn shares_buffers(&self, other: &Self) -> bool {
        match (self.backend(), other.backend()) {
            (DeviceBackend::Gpu(one), DeviceBackend::Gpu(two)) => {
                Arc::ptr_eq(one.group(), two.group())
            }
            #[cfg(feature = "sim")]
            (DeviceBackend::Simulator(one), DeviceBackend::Simulator(two)) => {
                Arc::ptr_eq(one.group(), two.group())
            }
            #[cfg(feature = "sim")]
            _ => false,
        }
    }

    #[doc(hidden)]
    pub fn backend(&self) -> &DeviceBackend {
        &self.0.backend
    }

    #[doc(hidden)]
    pub fn programs(&self) -> &Programs {
        &self.0.programs
    }

    pub(crate) fn gpu(&self) -> Option<&Gpu> {
        match &self.0.backend {
            DeviceBackend::Gpu(gpu) => Some(gpu),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(_) => None,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.programs.release();
        // Kernels may still be working on the user's own slices, so the code must not be unloaded
        // yet. If a kernel fails, the next call that waits for its work reports the failure.
        match &self.backend {
            DeviceBackend::Gpu(gpu) => _ = gpu.synchronize(),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(_) => {}
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.0.name).finish()
    }
}
