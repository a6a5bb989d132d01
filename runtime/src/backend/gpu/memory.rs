//! GPU memory: allocations and copies.

use super::Gpu;
use super::use_log::UseLog;
use crate::backend::driver::failed;
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaSlice, DevicePtr, DriverError, result};
use gemm_dsl::ir::Elem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Address of elements in GPU memory.
#[derive(Clone, Debug)]
pub struct GpuAddress {
    pub(crate) at: u64,
    pub(crate) elem: Elem,
}

impl Address for GpuAddress {
    fn elem(&self) -> Elem {
        self.elem
    }

    fn bytes(&self) -> u64 {
        self.at
    }

    /// An address does not know the size of its allocation, so the owner of the allocation must
    /// check the number of elements.
    fn part(&self, start: u64, _: u64) -> Option<Self> {
        let at = self.at.checked_add(bytes(self.elem, start))?;
        Some(Self { at, ..*self })
    }

    fn reinterpreted(&self, elem: Elem) -> Option<Self> {
        (elem.size() == self.elem.size()).then(|| Self { elem, ..self.clone() })
    }

    fn range(&self, len: u64) -> Range<u64> {
        self.at..self.at.saturating_add(bytes(self.elem, len))
    }
}

/// Size of `len` elements, in bytes.
pub(super) fn bytes(elem: Elem, len: u64) -> u64 {
    len.saturating_mul(elem.size().into())
}

/// Allocation that is freed in the order of the device's stream, or memory of another owner.
pub struct Allocation {
    /// `None` for memory of another owner.
    slice: Option<CudaSlice<u8>>,
    address: GpuAddress,
    /// Uses by several streams.
    uses: Arc<UseLog>,
}

impl Allocation {
    /// Address of the first element, a multiple of 256.
    pub(super) fn address(&self) -> GpuAddress {
        self.address.clone()
    }

    /// Uses by several streams.
    pub(super) fn uses(&self) -> &Arc<UseLog> {
        &self.uses
    }

    /// Address of the first element, as an argument of a kernel.
    pub(super) fn at(&self) -> &u64 {
        &self.address.at
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // `cudarc` frees memory in the current context, but this thread may have none. If the
        // context cannot be bound, the free fails too, and the memory is freed with the context.
        if let Some(slice) = &self.slice {
            _ = slice.context().bind_to_thread();
            slice.context().record_err(self.uses.wait_for_all(slice.stream()));
        }
    }
}

#[allow(unsafe_code, reason = "the driver allocates and clears memory")]
impl Gpu {
    /// Allocates uninitialised memory for `len` elements.
    pub(super) fn allocate(&self, elem: Elem, len: u64) -> Result<Allocation> {
        self.refuse_capture("allocating memory")?;
        // An empty buffer needs an address, but the driver cannot allocate an empty array.
        let bytes = usize::try_from(bytes(elem, len.max(1))).ok();
        let bytes = bytes.filter(|n| *n <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| self.too_large(elem, len))?;
        // SAFETY: `u8` has no invalid values, and a copy, a memset or the first launch of a program
        // writes the memory before it is read.
        let slice = unsafe { self.stream.alloc::<u8>(bytes) };
        let slice = slice.map_err(|error| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => self.too_large(elem, len),
            error => failed(format!("allocating {bytes} bytes"))(error),
        })?;
        self.allocations.fetch_add(1, Ordering::Relaxed);
        // No work has used the slice yet, so there is nothing to wait for.
        let (at, _) = slice.device_ptr(&self.stream);
        let uses = Arc::default();
        Ok(Allocation { slice: Some(slice), address: GpuAddress { at, elem }, uses })
    }

    /// Memory of another owner, as an allocation that is never freed.
    pub(crate) fn foreign(elem: Elem, at: u64) -> Allocation {
        Allocation { slice: None, address: GpuAddress { at, elem }, uses: Arc::default() }
    }

    /// Sets elements to zero, in the order of the stream.
    pub(super) fn set_zero(&self, at: &GpuAddress, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let bytes = usize::try_from(bytes(at.elem, len));
        let bytes = bytes.map_err(|_| self.too_large(at.elem, len))?;
        self.bind()?;
        // SAFETY: the caller's allocation has `len` elements at `at`. In every element type, zero
        // consists of zero bytes.
        unsafe { result::memset_d8_async(at.at, 0, bytes, self.stream.cu_stream()) }
            .map_err(failed("setting memory to zero"))
    }

    pub(super) fn bind(&self) -> Result<()> {
        self.context.bind_to_thread().map_err(failed("making the context current"))
    }

    pub(super) fn too_large(&self, elem: Elem, len: u64) -> Error {
        Error::OutOfMemory { bytes: bytes(elem, len), device: self.name.clone() }
    }
}
