//! Views of matrices: parts of what lies in device memory, without a copy.

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::{Exclusive, Input, Output, Shared, Vector, VectorMut, input, output};
use crate::shape::{Batch, Shape, extent};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::ops::Range;

/// A matrix in device memory to be read: rows, columns, and a distance in elements between
/// neighbours along each. Or a batch of them, each a fixed distance behind the one before it.
///
/// It is made of a [`Buffer`](crate::Buffer), a view of one or a `cudarc` slice, or is
/// [`Matrix::view`]; [`MatrixRef::part`] is a rectangle of it and [`MatrixRef::t`] its transpose.
/// A launch reads nothing outside what the view was made of.
/// [`Device::download`](crate::Device::download) gives its elements, row after row.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, pitched);
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0; 64])?, device.upload(&[2.0; 64])?);
/// let mut c = device.alloc(64)?;
/// // The upper left quarter of a matrix of 8 rows of 8, times the lower right one.
/// let a = MatrixRef::new(&a, 8, 8)?.part(0..4, 0..4)?;
/// let b = MatrixRef::new(&b, 8, 8)?.part(4..8, 4..8)?;
/// let mut c = MatrixMut::new(&mut c, 4, 4)?;
/// GEMM.call(&device).launch(&a, &b, &mut c)?;
/// assert_eq!(device.download(&c.part(1..2, 0..4)?)?, [8.0; 4]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// It is not made of a matrix, whose shape would be lost:
///
/// ```compile_fail,E0277
/// # let device = gemm_runtime::Device::simulator();
/// let matrix = device.alloc_matrix(8, 8)?;
/// let four = gemm_runtime::MatrixRef::new(&matrix.view().part(4..8, 4..8)?, 4, 4)?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct MatrixRef<'a, T: Element = f32> {
    pub(crate) elements: Shared<'a, T>,
    pub(crate) shape: Shape,
}

/// A matrix in device memory to be written: as [`MatrixRef`], exclusively borrowed.
///
/// ```compile_fail,E0277
/// # let device = gemm_runtime::Device::simulator();
/// let mut matrix = device.alloc_matrix(8, 8)?;
/// let mut part = matrix.view_mut();
/// let four = gemm_runtime::MatrixMut::new(&mut part.part(4..8, 4..8)?, 4, 4)?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct MatrixMut<'a, T: Element = f32> {
    pub(crate) elements: Exclusive<'a, T>,
    pub(crate) shape: Shape,
}

impl<'a, T: Element> MatrixRef<'a, T> {
    /// The first `rows * cols` elements of an array as a matrix, row after row.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array has fewer elements.
    pub fn new<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        Self::pitched(array, rows, cols, cols)
    }

    /// Rows of `cols` elements, one every `pitch` elements of an array.
    ///
    /// # Errors
    /// [`Error::ShortPitch`](crate::Error::ShortPitch) where rows would overlap,
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array is too short.
    pub fn pitched<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.input() else { unreachable!("a vector has no shape") };
        let shape = Shape::pitched("array", elements.len(), rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// So many packed matrices one after the other, for a kernel with `batch: strided`.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array has fewer elements.
    pub fn batch<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        count: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let distance = extent(rows, cols, cols)?;
        Self::batch_apart(array, (count, distance), rows, cols, cols)
    }

    /// A batch of matrices, `apart` the number of matrices and the distance in elements from each to the next, with the
    /// pitch of the rows of each. Distances may be 0, or less than a matrix.
    ///
    /// # Errors
    /// As [`MatrixRef::pitched`].
    pub fn batch_apart<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        apart: (usize, usize),
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.input() else { unreachable!("a vector has no shape") };
        let batch = Batch { count: apart.0, distance: apart.1 };
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// A rectangle of the matrix, of a batch the same one of each.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), and [`Error::PartOfList`](crate::Error::PartOfList)
    /// for a list.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(Self { elements: self.elements.copy(), shape })
    }

    /// The transpose.
    pub fn t(&self) -> Self {
        Self { elements: self.elements.copy(), shape: self.shape.transposed() }
    }
}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// The first `rows * cols` elements of an array as a matrix, row after row.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array has fewer elements.
    pub fn new<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        Self::pitched(array, rows, cols, cols)
    }

    /// Rows of `cols` elements, one every `pitch` elements of an array.
    ///
    /// # Errors
    /// [`Error::ShortPitch`](crate::Error::ShortPitch) where rows would overlap,
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array is too short.
    pub fn pitched<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.output() else { unreachable!("a vector has no shape") };
        let shape = Shape::pitched("array", elements.len(), rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// So many packed matrices one after the other, for a kernel with `batch: strided`.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) where the array has fewer elements.
    pub fn batch<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        count: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let distance = extent(rows, cols, cols)?;
        Self::batch_apart(array, (count, distance), rows, cols, cols)
    }

    /// A batch of matrices, as [`MatrixRef::batch_apart`]. A launch refuses those that share elements.
    ///
    /// # Errors
    /// As [`MatrixMut::pitched`].
    pub fn batch_apart<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        apart: (usize, usize),
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.output() else { unreachable!("a vector has no shape") };
        let batch = Batch { count: apart.0, distance: apart.1 };
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// A rectangle of the matrix, of a batch the same one of each.
    ///
    /// # Errors
    /// As [`MatrixRef::part`].
    pub fn part(&mut self, rows: Range<usize>, cols: Range<usize>) -> Result<MatrixMut<'_, T>> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(MatrixMut { elements: self.elements.reborrow(), shape })
    }

    /// The same as [`part`](Self::part), for as long as the matrix itself is borrowed.
    #[doc(hidden)]
    pub fn into_part(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(Self { elements: self.elements, shape })
    }

    /// The transpose.
    pub fn t(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { elements: self.elements.reborrow(), shape: self.shape.transposed() }
    }
}

