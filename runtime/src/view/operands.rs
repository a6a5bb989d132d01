//! Matrix operands of launches.

use super::{MatrixMut, MatrixRef};
use crate::matrix::Matrix;
use crate::operand::{Exclusive, Input, Output, Shared, Written, input, output};
use crate::shape::Shape;
use gemm_dsl::target::element::Element;

/// Matrix operand that a launch reads: [`Matrix`], [`MatrixRef`], [`MatrixList`](crate::MatrixList)
/// or [`SplitMatrix`](crate::SplitMatrix).
///
/// ```
/// use gemm_runtime::bounds::AsMatrix;
/// use gemm_runtime::Device;
///
/// fn elements(matrix: &impl AsMatrix) -> usize {
///     let view = matrix.as_matrix();
///     view.rows() * view.cols()
/// }
///
/// let device = Device::simulator();
/// let matrix = device.alloc_matrix(3, 5)?;
/// assert_eq!(elements(&matrix), 15);
/// assert_eq!(elements(&matrix.view().part(0..2, 0..2)?), 4);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix on a device",
    note = "give an array on a device its shape with `MatrixRef::new(&array, rows, cols)?`"
)]
pub trait AsMatrix: Input {
    /// Returns a view of the matrix.
    fn as_matrix(&self) -> MatrixRef<'_, Self::Element>;
}

/// [`AsMatrix`] with elements of type `T`. It is a single bound, so that a wrong argument gets one
/// compile error.
///
/// ```
/// use gemm_runtime::bounds::MatrixOf;
/// use gemm_runtime::{Device, Error};
///
/// fn corner(device: &Device, matrix: &impl MatrixOf<f32>) -> Result<Vec<f32>, Error> {
///     device.download(&matrix.as_matrix().part(0..1, 0..1)?)
/// }
///
/// let device = Device::simulator();
/// let matrix = device.upload_matrix(&[7.0, 1.0, 2.0, 3.0], 2, 2)?;
/// assert_eq!(corner(&device, &matrix)?, [7.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix of `{T}` on a device",
    label = "not a matrix of `{T}` on a device",
    note = "give an array on a device its shape with `MatrixRef::new(&array, rows, cols)?`",
    note = "upload elements of the host with `device.upload_matrix(&elements, rows, cols)?`"
)]
pub trait MatrixOf<T: Element>: AsMatrix<Element = T> {}

impl<T: Element> MatrixOf<T> for Matrix<T> {}
impl<T: Element> MatrixOf<T> for MatrixRef<'_, T> {}

/// [`AsMatrix`] with elements of type `T`, as a single bound. Unlike [`MatrixOf`], it includes
/// lists of matrices.
///
/// ```
/// use gemm_runtime::bounds::AsMatrixOf;
/// use gemm_runtime::{Device, Error, Matrix, sgemm};
///
/// fn square(device: &Device, a: &impl AsMatrixOf<f32>, rows: usize) -> Result<Matrix, Error> {
///     let mut c = device.alloc_matrix(rows, rows)?;
///     sgemm(a, a, &mut c).run(device)?;
///     Ok(c)
/// }
///
/// let device = Device::simulator();
/// let a = device.upload_matrix(&[2.0, 0.0, 0.0, 3.0], 2, 2)?;
/// assert_eq!(device.download(&square(&device, &a, 2)?)?, [4.0, 0.0, 0.0, 9.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix of `{T}` on a device",
    label = "not a matrix of `{T}` on a device",
    note = "give an array on a device its shape with `MatrixRef::new(&array, rows, cols)?`",
    note = "GEMMs read and write elements of type `f32` only"
)]
pub trait AsMatrixOf<T: Element>: AsMatrix<Element = T> {}

impl<T: Element> AsMatrixOf<T> for Matrix<T> {}
impl<T: Element> AsMatrixOf<T> for MatrixRef<'_, T> {}

