//! Transfers for which the host does not wait.

use super::event::Event;
use super::pinned::Pinned;
use crate::error::Result;
use gemm_dsl::target::element::Element;
use std::fmt;
use std::mem;

/// Transfer between a device and pinned host memory, which it owns until it is done.
///
/// [`wait`](Self::wait) returns the memory. If the value is dropped, the drop waits and frees the
/// memory. If it is forgotten, the memory is never freed.
#[must_use = "dropping a transfer waits for it: call `wait` when you need the memory"]
pub struct Transfer<T: Element = f32> {
    /// Missing only after `wait`.
    elements: Option<Pinned<T>>,
    event: Event,
}

impl<T: Element> Transfer<T> {
    pub(crate) fn new(elements: Pinned<T>, event: Event) -> Self {
        Self { elements: Some(elements), event }
    }

    /// Blocks the thread until the transfer is done, and returns the memory.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the transfer, or earlier work of the device,
    /// failed. Then the memory is never freed.
    pub fn wait(mut self) -> Result<Pinned<T>> {
        let elements = self.elements.take();
        let Some(elements) = elements else { unreachable!("only `wait` takes the memory") };
        match self.event.wait() {
            Ok(()) => Ok(elements),
            Err(error) => {
                // The device may still use the memory.
                mem::forget(elements);
                Err(error)
            }
        }
    }

    /// Returns true if the transfer is done, without waiting.
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if the transfer, or earlier work of the device,
    /// failed.
    pub fn is_done(&self) -> Result<bool> {
        self.event.is_done()
    }
}

impl<T: Element> Drop for Transfer<T> {
    fn drop(&mut self) {
        if let Some(elements) = self.elements.take()
            && self.event.wait().is_err()
        {
            // The device may still use the memory. The next call that waits reports the failure.
            mem::forget(elements);
        }
    }
}

impl<T: Element> fmt::Debug for Transfer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { elements, event } = self;
        f.debug_struct("Transfer").field("elements", elements).field("event", event).finish()
    }
}
