//! Copies from a device to the host.

use crate::backend::{Backend, Place};
use crate::device::{Device, dispatch};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::{self, Input};
use crate::shape::Shape;
use gemm_dsl::target::element::Element;

/// Allocates host memory fallibly: a batch or a list may repeat one small matrix many times.
fn with_room<T>(len: usize) -> Result<Vec<T>> {
    let mut elements = Vec::new();
    elements.try_reserve_exact(len).map_err(|_| Error::OutOfMemory {
        bytes: (len as u64).saturating_mul(size_of::<T>() as u64),
        device: "the host".to_owned(),
    })?;
    Ok(elements)
}

impl Device {
    /// Copies elements to the host, after all earlier work of the device.
    ///
    /// The elements of a [`Matrix`] or a view are returned row by row, and a batch or a list matrix
    /// by matrix. Padding is left out. To include it, download [`Matrix::buffer`].
    ///
    /// # Errors
    /// * [`Error::WrongDevice`](crate::Error::WrongDevice) if the array belongs to another device.
    /// * [`Error::OutOfMemory`](crate::Error::OutOfMemory) if the host has too little memory. The
    ///   result may be larger than the array, since a batch or a list may repeat one matrix.
    /// * [`Error::Driver`](crate::Error::Driver) if an earlier launch failed.
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

    /// Copies a matrix to the host row by row, without padding, as [`Device::download`] does.
    ///
    /// # Errors
    /// Returns the errors of [`Device::download`].
    pub fn download_matrix<T: Element>(&self, matrix: &Matrix<T>) -> Result<Vec<T>> {
        self.download(matrix)
    }
}
