//! Row-major matrices in device memory, packed or with padded rows.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::operand::InputOf;
use crate::pinned::Pinned;
use crate::shape::{Shape, extent, product, too_large};
use crate::transfer::Transfer;
use gemm_dsl::target::element::Element;

/// Alignment of every row of a padded matrix, in bytes.
const ROW_ALIGNMENT: usize = 16;

/// Row-major matrix in device memory, packed or with padded rows.
///
/// [`Device::upload_matrix`] and [`Device::alloc_matrix`] return packed matrices, which every
/// kernel accepts.
///
/// [`Device::upload_matrix_padded`] and [`Device::alloc_matrix_padded`] round the row stride up to
/// a multiple of 16 bytes. A kernel can then use 16-byte accesses for any number of columns, but
/// must have the key `pitched`; [`sgemm`](crate::sgemm) and tables choose such kernels themselves.
/// Kernels never write the padding, and the padding never affects a result.
///
/// ```
/// use gemm_runtime::Device;
///
/// let device = Device::simulator();
/// let elements = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let matrix = device.upload_matrix(&elements, 2, 3)?;
/// assert_eq!((matrix.rows(), matrix.cols(), matrix.pitch()), (2, 3, 3));
/// assert_eq!(device.download(&matrix.t())?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// let padded = device.upload_matrix_padded(&elements, 2, 3)?;
/// assert_eq!(padded.pitch(), 4);
/// assert_eq!(device.download(&padded.part(0..2, 1..3)?)?, [2.0, 3.0, 5.0, 6.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct Matrix<T: Element = f32> {
    buffer: Buffer<T>,
    shape: Shape,
}

impl<T: Element> Matrix<T> {
    /// Builds a matrix from the elements of a buffer: row `i` starts at element `i * pitch`.
    ///
    /// # Errors
    /// * [`Error::ShortPitch`] if `pitch` is less than `cols`.
    /// * [`Error::WrongExtent`] if the buffer has fewer than `(rows - 1) * pitch + cols` elements.
    pub fn from_buffer(buffer: Buffer<T>, rows: usize, cols: usize, pitch: usize) -> Result<Self> {
        let shape = Shape::pitched("buffer", buffer.len(), rows, cols, pitch)?;
        Ok(Self { buffer, shape })
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Returns the row stride in elements, also called leading dimension.
    pub fn pitch(&self) -> usize {
        self.shape.row_stride
    }

    /// Returns the buffer of all elements, including padding.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// Consumes the matrix and returns the buffer of all elements, including padding.
    pub fn into_buffer(self) -> Buffer<T> {
        self.buffer
    }

    /// Copies elements from the host, row by row. Padding keeps its values. The slice may be changed
    /// after the call returns. The call allocates no device memory.
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
        self.device().write(self, elements)
    }

    /// Copies a matrix of the same shape and device, which may have other strides or be a transpose,
    /// or a vector of as many elements. The host does not wait. [`Device::copy`] describes the cost.
    ///
    /// # Errors
    /// Returns the errors of [`Device::copy`].
    pub fn copy_from(&mut self, source: &(impl InputOf<T> + ?Sized)) -> Result<()> {
        self.device().copy(source, self)
    }