/// The shape of a rectangle. What a list points to are the first elements of its matrices.
fn part(shape: &Shape, is_list: bool, rows: Range<usize>, cols: Range<usize>) -> Result<Shape> {
    if is_list {
        return Err(Error::PartOfList);
    }
    shape.part(rows, cols)
}

macro_rules! extents {
    ($view:ident) => {
        impl<T: Element> $view<'_, T> {
            #[doc(hidden)]
            pub fn shape(&self) -> Shape {
                self.shape
            }

            pub(crate) fn is_list(&self) -> bool {
                self.elements.is_list()
            }

            /// The number of matrices of a batch or a list.
            pub fn count(&self) -> Option<usize> {
                self.shape.batch.map(|batch| batch.count)
            }

            /// The number of rows.
            pub fn rows(&self) -> usize {
                self.shape.rows
            }

            /// The number of columns.
            pub fn cols(&self) -> usize {
                self.shape.cols
            }

            /// The distance between neighbours in a column, in elements.
            pub fn row_stride(&self) -> usize {
                self.shape.row_stride
            }

            /// The distance between neighbours in a row, in elements.
            pub fn col_stride(&self) -> usize {
                self.shape.col_stride
            }
        }

        impl<T: Element> fmt::Debug for $view<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($view))
                    .field("shape", &self.shape)
                    .finish_non_exhaustive()
            }
        }
    };
}
extents!(MatrixRef);
extents!(MatrixMut);

impl<T: Element> Matrix<T> {
    /// The matrix to be read.
    pub fn view(&self) -> MatrixRef<'_, T> {
        MatrixRef { elements: Shared::Buffer(self.buffer().whole()), shape: self.shape() }
    }

    /// The matrix to be written.
    pub fn view_mut(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { elements: Exclusive::Buffer(self.buffer().whole()), shape: self.shape() }
    }
}

/// A matrix on a device with its shape, to be read: [`Matrix`], [`MatrixRef`] or, of many, a
/// [`MatrixList`](crate::MatrixList).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no matrix on a device",
    note = "an array there gets its shape by `MatrixRef::new(&array, rows, cols)?`"
)]
pub trait AsMatrix: Input {
    /// The view of it.
    fn as_matrix(&self) -> MatrixRef<'_, Self::Element>;
}

/// An [`AsMatrix`] of elements of that type. One bound, so that what is none gets one message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no matrix of `{T}` on a device",
    label = "no matrix of `{T}` on a device",
    note = "an array there gets its shape by `MatrixRef::new(&array, rows, cols)?`",
    note = "elements of the host go to a device by `device.upload_matrix(&elements, rows, cols)?`"
)]
pub trait MatrixOf<T: Element>: AsMatrix<Element = T> {}

impl<T: Element> MatrixOf<T> for Matrix<T> {}
impl<T: Element> MatrixOf<T> for MatrixRef<'_, T> {}

/// A matrix on a device with its shape, to be written: [`Matrix`], [`MatrixMut`] or, of many, a
/// [`MatrixListMut`](crate::MatrixListMut).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no matrix on a device to be written",
    note = "an array there gets its shape by `MatrixMut::new(&mut array, rows, cols)?`"
)]
pub trait AsMatrixMut: Output {
    /// The view of it.
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, Self::Element>;
}

impl<T: Element> AsMatrix for Matrix<T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        self.view()
    }
}

impl<T: Element> AsMatrix for MatrixRef<'_, T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        MatrixRef { elements: self.elements.copy(), shape: self.shape }
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

input!(MatrixRef<'_, T>: |view| (view.elements.copy(), Some(view.shape)));
input!(MatrixMut<'_, T>: |view| (view.elements.shared(), Some(view.shape)));
output!(MatrixMut<'_, T>: |view| (view.elements.reborrow(), Some(view.shape)));
input!(Matrix<T>: |matrix| (Shared::Buffer(matrix.buffer().whole()), Some(matrix.shape())));
output!(Matrix<T>: |matrix| (Exclusive::Buffer(matrix.buffer().whole()), Some(matrix.shape())));
