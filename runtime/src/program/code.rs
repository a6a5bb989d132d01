//! Machine code of a kernel that is loaded on a GPU.

use cudarc::driver::sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
use cudarc::driver::{CudaFunction, CudaStream};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Loaded machine code. It is unloaded when dropped, after all launches on the device's stream.
pub(crate) struct LoadedCode {
    function: ManuallyDrop<CudaFunction>,
    /// Stream of all launches.
    stream: Arc<CudaStream>,
    /// True if a captured graph may refer to the code.
    is_captured: AtomicBool,
}

impl LoadedCode {
    pub(crate) fn new(function: CudaFunction, stream: Arc<CudaStream>) -> Self {
        let is_captured = AtomicBool::new(false);
        Self { function: ManuallyDrop::new(function), stream, is_captured }
    }

    pub(crate) fn function(&self) -> &CudaFunction {
        &self.function
    }

    pub(crate) fn is_captured(&self) -> bool {
        self.is_captured.load(Ordering::Relaxed)
    }

    /// Records that a captured graph refers to the code, or that no graph may do so any more.
    pub(crate) fn set_captured(&self, is_captured: bool) {
        self.is_captured.store(is_captured, Ordering::Relaxed);
    }
}

impl Drop for LoadedCode {
    #[allow(unsafe_code, reason = "code that may still run stays loaded")]
    fn drop(&mut self) {
        // A wait would end a capture. If the driver fails, nothing runs any more.
        let status = self.stream.capture_status();
        let is_capturing = status.is_ok_and(|status| status != CU_STREAM_CAPTURE_STATUS_NONE);
        if self.is_captured() || is_capturing {
            return;
        }
        _ = self.stream.synchronize();
        // SAFETY: the function is not used again.
        unsafe { ManuallyDrop::drop(&mut self.function) };
    }
}
