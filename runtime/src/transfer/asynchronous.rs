//! Transfers for which the host does not wait.

use super::{SingleArray, check_len};
use crate::backend::Backend;
use crate::blocks::{Blocks, packed_strides};
use crate::buffer::Buffer;
use crate::device::{Device, dispatch};
use crate::error::Result;
use crate::event::Event;
use crate::operand::{self, Input, Output};
use crate::pinned::Pinned;
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
    /// [`Error::Driver`](crate::Error::Driver) if the transfer, or earlier work of the device, failed. Then the memory is
    /// never freed.
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
    /// [`Error::Driver`](crate::Error::Driver) if the transfer, or earlier work of the device, failed.
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

impl Device {
    /// Starts a copy from pinned memory into an array. Later work of the device is ordered after the
    /// copy.
    ///
    /// The transfer owns the memory until it is done. The elements of a matrix are copied row by
    /// row. The call allocates nothing. If it fails, the memory is freed. The rows of the array
    /// should be contiguous: elements of a transpose are copied one by one, which is slow.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator();
    /// let (mut x, mut sum) = (device.alloc(3)?, device.alloc(1)?);
    /// let mut elements = device.pinned(3)?;
    /// for round in 0..3 {
    ///     elements.fill(round as f32);
    ///     let transfer = device.write_async(&mut x, elements)?;
    ///     SUM.launch(&device, &x, &mut sum)?; // after the copy
    ///     elements = transfer.wait()?;
    /// }
    /// assert_eq!(device.download(&sum)?, [6.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// The memory cannot be used before the transfer is done:
    ///
    /// ```compile_fail,E0382
    /// # let device = gemm_runtime::Device::simulator();
    /// # let mut x = device.alloc(3)?;
    /// let mut elements = device.pinned(3)?;
    /// let transfer = device.write_async(&mut x, elements)?;
    /// elements.fill(1.0);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Device::write`].
    pub fn write_async<O: Output + ?Sized>(
        &self,
        target: &mut O,
        elements: Pinned<O::Element>,
    ) -> Result<Transfer<O::Element>> {
        dispatch!(self, on => {
            let target = operand::write(on, target, "target")?;
            let target = SingleArray::new(&target, "target")?.distinct("target")?;
            check_len("elements", elements.len(), "target", &target.shape)?;
            let (extents, strides) = (target.shape.extents(), target.shape.strides());
            let blocks = Blocks::new(extents, strides, packed_strides(extents));
            on.backend.start_write(target.address, elements, &blocks)
        })
    }

    /// Starts a copy of an array into pinned memory, after all earlier work of the device. Later work
    /// of the device is ordered after the copy, so it may overwrite the array.
    ///
    /// The transfer owns the memory until it is done. The elements of a matrix are copied row by
    /// row. The call allocates nothing. If it fails, the memory is freed. The rows of the array
    /// should be contiguous: elements of a transpose are copied one by one, which is slow.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.upload(&[1.0, 2.0])?;
    /// let transfer = device.read_async(&x, device.pinned(2)?)?;
    /// x.fill(0.0)?; // after the copy
    /// assert_eq!(transfer.wait()?[..], [1.0, 2.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_async<A: Input + ?Sized>(
        &self,
        array: &A,
        elements: Pinned<A::Element>,
    ) -> Result<Transfer<A::Element>> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            let array = SingleArray::new(&array, "array")?;
            check_len("elements", elements.len(), "array", &array.shape)?;
            let (extents, strides) = (array.shape.extents(), array.shape.strides());
            let blocks = Blocks::new(extents, packed_strides(extents), strides);
            on.backend.start_read(elements, array.address, &blocks)
        })
    }

    /// Allocates a buffer and starts a copy from pinned memory into it, as
    /// [`Device::write_async`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`].
    pub fn upload_async<T: Element>(
        &self,
        elements: Pinned<T>,
    ) -> Result<(Buffer<T>, Transfer<T>)> {
        let mut buffer = self.alloc_of(elements.len())?;
        let transfer = self.write_async(&mut buffer, elements)?;
        Ok((buffer, transfer))
    }
}
