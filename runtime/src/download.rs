//! Copies to the host.

use crate::backend::{Backend, Place};
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::{self, Input};
use crate::shape::Shape;
use gemm_dsl::target::element::Element;

/// Room on the host. A matrix that lies on the device once may be many of a batch or of a list.
fn with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).map_err(|_| Error::OutOfMemory {
        bytes: (len as u64).saturating_mul(size_of::<T>() as u64),
        device: "the host".to_owned(),
    })?;
    Ok(elements)
}

impl Device {
    /// Copies elements to the host, after all work launched before. Those of a
    /// [`Matrix`] or a view of one come row after row, those of a batch or a list matrix after matrix, without what
    /// lies between them; its padding is in [`Matrix::buffer`].
    ///
    /// # Errors
    /// [`Error::WrongDevice`](crate::Error::WrongDevice); [`Error::OutOfMemory`](crate::Error::OutOfMemory)
    /// where the host has no room for all matrices of a batch or a list that are one in memory; and [`Error::Driver`](crate::Error::Driver) for what earlier launches failed with.
    pub fn download<A: Input + ?Sized>(&self, array: &A) -> Result<Vec<A::Element>> {
        dispatch!(self, on => {
            let array = operand::read(on, array, "array")?;
            let shaped = |address, shape: Shape| -> Result<Vec<A::Element>> {
                let elements: Vec<A::Element> = on.backend.read(address, shape.span() as u64)?;
                if shape.is_packed() {
                    return Ok(elements);
                }
                let mut ordered = with_room(shape.count())?;
                ordered.extend(shape.places().map(|at| elements[at]));
                Ok(ordered)
            };
            match (&array.place, array.shape) {
                (Place::One { address, len }, None) => on.backend.read(address, *len),
                (Place::One { address, .. }, Some(shape)) => shaped(address, shape),
                (Place::List(list), shape) => {
                    let shape = Shape { batch: None, ..shape.unwrap_or(Shape::packed(0, 0)) };
                    let mut all = with_room(list.arrays.len().saturating_mul(shape.count()))?;
                    for address in &list.arrays {
                        all.extend(shaped(address, shape)?);
                    }
                    Ok(all)
                }
            }
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
