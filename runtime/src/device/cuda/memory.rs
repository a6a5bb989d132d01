//! GPU memory: allocations, copies, and the scratch memory of launches.

use super::Gpu;
use crate::device::driver::failed;
use crate::error::{Error, Result};
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, DevicePtr, DriverError, result};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{MutexGuard, PoisonError};

/// An allocation in the order of the device's stream.
pub(crate) struct Allocation {
    slice: CudaSlice<f32>,
    address: u64,
}

impl Allocation {
    /// The address of its first element, a multiple of 256.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // `cudarc` frees in the current context, and this may be a thread that has none. Where
        // binding fails, so will the free: the memory goes with the context.
        _ = self.slice.context().bind_to_thread();
    }
}

/// Scratch memory by buffer number and binary logarithm of the length. Entries are never replaced:
/// a captured graph may refer to them.
pub(super) type ScratchPool = HashMap<(usize, u32), Allocation>;

/// The scratch memory, held while the launches of one program are put on the stream. Those of
/// another thread come after them, so that both may use the same memory.
pub(crate) struct Workspace<'d> {
    gpu: &'d Gpu,
    pool: MutexGuard<'d, ScratchPool>,
}

impl Workspace<'_> {
    /// The address of scratch buffer `number`, with room for at least `len` elements.
    pub(crate) fn scratch(&mut self, number: usize, len: u64) -> Result<u64> {
        let class =
            len.max(1).checked_next_power_of_two().ok_or_else(|| self.gpu.too_large(len))?;
        let allocation = match self.pool.entry((number, class.ilog2())) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(self.gpu.allocate(class)?),
        };
        Ok(allocation.address)
    }
}

#[allow(unsafe_code, reason = "the driver copies between addresses")]
impl Gpu {
    /// Memory for `len` elements, uninitialised.
    pub(crate) fn allocate(&self, len: u64) -> Result<Allocation> {
        self.refuse_capture("allocating memory")?;
        // The driver allocates no empty arrays; an empty buffer still has an address.
        let elements = usize::try_from(len.max(1)).ok();
        let elements = elements.filter(|n| *n <= isize::MAX as usize / size_of::<f32>());
        let elements = elements.ok_or_else(|| self.too_large(len))?;
        // SAFETY: `f32` has no invalid values, and the memory is written, by a copy, a memset or
        // the first launch of a program, before it is read.
        let slice = unsafe { self.stream.alloc::<f32>(elements) };
        let slice = slice.map_err(|error| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => self.too_large(len),
            error => failed(format!("allocating {elements} elements"))(error),
        })?;
        // Nothing has used the slice yet, so its events order nothing.
        let (address, _) = slice.device_ptr(&self.stream);
        Ok(Allocation { slice, address })
    }

    /// Copies elements from the host and waits for the copy.
    pub(crate) fn write(&self, to: u64, elements: &[f32]) -> Result<()> {
        if elements.is_empty() {
            return Ok(());
        }
        self.bind()?;
        // SAFETY: the caller's allocation at `to` has room for the elements, and the host's stay
        // borrowed until the stream has been waited for.
        let copied = unsafe { result::memcpy_htod_async(to, elements, self.stream.cu_stream()) };
        let waited = self.synchronize();
        copied.map_err(failed(format!("copying {} elements to the GPU", elements.len())))?;
        waited
    }

    /// Copies elements to the host, after all work on the stream.
    pub(crate) fn read(&self, from: u64, len: u64) -> Result<Vec<f32>> {
        let len = usize::try_from(len).map_err(|_| self.too_large(len))?;
        let mut elements = vec![0.0; len];
        if len > 0 {
            self.bind()?;
            let stream = self.stream.cu_stream();
            // SAFETY: the caller's allocation has `len` elements at `from`, and the host's stay
            // borrowed until the stream has been waited for.
            let copied = unsafe { result::memcpy_dtoh_async(&mut elements, from, stream) };
            let waited = self.synchronize();
            copied.map_err(failed(format!("copying {len} elements from the GPU")))?;
            waited?;
        }
        Ok(elements)
    }

    /// Sets elements to zero, in the order of the stream.
    pub(crate) fn zero(&self, at: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(len).ok().and_then(|n| n.checked_mul(size_of::<f32>()));
        let bytes = bytes.ok_or_else(|| self.too_large(len))?;
        self.bind()?;
        // SAFETY: the caller's allocation has `len` elements at `at`.
        unsafe { result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()) }
            .map_err(failed("setting memory to zero"))
    }

    pub(crate) fn workspace(&self) -> Workspace<'_> {
        // A thread that panicked left no entry half made.
        let pool = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        Workspace { gpu: self, pool }
    }

    fn bind(&self) -> Result<()> {
        self.context.bind_to_thread().map_err(failed("making the context current"))
    }

    fn too_large(&self, len: u64) -> Error {
        let bytes = len.saturating_mul(size_of::<f32>() as u64);
        Error::OutOfMemory { bytes, device: self.name.clone() }
    }
}
