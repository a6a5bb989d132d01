//! Views of bytes in GPU memory as elements.

use cudarc::driver::{CudaSlice, CudaView};
use gemm_runtime::{Element, Error};

/// Returns the first `len` elements of an array of bytes.
///
/// # Errors
/// Returns [`Error::Internal`] if there are fewer bytes.
#[allow(
    unsafe_code,
    reason = "the driver's slices do not know which element types accept any bytes"
)]
pub fn elements<T: Element>(bytes: &CudaSlice<u8>, len: usize) -> Result<CudaView<'_, T>, Error> {
    // SAFETY: an allocation is aligned to 256 bytes, and every bit pattern of an element is valid.
    let view = unsafe { bytes.transmute::<T>(len) };
    view.ok_or_else(|| Error::Internal(format!("{} bytes cannot hold {len} elements", bytes.len())))
}
