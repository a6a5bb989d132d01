//! Back-to-back launches in a CUDA graph.

use super::{Gpu, Timer, Work, failed};
use cudarc::driver::CudaGraph;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use gemm_runtime::Error;

impl Gpu<'_> {
    /// Stops `cudarc` from recording events for later allocations, because a graph capture refuses
    /// these events.
    ///
    /// The program must submit all work to this one stream. The events are then unnecessary.
    #[allow(unsafe_code, reason = "nothing else orders what several streams would do")]
    pub fn without_events(self) -> Self {
        // SAFETY: all work is submitted to the device's one stream, in order.
        unsafe { self.context.disable_event_tracking() };
        self
    }
}

/// Captures `launches` calls of `work` as a graph. The calls must neither compile nor allocate.
///
/// The capture ends even if the work fails.
///
/// # Errors
/// Returns the errors of the work, and [`Error::Driver`] if the capture fails.
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

/// Returns the median time of a launch of each piece of work in milliseconds, over `replays`
/// replays of a graph of `launches` launches. The work was launched before, so that it neither
/// compiles nor allocates.
///
/// # Errors
/// Returns the errors of [`captured`] and of [`Timer::medians`].
pub fn medians_in_graphs(
    gpu: Gpu<'_>,
    timer: &Timer<'_>,
    (launches, replays): (usize, usize),
    work: &mut [&mut Work<'_>],
) -> Result<Vec<f64>, Error> {
    let graphs = work.iter_mut().map(|work| captured(gpu, *work, launches));
    let graphs = graphs.collect::<Result<Vec<_>, _>>()?;
    let replay = |graph: &CudaGraph| graph.launch().map_err(failed("launching a graph"));
    let mut replayed: Vec<_> = graphs.iter().map(|graph| move || replay(graph)).collect();
    let mut replayed: Vec<&mut Work<'_>> =
        replayed.iter_mut().map(|replay| replay as &mut Work<'_>).collect();
    let times = timer.medians(replays, &mut replayed)?;
    // The graphs are destroyed when this function returns.
    gpu.device.synchronize()?;
    Ok(times.into_iter().map(|ms| ms / launches as f64).collect())
}
