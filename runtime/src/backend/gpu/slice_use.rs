//! Use of a `cudarc` slice or of buffers by a launch.

use super::use_log::BufferUse;
use crate::backend::driver::failed;
use crate::error::Result;
use cudarc::driver::{CudaStream, SyncOnDrop};
use std::sync::Arc;

/// Use of a slice or of buffers on the device's stream. Its drop, after the launch, orders later
/// work of other streams after the launch.
pub enum SliceUse<'a> {
    /// Use that `cudarc` records in an event of the slice, or for which the host waits.
    Tracked(SyncOnDrop<'a>),
    /// Use of a slice all of whose other work is on one stream.
    Joined {
        /// Stream of the launch.
        own: &'a CudaStream,
        /// Stream of the slice.
        other: Arc<CudaStream>,
    },
    /// Use of buffers of this crate.
    Buffers(BufferUse<'a>),
}

impl<'a> SliceUse<'a> {
    /// Makes the stream of the launch wait for the work on the stream of the slice so far.
    pub(super) fn join(own: &'a CudaStream, other: &Arc<CudaStream>) -> Result<Self> {
        own.join(other).map_err(failed("waiting for the stream of a slice"))?;
        Ok(Self::Joined { own, other: Arc::clone(other) })
    }
}

impl Drop for SliceUse<'_> {
    fn drop(&mut self) {
        if let Self::Joined { own, other } = self {
            // The next call of the context reports a failure, as with cudarc's own guards.
            own.context().record_err(other.join(own));
        }
    }
}
