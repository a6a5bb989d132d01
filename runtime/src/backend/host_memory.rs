//! Host memory: pinned, or allocated fallibly.

use super::driver::failed;
use crate::error::{Error, Result};
use cudarc::driver::sys::{CU_MEMHOSTALLOC_PORTABLE, CUresult};
use cudarc::driver::{CudaContext, DriverError, result};
use gemm_dsl::target::element::Element;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

/// Elements in pinned host memory, freed when dropped.
pub(crate) struct HostMemory<T> {
    first: NonNull<T>,
    len: usize,
    context: Arc<CudaContext>,
}

// SAFETY: the memory is owned like a `Box<[T]>`. The driver frees it in any thread.
#[allow(unsafe_code, reason = "a pointer is not `Send` by itself")]
unsafe impl<T: Send> Send for HostMemory<T> {}
// SAFETY: shared access only reads the elements.
#[allow(unsafe_code, reason = "a pointer is not `Sync` by itself")]
unsafe impl<T: Sync> Sync for HostMemory<T> {}

#[allow(unsafe_code, reason = "the driver allocates the memory")]
impl<T: Element> HostMemory<T> {
    pub(crate) fn elements(&self) -> &[T] {
        // SAFETY: the memory has `len` initialised elements, and is freed only by the drop.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }

    pub(crate) fn elements_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T> Drop for HostMemory<T> {
    #[allow(unsafe_code, reason = "the driver frees the memory")]
    fn drop(&mut self) {
        // If the context cannot be bound, the free fails too, and the memory is freed with the
        // process.
        _ = self.context.bind_to_thread();
        // SAFETY: `zeros` allocated the memory, and nothing uses it any more: a transfer
        // owns the memory until it is done.
        _ = unsafe { result::free_host(self.first.as_ptr().cast()) };
    }
}

impl<T: Element> HostMemory<T> {
    /// Allocates zeros, in pinned memory of all contexts.
    #[allow(unsafe_code, reason = "the driver allocates the memory")]
    pub(super) fn zeros(context: &Arc<CudaContext>, len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
        let bytes = bytes.ok_or_else(|| exhausted::<T>(len))?.max(1);
        context.bind_to_thread().map_err(failed("making the context current"))?;
        // SAFETY: the memory is set to zero below, before its first use.
        let first = unsafe { result::malloc_host(bytes, CU_MEMHOSTALLOC_PORTABLE) };
        let first = first.map_err(|error| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => exhausted::<T>(len),
            error => failed(format!("allocating {bytes} bytes of pinned memory"))(error),
        })?;
        let first = NonNull::new(first.cast::<T>()).ok_or_else(|| exhausted::<T>(len))?;
        // SAFETY: the allocation has so many bytes. Zero bytes are a valid element of every type.
        unsafe { first.cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { first, len, context: Arc::clone(context) })
    }
}

/// Allocates host memory fallibly: a batch or a list may repeat one small matrix many times.
pub(crate) fn room<T: Element>(len: usize) -> Result<Vec<T>> {
    // Reserves memory fallibly first: the process would abort if a plain allocation failed. The
    // plain allocation gets pages of zeros from the system, without writing them.
    Vec::<T>::new().try_reserve_exact(len).map_err(|_| exhausted::<T>(len))?;
    Ok(vec![T::default(); len])
}

fn exhausted<T>(len: usize) -> Error {
    let bytes = (len as u64).saturating_mul(size_of::<T>() as u64);
    Error::OutOfMemory { bytes, device: "the host".to_owned() }
}
