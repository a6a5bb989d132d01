//! Memory that every device of the process can reach.

use super::{Library, NcclResult};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Memory of a device as NCCL allocates it, to which all devices that can reach it have access. It is freed when this value
/// is dropped; freeing may wait for the device, so not while another one of the process is in an exchange.
#[derive(Debug)]
pub struct Memory {
    library: Arc<Library>,
    address: u64,
    bytes: usize,
}

#[allow(unsafe_code, reason = "calls of the C library")]
impl Library {
    /// Memory of the device that is current on this thread; what it holds is undefined. It takes 2 MiB at least, and may
    /// wait for the device.
    ///
    /// # Errors
    /// [`WorldError::Nccl`](crate::WorldError::Nccl), where there is no room too.
    pub fn allocate(self: &Arc<Self>, bytes: usize) -> NcclResult<Memory> {
        let mut pointer: *mut c_void = ptr::null_mut();
        if bytes > 0 {
            // SAFETY: the pointer to the pointer is valid for the call.
            let code = unsafe { (self.functions.allocate)(&mut pointer, bytes) };
            self.done(&format!("the allocation of {bytes} bytes"), code)?;
        }
        // CUDA's addresses have 64 bits wherever there is NCCL.
        let address = pointer as usize as u64;
        Ok(Memory { library: Arc::clone(self), address, bytes })
    }
}

impl Memory {
    /// The address on the device; 0 of no bytes.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The bytes that were asked for.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[allow(unsafe_code, reason = "a call of the C library")]
impl Drop for Memory {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: NCCL has allocated it, and it is freed here alone. A failure leaks it.
            unsafe { (self.library.functions.free)(self.address as usize as *mut c_void) };
        }
    }
}
