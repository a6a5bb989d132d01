//! Transfers of buffers and their views.

use crate::backend::pinned::Pinned;
use crate::backend::transfer::Transfer;
use crate::buffer::{Buffer, BufferView, BufferViewMut};
#[cfg(doc)]
use crate::device::Device;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::operand::InputOf;
use gemm_dsl::target::element::Element;

impl<T: Element> Buffer<T> {
    /// Copies elements from the host. The slice may be changed after the call returns. The call
    /// allocates nothing. [`Device::write`] is the same call for any array.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.alloc(3)?;
    /// x.write(&[1.0, 2.0, 3.0])?;
    /// x.write_at(1, &[7.0])?;
    /// assert_eq!(device.download(&x)?, [1.0, 7.0, 3.0]);
    /// let error = x.write(&[1.0]).unwrap_err();
    /// assert_eq!(error.to_string(), "`elements` has 1 element, but `target` has 3: pass as many");
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if there are more or fewer elements than in the buffer.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        self.device().clone().write(self, elements)
    }

    /// Copies elements from the host to the elements from `offset` on.
    ///
    /// # Errors
    /// * [`Error::OutOfRange`] if the elements do not fit behind `offset`.
    /// * The errors of [`Buffer::write`].
    pub fn write_at(&mut self, offset: usize, elements: &[T]) -> Result<()> {
        self.whole_mut().write_at(offset, elements)
    }

    /// Copies an array of the same device, in the order of the device's other work. The host does
    /// not wait, and the call allocates nothing. A matrix is copied row by row, without padding, as
    /// [`Device::copy`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::copy`].
    pub fn copy_from(&mut self, source: &(impl InputOf<T> + ?Sized)) -> Result<()> {
        self.device().clone().copy(source, self)
    }

    /// Sets all elements to a value, as [`Device::fill`] does.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.device().clone().fill(self, value)
    }

    /// Copies all elements into host memory, after all earlier work of the device. The call
    /// allocates nothing.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.device().read_into(self, elements)
    }

    /// Starts a copy from pinned host memory, as [`Device::write_async`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::write_async`].
    pub fn write_async(&mut self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.device().clone().write_async(self, elements)
    }

    /// Starts a copy into pinned host memory, as [`Device::read_async`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_async`].
    pub fn read_async(&self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.device().read_async(self, elements)
    }
}

impl<T: Element> BufferView<'_, T> {
    /// Copies the elements into host memory, as [`Buffer::read_into`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.device().read_into(self, elements)
    }
}

impl<T: Element> BufferViewMut<'_, T> {
    /// Copies elements from the host, as [`Buffer::write`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Buffer::write`].
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        self.shared().device().clone().write(self, elements)
    }

    /// Copies elements from the host to the elements from `offset` on, as [`Buffer::write_at`]
    /// does.
    ///
    /// # Errors
    /// Returns the errors of [`Buffer::write_at`].
    pub fn write_at(&mut self, offset: usize, elements: &[T]) -> Result<()> {
        self.slice_mut(offset..offset.saturating_add(elements.len()))?.write(elements)
    }

    /// Copies an array of the same device, as [`Buffer::copy_from`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::copy`].
    pub fn copy_from(&mut self, source: &(impl InputOf<T> + ?Sized)) -> Result<()> {
        self.shared().device().clone().copy(source, self)
    }

    /// Sets all elements to a value, as [`Device::fill`] does.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.shared().device().clone().fill(self, value)
    }

    /// Copies the elements into host memory, as [`Buffer::read_into`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.shared().read_into(elements)
    }
}