/// Matrix operand that a launch writes: [`Matrix`], [`MatrixMut`] or
/// [`MatrixListMut`](crate::MatrixListMut). [`AsMatrixMutOf`] has an example.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix on a device to be written",
    note = "give an array on a device its shape with `MatrixMut::new(&mut array, rows, cols)?`"
)]
pub trait AsMatrixMut: Output {
    /// Returns a view of the matrix for writing.
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, Self::Element>;
}

/// [`AsMatrixMut`] with elements of type `T`. It is a single bound, so that a wrong argument gets
/// one compile error.
///
/// ```
/// use gemm_runtime::bounds::AsMatrixMutOf;
/// use gemm_runtime::{Device, Error, sgemm};
///
/// fn squares(device: &Device, c: &mut impl AsMatrixMutOf<f32>) -> Result<(), Error> {
///     let a = device.upload_matrix(&[2.0, 0.0, 0.0, 3.0], 2, 2)?;
///     sgemm(&a, &a, c).run(device)?;
///     Ok(())
/// }
///
/// let device = Device::simulator();
/// let mut c = device.alloc_matrix(2, 2)?;
/// squares(&device, &mut c)?;
/// assert_eq!(device.download(&c)?, [4.0, 0.0, 0.0, 9.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix of `{T}` to be written on a device",
    label = "not a matrix of `{T}` to be written",
    note = "give an array on a device its shape with `MatrixMut::new(&mut array, rows, cols)?`",
    note = "GEMMs read and write elements of type `f32` only"
)]
pub trait AsMatrixMutOf<T: Element>: AsMatrixMut<Element = T> {}

impl<T: Element> AsMatrixMutOf<T> for Matrix<T> {}
impl<T: Element> AsMatrixMutOf<T> for MatrixMut<'_, T> {}

/// [`AsMatrixMut`] with elements of type `T`, as a single bound. Unlike [`AsMatrixMutOf`], it
/// excludes lists of matrices.
///
/// ```
/// use gemm_runtime::bounds::MatrixMutOf;
/// use gemm_runtime::{Device, Error};
///
/// fn clear(matrix: &mut impl MatrixMutOf<f32>) -> Result<(), Error> {
///     matrix.as_matrix_mut().fill(0.0)
/// }
///
/// let device = Device::simulator();
/// let mut matrix = device.upload_matrix(&[7.0, 1.0], 1, 2)?;
/// clear(&mut matrix)?;
/// assert_eq!(device.download(&matrix)?, [0.0; 2]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a matrix of `{T}` to be written on a device",
    label = "not a matrix of `{T}` to be written",
    note = "give an array on a device its shape with `MatrixMut::new(&mut array, rows, cols)?`"
)]
pub trait MatrixMutOf<T: Element>: AsMatrixMutOf<T> + Written<T> {}

impl<T: Element> MatrixMutOf<T> for Matrix<T> {}
impl<T: Element> MatrixMutOf<T> for MatrixMut<'_, T> {}
impl<T: Element> Written<T> for Matrix<T> {}
impl<T: Element> Written<T> for MatrixMut<'_, T> {}

impl<T: Element> AsMatrix for Matrix<T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        self.view()
    }
}

impl<T: Element> AsMatrix for MatrixRef<'_, T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        *self
    }
}

impl<T: Element> AsMatrixMut for Matrix<T> {
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, T> {
        self.view_mut()
    }
}

impl<T: Element> AsMatrixMut for MatrixMut<'_, T> {
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { elements: self.elements.reborrow(), shape: self.shape }
    }
}

input!(MatrixRef<'_, T>: |view| (view.elements, Some(view.shape)));
input!(MatrixMut<'_, T>: |view| (view.elements.shared(), Some(view.shape)));
output!(MatrixMut<'_, T>: |view| (view.elements.reborrow(), Some(view.shape)));
input!(Matrix<T>: |matrix| (Shared::Buffer(matrix.buffer().whole()), Some(matrix.shape())));
output!(Matrix<T>: |matrix| (Exclusive::Buffer(matrix.buffer().whole()), Some(matrix.shape())));
