//! Events: points in the work of a device.

use super::driver::failed;
use crate::error::Result;
use cudarc::driver::CudaEvent;
use std::fmt;

/// Point in the work of a device, returned by [`Device::record`](crate::Device::record).
///
/// The simulator has no pending work, so its events are done at once.
///
/// ```
/// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
///
/// const SUM: ReduceKernel = reduce_kernel!(op: sum);
/// let device = Device::simulator();
/// let (x, mut sum) = (device.upload(&[1.0; 8])?, device.alloc(1)?);
/// SUM.launch(&device, &x, &mut sum)?;
/// let launched = device.record()?;
/// // Other work of the host.
/// launched.wait()?;
/// assert!(launched.is_done()?);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Event(Option<CudaEvent>);

impl Event {
    /// Event whose work is done.
    pub(crate) fn done() -> Self {
        Self(None)
    }

    pub(crate) fn recorded(event: CudaEvent) -> Self {
        Self(Some(event))
    }

    /// Event of the driver, or `None` for a simulator's.
    pub(crate) fn cuda(&self) -> Option<&CudaEvent> {
        self.0.as_ref()
    }

    /// Blocks the thread until the work before the event is done.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if some of this work failed.
    pub fn wait(&self) -> Result<()> {
        let Some(event) = &self.0 else { return Ok(()) };
        event.synchronize().map_err(failed("waiting for an event"))
    }

    /// Returns true if the work before the event is done, without waiting.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if some of this work failed.
    pub fn is_done(&self) -> Result<bool> {
        let Some(event) = &self.0 else { return Ok(true) };
        let bound = event.context().bind_to_thread();
        bound.and_then(|()| event.try_is_complete()).map_err(failed("asking for an event"))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("is_simulated", &self.0.is_none()).finish_non_exhaustive()
    }
}