    /// Sets all elements to a value, as [`Device::fill`] does. Padding keeps its values.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver fails.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.device().fill(self, value)
    }

    /// Copies the elements into host memory, row by row, as [`Device::read_into`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_into`].
    pub fn read_into(&self, elements: &mut [T]) -> Result<()> {
        self.buffer.device().read_into(self, elements)
    }

    /// Starts a copy of elements, row by row, from pinned host memory, as [`Device::write_async`]
    /// does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::write_async`].
    pub fn write_async(&mut self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.device().write_async(self, elements)
    }

    /// Starts a copy of the elements, row by row, into pinned host memory, as
    /// [`Device::read_async`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::read_async`].
    pub fn read_async(&self, elements: Pinned<T>) -> Result<Transfer<T>> {
        self.buffer.device().read_async(self, elements)
    }

    fn device(&self) -> Device {
        self.buffer.device().clone()
    }

    #[doc(hidden)]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Device {
    /// Copies a packed row-major matrix to the device.
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if `elements` does not have `rows * cols` elements.
    /// * The errors of [`Device::upload`].
    pub fn upload_matrix(&self, elements: &[f32], rows: usize, cols: usize) -> Result<Matrix> {
        self.upload_matrix_of(elements, rows, cols)
    }

    /// Copies a packed row-major matrix of any element type to the device, as
    /// [`Device::upload_matrix`] does for `f32`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload_matrix`].
    pub fn upload_matrix_of<T: Element>(
        &self,
        elements: &[T],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>> {
        check_elements(elements, rows, cols)?;
        Matrix::from_buffer(self.upload_of(elements)?, rows, cols, cols)
    }

    /// Copies a packed row-major matrix to the device and pads its rows to 16 bytes with zeros.
    ///
    /// Unless `cols` is a multiple of 4, only a `pitched` kernel accepts the [`Matrix`].
    ///
    /// # Errors
    /// * [`Error::TooLarge`] if the padded matrix has more elements than `usize` can count.
    /// * The errors of [`Device::upload_matrix`].
    pub fn upload_matrix_padded(
        &self,
        elements: &[f32],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix> {
        self.upload_matrix_padded_of(elements, rows, cols)
    }

    /// Copies a packed row-major matrix of any element type to the device, as
    /// [`Device::upload_matrix_padded`] does for `f32`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload_matrix_padded`].
    pub fn upload_matrix_padded_of<T: Element>(
        &self,
        elements: &[T],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>> {
        check_elements(elements, rows, cols)?;
        let pitch = padded::<T>(cols)?;
        let buffer = if pitch == cols || rows == 0 {
            self.upload_of(elements)?
        } else {
            let mut rows_padded = vec![T::default(); product(rows, pitch)?];
            for (to, from) in rows_padded.chunks_exact_mut(pitch).zip(elements.chunks_exact(cols)) {
                to[..cols].copy_from_slice(from);
            }
            self.upload_of(&rows_padded)?
        };
        Matrix::from_buffer(buffer, rows, cols, pitch)
    }

    /// Allocates a packed matrix of zeros of type `f32`.
    ///
    /// # Errors
    /// * [`Error::TooLarge`] if the matrix has more elements than `usize` can count.
    /// * The errors of [`Device::alloc`].
    pub fn alloc_matrix(&self, rows: usize, cols: usize) -> Result<Matrix> {
        self.alloc_matrix_of(rows, cols)
    }

    /// Allocates a packed matrix of zeros of any element type, as [`Device::alloc_matrix`] does for
    /// `f32`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::alloc_matrix`].
    pub fn alloc_matrix_of<T: Element>(&self, rows: usize, cols: usize) -> Result<Matrix<T>> {
        let buffer = self.alloc_of(product(rows, cols)?)?;
        Matrix::from_buffer(buffer, rows, cols, cols)
    }

    /// Allocates a matrix of zeros of type `f32` whose rows are padded to 16 bytes.
    ///
    /// Unless `cols` is a multiple of 4, only a `pitched` kernel accepts the [`Matrix`].
    ///
    /// # Errors
    /// * [`Error::TooLarge`] if the padded matrix has more elements than `usize` can count.
    /// * The errors of [`Device::alloc`].
    pub fn alloc_matrix_padded(&self, rows: usize, cols: usize) -> Result<Matrix> {
        self.alloc_matrix_padded_of(rows, cols)
    }

    /// Allocates a matrix of zeros of any element type, as [`Device::alloc_matrix_padded`] does for
    /// `f32`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::alloc_matrix_padded`].
    pub fn alloc_matrix_padded_of<T: Element>(
        &self,
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>> {
        let pitch = padded::<T>(cols)?;
        let buffer = self.alloc_of(product(rows, pitch)?)?;
        Matrix::from_buffer(buffer, rows, cols, pitch)
    }
}

fn check_elements<T>(elements: &[T], rows: usize, cols: usize) -> Result<()> {
    let needed = extent(rows, cols, cols)?;
    if elements.len() != needed {
        return Err(Error::WrongExtent {
            argument: "elements".to_owned(),
            has: elements.len() as u64,
            need: format!("rows·cols = {rows}·{cols} = {needed} are needed"),
        });
    }
    Ok(())
}

fn padded<T: Element>(cols: usize) -> Result<usize> {
    let multiple = ROW_ALIGNMENT / size_of::<T>();
    cols.checked_next_multiple_of(multiple).ok_or_else(|| too_large(1, cols))
}
