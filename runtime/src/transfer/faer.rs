//! Copies between the device and matrices of the crate faer. Needs the feature `faer`.

use super::check_single;
use crate::backend::host_memory::room;
use crate::device::Device;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::matrix::Matrix;
use crate::shape::product;
use crate::view::AsMatrix;
use faer::{Mat, MatRef};
use gemm_dsl::target::element::Element;

impl Device {
    /// Copies a matrix of faer to the device, as a packed row-major matrix. The view may have any
    /// strides: it may be a transpose or a part. Needs the feature `faer`.
    ///
    /// The elements are first gathered row by row in host memory.
    ///
    /// ```
    /// use faer::mat;
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let host = mat![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0_f32]];
    /// let x = device.upload_faer(host.transpose())?;
    /// assert_eq!((x.rows(), x.cols()), (3, 2));
    /// assert_eq!(device.download_faer(&x.t())?, host);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * The errors of [`Device::upload_matrix`].
    /// * [`Error::OutOfMemory`] if the host has too little memory.
    pub fn upload_faer<T: Element>(&self, matrix: MatRef<'_, T>) -> Result<Matrix<T>> {
        let (rows, cols) = (matrix.nrows(), matrix.ncols());
        let mut elements = room(product(rows, cols)?)?;
        for (row, to) in elements.chunks_exact_mut(cols.max(1)).enumerate() {
            for (col, to) in to.iter_mut().enumerate() {
                *to = matrix[(row, col)];
            }
        }
        self.upload_matrix_of(&elements, rows, cols)
    }

    /// Copies a matrix or a view of the device to the host, as a matrix of faer. Needs the feature
    /// `faer`.
    ///
    /// # Errors
    /// * [`Error::WrongShape`] for a batch or a list.
    /// * The errors of [`Device::download`].
    pub fn download_faer<A: AsMatrix + ?Sized>(&self, matrix: &A) -> Result<Mat<A::Element>> {
        let view = matrix.as_matrix();
        check_single(&view, "a `Mat`")?;
        let (rows, cols) = (view.rows(), view.cols());
        let elements = self.download(matrix)?;
        Ok(Mat::from_fn(rows, cols, |row, col| elements[row * cols + col]))
    }
}
