//! Transfers of matrices and their views.

use crate::backend::pinned::Pinned;
use crate::backend::transfer::Transfer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::InputOf;
use crate::view::{MatrixMut, MatrixRef};
use gemm_dsl::target::element::Element;

impl<T: Element> Matrix<T> {
    /// Copies elements from the host, row by row. Padding keeps its values. The slice may be
    /// changed after the call returns. The call allocates no device memory.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.alloc_matrix_padded(2, 3)?;
    /// x.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
    /// let mut transposed = device.alloc_matrix(3, 2)?;
    /// transposed.copy_from(&x.t())?;
    /// let mut elements = [0.0; 6];
    /// transposed.read_into(&mut elements)?;
    /// assert_eq!(elements, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if there are more or fewer than `rows * cols` elements.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        self.buffer().device().clone().write(self, elements)
    }

    /// Copies a matrix of the same shape and device, which may have other strides or be a
    /// transpose, or a vector of as many elements. The host does not wait. [`Device::copy`]
    /// describes the cost.
    ///
    /// # Errors
    /// Returns the errors of [`Device::copy`].
    pub fn copy_from(&mut self, source: &(impl InputOf<T> + ?Sized)) -> Result<()> {
        self.buffer().device().clone().copy(source, self)
    }

    /// Sets all elements to a value, as [`Device::fill`] does. Padding keeps its values.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.buffer().device().clone().fill(self, value)
    }

    /// Copies the elements into host memory, row by row, as [`Device::read_into`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.buffer().device().read_into(self, elements)
    }

    /// Starts a copy of elements, row by row, from pinned host memory, as [`Device::write_async`]
    /// does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::write_async`].
    pub fn write_async(&mut self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.buffer().device().clone().write_async(self, elements)
    }

    /// Starts a copy of the elements, row by row, into pinned host memory, as
    /// [`Device::read_async`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_async`].
    pub fn read_async(&self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.buffer().device().read_async(self, elements)
    }
}

impl<T: Element> MatrixMut<'_, T> {
    /// Copies elements from the host, row by row, as [`Matrix::write`] does.
    ///
    /// # Errors
    /// * [`Error::NoDevice`](crate::Error::NoDevice) for a matrix in a `cudarc` slice.
    /// * The errors of [`Device::write`].
    pub fn write(&mut self, elements: &[T]) -> Result<()> {
        self.device("write(&mut target, elements)")?.write(self, elements)
    }

    /// Copies a matrix of the same shape and device, as [`Matrix::copy_from`] does.
    ///
    /// # Errors
    /// * [`Error::NoDevice`](crate::Error::NoDevice) for a matrix in a `cudarc` slice.
    /// * The errors of [`Device::copy`].
    pub fn copy_from(&mut self, source: &(impl InputOf<T> + ?Sized)) -> Result<()> {
        self.device("copy(&source, &mut target)")?.copy(source, self)
    }

    /// Sets all elements to a value, as [`Device::fill`] does.
    ///
    /// # Errors
    /// * [`Error::NoDevice`](crate::Error::NoDevice) for a matrix in a `cudarc` slice.
    /// * The errors of [`Device::fill`].
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.device("fill(&mut target, value)")?.fill(self, value)
    }

    fn device(&self, call: &'static str) -> Result<Device> {
        self.elements.device().cloned().ok_or(Error::NoDevice { call })
    }
}

/// Implements the transfer to the host for a view.
macro_rules! reads {
    ($view:ident) => {
        impl<T: Element> $view<'_, T> {
            /// Copies the elements into host memory, row by row, as
            /// [`Device::read_into`](crate::Device::read_into) does.
            ///
            /// # Errors
            /// * [`Error::NoDevice`](crate::Error::NoDevice) for a matrix in a `cudarc` slice.
            /// * The errors of [`Device::read_into`](crate::Device::read_into).
            pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
                let call = "read_into(&array, elements)";
                let device = self.elements.device().ok_or(Error::NoDevice { call })?;
                device.read_into(self, elements)
            }
        }
    };
}
reads!(MatrixRef);
reads!(MatrixMut);
