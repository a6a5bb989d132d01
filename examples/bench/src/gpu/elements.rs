//! Bytes of GPU memory, seen as elements.

use cudarc::driver::{CudaSlice, CudaView};
use gemm_runtime::{Element, Error};

/// The first `len` elements of an array of bytes.
///
/// # Errors
/// [`Error::Internal`] where there are fewer bytes.
#[allow(
    unsafe_code,
    reason = "the driver's slices do not know of which elements any bytes will do"
)]
pub fn elements<T: Element>(bytes: &CudaSlice<u8>, len: usize) -> Result<CudaView<'_, T>, Error> {
    // SAFETY: an allocation is aligned to 256 bytes, and an element is a number of which all bits are valid.
    let view = unsafe { bytes.transmute::<T>(len) };
    view.ok_or_else(|| Error::Internal(format!("{} bytes hold no {len} elements", bytes.len())))
}
