//! Row-major matrices in device memory, with pitched rows.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::shape::{Shape, extent, product, too_large};
use gemm_dsl::target::element::Element;

/// The rows of a matrix start at multiples of this many bytes.
const ROW_ALIGNMENT: usize = 16;

/// A row-major matrix in device memory whose rows may be followed by padding.
///
/// [`Device::upload_matrix`] and [`Device::alloc_matrix`] round the pitch up to a multiple of 16
/// bytes, so that a `pitched` kernel makes 16-byte accesses whatever the width. The padding never
/// influences a result and is never written by a kernel.
#[derive(Debug)]
pub struct Matrix<T: Element = f32> {
    buffer: Buffer<T>,
    shape: Shape,
}

impl<T: Element> Matrix<T> {
    /// A matrix over a buffer's elements: row `i` starts at element `i * pitch`.
    ///
    /// # Errors
    /// [`Error::ShortPitch`] where the pitch is shorter than a row, [`Error::WrongExtent`] where the
    /// buffer is too short.
    pub fn from_buffer(buffer: Buffer<T>, rows: usize, cols: usize, pitch: usize) -> Result<Self> {
        let shape = Shape::pitched("buffer", buffer.len(), rows, cols, pitch)?;
        Ok(Self { buffer, shape })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// The number of columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// The distance between the starts of two rows, in elements: the leading dimension.
    pub fn pitch(&self) -> usize {
        self.shape.row_stride
    }

    /// The elements with their padding.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The elements with their padding, given back.
    pub fn into_buffer(self) -> Buffer<T> {
        self.buffer
    }

    #[doc(hidden)]
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Device {
    /// Copies a packed row-major matrix to the device, padding its rows to 16 bytes with zeros.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where there are not `rows * cols` elements, and those of
    /// [`Device::upload`].
    pub fn upload_matrix(&self, elements: &[f32], rows: usize, cols: usize) -> Result<Matrix> {
        self.upload_matrix_of(elements, rows, cols)
    }

    /// As [`Device::upload_matrix`], of elements of any type.
    ///
    /// # Errors
    /// As [`Device::upload_matrix`].
    pub fn upload_matrix_of<T: Element>(
        &self,
        elements: &[T],
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<T>> {
        let needed = extent(rows, cols, cols)?;
        if elements.len() != needed {
            return Err(Error::WrongExtent {
                argument: "elements".to_owned(),
                has: elements.len() as u64,
                need: format!("rows·cols = {rows}·{cols} = {needed} are needed"),
            });
        }
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

    /// A matrix of zeros whose rows are padded to 16 bytes.
    ///
    /// # Errors
    /// Those of [`Device::alloc`].
    pub fn alloc_matrix(&self, rows: usize, cols: usize) -> Result<Matrix> {
        self.alloc_matrix_of(rows, cols)
    }

    /// As [`Device::alloc_matrix`], of elements of any type.
    ///
    /// # Errors
    /// As [`Device::alloc_matrix`].
    pub fn alloc_matrix_of<T: Element>(&self, rows: usize, cols: usize) -> Result<Matrix<T>> {
        let pitch = padded::<T>(cols)?;
        let buffer = self.alloc_of(product(rows, pitch)?)?;
        Matrix::from_buffer(buffer, rows, cols, pitch)
    }
}

fn padded<T: Element>(cols: usize) -> Result<usize> {
    let multiple = ROW_ALIGNMENT / size_of::<T>();
    cols.checked_next_multiple_of(multiple).ok_or_else(|| too_large(1, cols))
}
