//! Devices: a GPU behind the CUDA driver, or the simulator.

pub(crate) mod cuda;
pub(crate) mod driver;
pub(crate) mod simulator;

use crate::buffer::Buffer;
use crate::cache::Cache;
use crate::compile::Arch;
use crate::error::{Error, Result};
use crate::operand::{self, Input, Place};
use crate::program::Programs;
use cuda::{Allocation, Gpu};
use cudarc::driver::{CudaContext, CudaStream};
use gemm_dsl::sim;
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
/// under way, since a reduction's intermediate values share the scratch memory. While a capture is
/// under way, drop no buffer of the device, and have operands that other streams wrote ready.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    name: String,
    /// Kernels by spec. Machine code is unloaded before the backend goes.
    programs: Programs,
    backend: Backend,
}

pub(crate) enum Backend {
    Gpu(Gpu),
    Simulator,
}

/// The memory of a buffer.
pub(crate) enum Memory {
    Gpu(Allocation),
    Simulated(sim::Buffer),
}

impl Memory {
    /// Where some consecutive elements, inside the buffer, lie.
    pub(crate) fn place(&self, start: usize, len: usize) -> Result<Place> {
        match self {
            Memory::Gpu(allocation) => {
                Ok(Place::Gpu(allocation.address() + (start * size_of::<f32>()) as u64))
            }
            Memory::Simulated(buffer) => {
                let end = start.saturating_add(len);
                let buffer = buffer.view(start, len).ok_or(Error::OutOfRange {
                    start,
                    end,
                    len: buffer.len(),
                })?;
                Ok(Place::Simulated { buffer, offset: start as u64 })
            }
        }
    }
}

impl Device {
    /// The first CUDA GPU, or the simulator where there is no NVIDIA driver or no GPU.
    ///
    /// # Errors
    /// Where there is a GPU but it cannot be used: [`Error::DriverMissing`] for a driver that is
    /// too old, [`Error::Driver`] for one that fails.
    pub fn auto() -> Result<Self> {
        if !driver::is_installed() {
            return Ok(Self::simulator());
        }
        match Self::cuda(0) {
            Err(Error::NoGpu) => Ok(Self::simulator()),
            result => result,
        }
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
    /// take that context's `CudaSlice<f32>` without a copy. Slices that were used on other streams
    /// are ordered as `cudarc` orders them, by their events.
    ///
    /// # Errors
    /// [`Error::Stream`] for the per-thread default stream and for a stream of another context;
    /// [`Error::Driver`].
    pub fn from_cudarc(context: Arc<CudaContext>, stream: Arc<CudaStream>) -> Result<Self> {
        let gpu = Gpu::new(context, stream, Cache::from_env())?;
        Ok(Self(Arc::new(Inner {
            name: gpu.name().to_owned(),
            programs: Programs::default(),
            backend: Backend::Gpu(gpu),
        })))
    }

    /// The simulator. A device of its own: its buffers belong to this handle and its clones.
    pub fn simulator() -> Self {
        Self(Arc::new(Inner {
            name: "the simulator".to_owned(),
            programs: Programs::default(),
            backend: Backend::Simulator,
        }))
    }

    /// The name that the driver gives the GPU, or `the simulator`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether kernels are simulated.
    pub fn is_simulator(&self) -> bool {
        matches!(self.0.backend, Backend::Simulator)
    }

    /// The GPU's architecture; none for the simulator.
    pub fn arch(&self) -> Option<Arch> {
        self.gpu().map(Gpu::arch)
    }

    /// The GPU's number of multiprocessors; none for the simulator.
    pub fn multiprocessors(&self) -> Option<u32> {
        self.gpu().map(Gpu::multiprocessors)
    }

    /// The most shared memory a block may have, in bytes; none for the simulator.
    pub fn shared_bytes_per_block(&self) -> Option<u64> {
        self.gpu().map(Gpu::shared_limit)
    }

    /// The `cudarc` context and the stream of a GPU; none for the simulator.
    pub fn cudarc(&self) -> Option<(&Arc<CudaContext>, &Arc<CudaStream>)> {
        self.gpu().map(|gpu| (gpu.context(), gpu.stream()))
    }

    /// Copies elements to the device. When the call returns, the host's may be changed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Capturing`], [`Error::Driver`].
    pub fn upload(&self, elements: &[f32]) -> Result<Buffer> {
        let memory = match &self.0.backend {
            Backend::Gpu(gpu) => {
                let allocation = gpu.allocate(elements.len() as u64)?;
                gpu.write(allocation.address(), elements)?;
                Memory::Gpu(allocation)
            }
            Backend::Simulator => Memory::Simulated(simulator::upload(elements)?),
        };
        Ok(Buffer::new(self.clone(), memory, elements.len()))
    }

    /// A vector of `len` zeros.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        let memory = match &self.0.backend {
            Backend::Gpu(gpu) => {
                let allocation = gpu.allocate(len as u64)?;
                gpu.zero(allocation.address(), len as u64)?;
                Memory::Gpu(allocation)
            }
            Backend::Simulator => Memory::Simulated(simulator::zeros(len)?),
        };
        Ok(Buffer::new(self.clone(), memory, len))
    }

    /// Copies elements to the host, after all work launched before. A matrix gives its elements with
    /// the padding; see [`Device::download_matrix`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`], and [`Error::Driver`] for what earlier launches failed with.
    pub fn download<A: Input + ?Sized>(&self, array: &A) -> Result<Vec<f32>> {
        let array = operand::read(array, self, "array")?;
        match (&self.0.backend, &array.place) {
            (Backend::Gpu(gpu), Place::Gpu(address)) => gpu.read(*address, array.len),
            (_, Place::Simulated { buffer, .. }) => Ok(buffer.to_vec()),
            (Backend::Simulator, Place::Gpu(_)) => {
                Err(Error::Internal("an address in the simulator".to_owned()))
            }
        }
    }

    /// Waits for all work launched so far.
    ///
    /// # Errors
    /// [`Error::Driver`] for what that work failed with.
    pub fn synchronize(&self) -> Result<()> {
        self.gpu().map_or(Ok(()), Gpu::synchronize)
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    pub(crate) fn programs(&self) -> &Programs {
        &self.0.programs
    }

    fn gpu(&self) -> Option<&Gpu> {
        match &self.0.backend {
            Backend::Gpu(gpu) => Some(gpu),
            Backend::Simulator => None,
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Work on a user's own slices may still be under way: its code must not be unloaded yet.
        // A failure was, or will be, reported by whoever waits for that work.
        if let Backend::Gpu(gpu) = &self.backend {
            _ = gpu.synchronize();
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.0.name).finish()
    }
}
