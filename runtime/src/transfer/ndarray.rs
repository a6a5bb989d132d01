//! Copies between the device and arrays of the crate ndarray. Needs the feature `ndarray`.

use super::check_single;
use crate::backend::host_memory::room;
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::view::AsMatrix;
use gemm_dsl::target::element::Element;
use ndarray::{Array2, ArrayView, ArrayView1, ArrayView2, Dimension};
use std::borrow::Cow;

impl Device {
    /// Copies a vector of ndarray to the device. The view may have any stride. Needs the feature
    /// `ndarray`.
    ///
    /// # Errors
    /// * The errors of [`Device::upload`].
    /// * [`Error::OutOfMemory`] if the stride is not 1 and the host has too little memory.
    pub fn upload_array1<T: Element>(&self, array: ArrayView1<'_, T>) -> Result<Buffer<T>> {
        self.upload_of(&in_rows(&array)?)
    }

    /// Copies a matrix of ndarray to the device, as a packed row-major matrix. The view may have
    /// any strides: it may be a transpose or a part. Needs the feature `ndarray`.
    ///
    /// The elements of a packed row-major view are uploaded from their place. Others are first
    /// gathered row by row in host memory.
    ///
    /// ```
    /// use gemm_runtime::Device;
    /// use ndarray::array;
    ///
    /// let device = Device::simulator();
    /// let host = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    /// let x = device.upload_array2(host.t())?;
    /// assert_eq!((x.rows(), x.cols()), (3, 2));
    /// assert_eq!(device.download_array2(&x.t())?, host);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * The errors of [`Device::upload_matrix`].
    /// * [`Error::OutOfMemory`] if the view is not packed and the host has too little memory.
    pub fn upload_array2<T: Element>(&self, array: ArrayView2<'_, T>) -> Result<Matrix<T>> {
        let (rows, cols) = array.dim();
        self.upload_matrix_of(&in_rows(&array)?, rows, cols)
    }

    /// Copies a matrix or a view of the device to the host, as a row-major array of ndarray. Needs
    /// the feature `ndarray`.
    ///
    /// # Errors
    /// * [`Error::WrongShape`] for a batch or a list.
    /// * The errors of [`Device::download`].
    pub fn download_array2<A: AsMatrix + ?Sized>(&self, matrix: &A) -> Result<Array2<A::Element>> {
        let view = matrix.as_matrix();
        check_single(&view, "an `Array2`")?;
        let elements = self.download(matrix)?;
        Array2::from_shape_vec((view.rows(), view.cols()), elements)
            .map_err(|error| Error::Internal(format!("the elements of a matrix: {error}")))
    }
}

/// Elements of an array, row by row. They are borrowed if they are in this order in memory.
fn in_rows<'a, T: Element, D: Dimension>(array: &'a ArrayView<'_, T, D>) -> Result<Cow<'a, [T]>> {
    if let Some(elements) = array.as_slice() {
        return Ok(Cow::Borrowed(elements));
    }
    let mut elements = room(array.len())?;
    elements.iter_mut().zip(array.iter()).for_each(|(to, element)| *to = *element);
    Ok(Cow::Owned(elements))
}
