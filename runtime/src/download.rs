//! Copies to the host.

use crate::backend::Backend;
use crate::device::{Device, dispatch};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::operand::{self, Input};
use gemm_dsl::sim::Element;

impl Device {
    /// Copies elements to the host, after all work launched before. A matrix gives its elements with
    /// the padding; see [`Device::download_matrix`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and
    /// [`Error::Driver`](crate::Error::Driver) for what earlier launches failed with.
    pub fn download<A: Input + ?Sized>(&self, array: &A) -> Result<Vec<A::Element>> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            on.backend.read(&array.address, array.len)
        })
    }

    /// Copies a matrix to the host, row after row without the padding.
    ///
    /// # Errors
    /// Those of [`Device::download`].
    pub fn download_matrix<T: Element>(&self, matrix: &Matrix<T>) -> Result<Vec<T>> {
        let mut elements = self.download(matrix.buffer())?;
        let (rows, cols, pitch) = (matrix.rows(), matrix.cols(), matrix.pitch());
        // A matrix without columns may have any pitch and any number of rows.
        if cols == 0 {
            return Ok(Vec::new());
        }
        if pitch != cols {
            for row in 1..rows {
                elements.copy_within(row * pitch..row * pitch + cols, row * cols);
            }
        }
        elements.truncate(rows * cols);
        Ok(elements)
    }
}
