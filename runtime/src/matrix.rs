//! Row-major matrices in device memory, packed or with padded rows.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::{Shape, extent, product, too_large};
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
