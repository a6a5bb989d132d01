//! Device memory that all devices of the process can access.

use super::{Library, NcclResult};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Device memory allocated by NCCL, accessible to all devices that can reach its device. It is
/// freed on drop. Freeing may wait for the device, so do not drop it while another device of the
/// process is in an exchange.
#[derive(Debug)]
pub struct Memory {
    library: Arc<Library>,
    address: u64,
    bytes: usize,
}

#[allow(unsafe_code, reason = "calls of the C library")]
impl Library {
    /// Allocates `bytes` bytes on the device that is current on this thread. The contents are
    /// undefined. The allocation takes at least 2 MiB, and may wait for the device.
    ///
    /// # Errors
    /// [`WorldError::Nccl`](crate::WorldError::Nccl) if NCCL fails, for example because memory is
    /// exhausted.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> NcclResult<Memory> {
        let mut pointer: *mut c_void = ptr::null_mut();
        if bytes > 0 {
            // SAFETY: the pointer to the pointer is valid for the call.
            let code = unsafe { (self.functions.allocate)(&mut pointer, bytes) };
            self.done(&format!("the allocation of {bytes} bytes"), code)?;
        }
        // CUDA addresses have 64 bits on every platform with NCCL.
        let address = pointer as usize as u64;
        Ok(Memory { library: Arc::clone(self), address, bytes })
    }
}

impl Memory {
    /// Address on the device, or 0 for an allocation of 0 bytes.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Size in bytes, as requested; NCCL may allocate more.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[allow(unsafe_code, reason = "a call of the C library")]
impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: NCCL allocated the memory, and only this call frees it. A failure leaks it.
            unsafe { (self.library.functions.free)(self.address as usize as *mut c_void) };
        }
    }
}
