//! Launches that lie back to back in a CUDA graph.

use super::{Gpu, Work, failed};
use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use gemm_runtime::Error;

impl Gpu<'_> {
    /// Has `cudarc` keep no events of what is allocated from here on: for a program all of whose work goes to this one
    /// stream, so that they would order nothing. A capture refuses them.
    #[allow(unsafe_code, reason = "nothing else orders what several streams would do")]
    pub fn without_events(self) -> Self {
        // SAFETY: the device's stream is the only one that work goes to: each piece follows the one before it.
        unsafe { self.context.disable_event_tracking() };
        self
    }
}

/// So many launches as a graph, of work that neither compiles nor allocates any more. The capture ends whatever the
/// work fails with.
///
/// # Errors
/// The work's own, and [`Error::Driver`].
pub fn captured(gpu: Gpu<'_>, work: &mut Work<'_>, launches: usize) -> Result<CudaGraph, Error> {
    gpu.device.synchronize()?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    gpu.stream.begin_capture(mode).map_err(failed("beginning a capture"))?;
    let done = (0..launches).try_for_each(|_| work());
    let graph = gpu.stream.end_capture(CUgraphInstantiate_flags(0));
    done?;
    let graph = graph.map_err(failed("ending a capture"))?;
    graph.ok_or_else(|| Error::Internal("a capture without launches".to_owned()))
}
