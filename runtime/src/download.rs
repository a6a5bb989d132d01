//! Copies to the host.

use crate::backend::Backend;
use crate::device::{Device, dispatch};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::operand::{self, Input};
use gemm_dsl::sim::Element;

impl Device {
    /// Copies elements to the host, after all work launched before. Those of a
    /// [`Matrix`] or a view of one come row after row, those of a batch matrix after matrix, without what
    /// lies between them; its padding is in [`Matrix::buffer`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice), and
    /// [`Error::Driver`](crate::Error::Driver) for what earlier launches failed with.
    pub fn download<A: Input + ?Sized>(&self, array: &A) -> Result<Vec<A::Element>> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            let Some(shape) = array.shape else {
                return on.backend.read(&array.address, array.len);
            };
            let elements: Vec<A::Element> = on.backend.read(&array.address, shape.span() as u64)?;
            if shape.is_packed() {
                return Ok(elements);
            }
            Ok(shape.places().map(|at| elements[at]).collect())
        })
    }

    /// Copies a matrix to the host, row after row without the padding: as [`Device::download`].
    ///
    /// # Errors
    /// Those of [`Device::download`].
    pub fn download_matrix<T: Element>(&self, matrix: &Matrix<T>) -> Result<Vec<T>> {
        self.download(matrix)
    }
}
