//! Pinned memory, events, and transfers for which the host does not wait.

use super::{SingleArray, check_len};
use crate::backend::Backend;
use crate::backend::event::Event;
#[cfg(feature = "sim")]
use crate::backend::host_memory::room;
use crate::backend::pinned::Pinned;
use crate::backend::transfer::Transfer;
use crate::blocks::{Blocks, packed_strides};
use crate::buffer::Buffer;
use crate::device::{Device, DeviceBackend, dispatch};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::operand::{self, Input, Output};
use gemm_dsl::target::element::Element;

impl Device {
    /// Allocates `len` zeros in pinned host memory.
    ///
    /// # Errors
    /// * [`Error::OutOfMemory`] if the host has too little memory.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<Pinned<T>> {
        match self.backend() {
            DeviceBackend::Gpu(gpu) => gpu.pinned(len).map(Pinned::from_pinned),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(_) => room(len).map(Pinned::from_plain),
        }
    }

    /// Records an event after all work of the device so far.
    ///
    /// # Errors
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn record(&self) -> Result<Event> {
        match self.backend() {
            DeviceBackend::Gpu(gpu) => gpu.record(),
            #[cfg(feature = "sim")]
            DeviceBackend::Simulator(_) => Ok(Event::done()),
        }
    }

    /// Makes all later work of the device wait for an event of any device. The host does not wait,
    /// unless this device is a simulator and the event is a GPU's.
    ///
    /// # Errors
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        match (self.backend(), event.cuda()) {
            (DeviceBackend::Gpu(gpu), Some(event)) => gpu.wait_for(event),
            _ => event.wait(),
        }
    }

    /// Starts a copy from pinned memory into an array. Later work of the device is ordered after
    /// the copy.
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

    /// Starts a copy of an array into pinned memory, after all earlier work of the device. Later
    /// work of the device is ordered after the copy, so it may overwrite the array.
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
