//! Streams that share buffers.

use std::sync::atomic::{AtomicBool, Ordering};

/// Streams of a context that share buffers.
#[derive(Debug, Default)]
pub struct StreamGroup {
    /// True from the creation of the second stream on.
    has_several: AtomicBool,
}

impl StreamGroup {
    /// Returns true if uses of buffers must be recorded.
    pub(super) fn has_several(&self) -> bool {
        self.has_several.load(Ordering::SeqCst)
    }

    /// Records from now on. The caller then orders the new stream after the work that was not
    /// recorded: all of it is on the stream of the caller, or before its creation.
    pub(super) fn add_stream(&self) {
        self.has_several.store(true, Ordering::SeqCst);
    }
}
