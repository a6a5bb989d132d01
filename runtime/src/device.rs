//! Devices: a GPU behind the CUDA driver, or the simulator.

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

/// A place where kernels run: a handle, cheap to clone, that threads may share.
///
/// On a GPU all work of a device goes to one CUDA stream, in the order of the calls. What a launch
/// needs beyond its operands (machine code, scratch memory) belongs to the device and lives as
/// long as the last handle or buffer of it.
///
/// **CUDA graphs.** A launch whose kernel and extents have been launched before neither allocates
/// nor waits, so it can be captured from the device's stream (see [`Device::cudarc`]). A captured
/// graph refers to the device's code and scratch memory and to the operands: keep them alive as long
/// as it is replayed, and replay it on the device's stream, or while no launch on that stream is
/// under way, since a reduction's intermediate values and the tickets of its blocks share the scratch memory. While a
/// capture is under way, drop no buffer and no list of the device, and have operands that other streams wrote ready.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    name: String,
    /// Kernels by spec. Machine code is unloaded before the backend goes.
    programs: Programs,
    backend: DeviceBackend,
}

/// The back end of a device.
pub enum DeviceBackend {
    /// A GPU.
    Gpu(Gpu),
    /// The simulator.
    #[cfg(feature = "sim")]
    Simulator(Simulator),
}

/// A device with its back end: from here on everything is generic over which one that is.
pub struct On<'d, B> {
    /// The device.
    pub device: &'d Device,
    /// Its back end.
    pub backend: &'d B,
}

impl<B> Clone for On<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for On<'_, B> {}

/// Evaluates an expression on the back end of a device, whichever it is: what follows is generic.
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
    /// The first CUDA GPU, or the simulator where there is no NVIDIA driver or no GPU. Without the feature `sim` that is an
    /// error.
    ///
    /// # Errors
    /// Where there is a GPU but it cannot be used: [`Error::DriverMissing`] for a driver that is
    /// too old, [`Error::Driver`] for one that fails.
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

    /// The CUDA GPU of that number, on a stream of its own.
    ///
    /// # Errors
    /// [`Error::DriverMissing`], [`Error::NoGpu`], [`Error::BadOrdinal`], [`Error::Driver`].
    pub fn cuda(ordinal: usize) -> Result<Self> {
        driver::check_ordinal(ordinal)?;
        let context =
            CudaContext::new(ordinal).map_err(driver::failed("creating a CUDA context"))?;
        let stream = context.new_stream().map_err(driver::failed("creating a stream"))?;
        Self::from_cudarc(context, stream)
    }

    /// The GPU of a user's own `cudarc` context; all work goes to the given stream. Launches then
    /// take that context's `CudaSlice`s without a copy. Slices that were used on other streams
    /// are ordered as `cudarc` orders them, by their events.
    ///
    /// # Errors
    /// [`Error::Stream`] for the per-thread default stream and for a stream of another context;
    /// [`Error::Driver`].
    pub fn from_cudarc(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Self> {
        let gpu = Gpu::new(context, stream, Cache::from_env())?;
        Ok(Self::new(gpu.name().to_owned(), DeviceBackend::Gpu(gpu)))
    }

    pub(crate) fn new(name: String, backend: DeviceBackend) -> Self {
        Self(Arc::new(Inner { name, programs: Programs::default(), backend }))
    }

    /// The name that the driver gives the GPU, or `the simulator`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether kernels are simulated.
    pub fn is_simulator(&self) -> bool {
        self.gpu().is_none()
    }

    /// The GPU's architecture; none for the simulator.
    pub fn arch(&self) -> Option<Arch> {
        self.gpu().map(Gpu::arch)
    }

    /// The GPU's number of multiprocessors; none for the simulator.
    pub fn multiprocessors(&self) -> Option<u32> {
        self.gpu().map(Gpu::multiprocessors)
    }

    /// The `cudarc` context and the stream of a GPU; none for the simulator.
    pub fn cudarc(&self) -> Option<(&Arc<CudaContext>, &Arc<CudaStream>)> {
        self.gpu().map(|gpu| (gpu.context(), gpu.stream()))
    }

    /// Waits for all work launched so far.
    ///
    /// # Errors
    /// [`Error::Driver`] for what that work failed with.
    pub fn synchronize(&self) -> Result<()> {
        dispatch!(self, on => on.backend.synchronize())
    }

    /// What tables of products choose by. The simulator stands for an H200, as the page of
    /// `sgemm_table!` says.
    ///
    /// [`sgemm`](crate::sgemm) chooses among tables by [`arch`](Self::arch), which the simulator
    /// has not. There it takes those for unknown GPUs, whose rows run on every GPU: tests see to
    /// it. The `waves` of these rows ask this target.
    pub(crate) fn target(&self) -> Target {
        self.gpu().map_or(Target::H200, |gpu| Target {
            arch: gpu.arch().number(),
            sms: gpu.multiprocessors(),
        })
    }

    #[doc(hidden)]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    #[doc(hidden)]
    pub fn backend(&self) -> &DeviceBackend {
        &self.0.backend
    }

    #[doc(hidden)]
    pub fn programs(&self) -> &Programs {
        &self.0.programs
    }

    fn gpu(&self) -> Option<&Gpu> {
        match &self.0.backend {
            DeviceBackend::Gpu(gpu) => Some(gpu),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(_) => None,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Work on a user's own slices may still be under way: its code must not be unloaded yet.
        // A failure was, or will be, reported by whoever waits for that work.
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
