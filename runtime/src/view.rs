//! Views of matrices in device memory, without a copy.

mod operands;

pub use operands::{AsMatrix, AsMatrixMut, AsMatrixMutOf, AsMatrixOf, MatrixMutOf, MatrixOf};

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::operand::{Exclusive, Shared, Vector, VectorMut};
use crate::shape::{Batch, Shape, extent};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::ops::Range;

/// Read-only view of a matrix in device memory: rows, columns and a stride for each, in elements.
/// It may also be a batch of matrices at a fixed distance.
///
/// Build a view from a [`Buffer`](crate::Buffer), a [`BufferView`](crate::BufferView) or a `cudarc`
/// slice, or get one from [`Matrix::view`]. [`MatrixRef::part`] returns a rectangle of the view,
/// and [`MatrixRef::t`] the transpose. A view may be copied. A launch reads nothing outside the
/// array. [`Device::download`](crate::Device::download) copies the elements to the host, row by
/// row.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut, MatrixRef, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, pitched);
/// let device = Device::simulator();
/// let (a, b) = (device.upload(&[1.0; 64])?, device.upload(&[2.0; 64])?);
/// let mut c = device.alloc(64)?;
/// // The upper left quarter of an 8x8 matrix times the lower right quarter of another 8x8 matrix.
/// let a = MatrixRef::new(&a, 8, 8)?.part(0..4, 0..4)?;
/// let b = MatrixRef::new(&b, 8, 8)?.part(4..8, 4..8)?;
/// let mut c = MatrixMut::new(&mut c, 4, 4)?;
/// GEMM.call(&device).launch(&a, &b, &mut c)?;
/// assert_eq!(device.download(&c.part(1..2, 0..4)?)?, [8.0; 4]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// A view cannot be built from a matrix, which would discard its shape:
///
/// ```compile_fail,E0277
/// # let device = gemm_runtime::Device::simulator();
/// let matrix = device.alloc_matrix(8, 8)?;
/// let four = gemm_runtime::MatrixRef::new(&matrix.view().part(4..8, 4..8)?, 4, 4)?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct MatrixRef<'a, T: Element = f32> {
    pub(crate) elements: Shared<'a, T>,
    pub(crate) shape: Shape,
}

/// View of a matrix in device memory for writing: a [`MatrixRef`] with an exclusive borrow.
///
/// ```
/// use gemm_runtime::{Device, MatrixMut};
///
/// let device = Device::simulator();
/// let mut array = device.alloc(12)?;
/// let mut matrix = MatrixMut::pitched(&mut array, 3, 2, 4)?;
/// assert_eq!((matrix.rows(), matrix.cols(), matrix.row_stride()), (3, 2, 4));
/// assert_eq!((matrix.t().rows(), matrix.t().cols()), (2, 3));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// As with [`MatrixRef`], a view cannot be built from a matrix:
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
    /// Packed row-major matrix of the first `rows * cols` elements of an array.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) if the array has fewer elements.
    pub fn new<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        Self::pitched(array, rows, cols, cols)
    }

    /// Row-major matrix with a row stride of `pitch` elements.
    ///
    /// # Errors
    /// * [`Error::ShortPitch`](crate::Error::ShortPitch) if `pitch` is less than `cols`.
    /// * [`Error::WrongExtent`](crate::Error::WrongExtent) if the array is too short.
    pub fn pitched<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.input() else { unreachable!("Vector: it has no shape") };
        let shape = Shape::pitched("array", elements.len(), rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Batch of `count` packed row-major matrices, one directly after the other, for a kernel with
    /// `batch: strided`.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) if the array has fewer elements.
    pub fn batch<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        count: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let distance = extent(rows, cols, cols)?;
        Self::batch_apart(array, (count, distance), rows, cols, cols)
    }

    /// Batch of row-major matrices at a fixed distance.
    ///
    /// `apart` is the number of matrices, and the distance from the start of a matrix to the start
    /// of the next, in elements. `pitch` is the row stride of each matrix. Matrices may overlap:
    /// the distance may be 0 or less than a matrix.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixRef::pitched`].
    pub fn batch_apart<V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        apart: (usize, usize),
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.input() else { unreachable!("Vector: it has no shape") };
        let batch = Batch::new(apart.0, apart.1);
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Batch of row-major matrices along one to three axes, outermost first. An axis is the number
    /// of its matrices and the distance between the starts of neighbours, in elements. `pitch` is
    /// the row stride of each matrix.
    ///
    /// A distance of 0 repeats a matrix along the axis. [`batches`](crate::guide::batches) computes
    /// attention with such batches.
    ///
    /// ```
    /// use gemm_runtime::{Device, MatrixRef};
    ///
    /// let device = Device::simulator();
    /// // Two sequences of three tokens, with two heads of two elements each: (B, T, H, D).
    /// let x: Vec<f32> = (0..24u8).map(f32::from).collect();
    /// let x = device.upload(&x)?;
    /// let heads = MatrixRef::batch_axes(&x, [(2, 12), (2, 2)], 3, 2, 4)?;
    /// let second_head = [2.0, 3.0, 6.0, 7.0, 10.0, 11.0];
    /// assert_eq!(heads.count(), Some(4));
    /// assert_eq!(device.download(&heads)?[6..12], second_head);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`MatrixRef::pitched`].
    pub fn batch_axes<const N: usize, V: Vector<Element = T> + ?Sized>(
        array: &'a V,
        axes: [(usize, usize); N],
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.input() else { unreachable!("Vector: it has no shape") };
        let batch = Batch::along(axes);
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Rectangle of the matrix; for a batch, the same rectangle of each matrix.
    ///
    /// # Errors
    /// * [`Error::OutOfRange`](crate::Error::OutOfRange) if a range is not inside the matrix.
    /// * [`Error::PartOfList`](crate::Error::PartOfList) if the view is a list.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(Self { elements: self.elements, shape })
    }

    /// Transpose of the matrix, without a copy: rows and columns, and their strides, are exchanged.
    pub fn t(&self) -> Self {
        Self { elements: self.elements, shape: self.shape.transposed() }
    }

    /// Matrix of `rows` rows that all are the row of this matrix, without a copy: the row stride is
    /// 0. For a batch, each matrix repeats a row of its own.
    ///
    /// A `pitched` kernel reads it as any other matrix, for example as an `[m, n]` operand of an
    /// epilogue. Nothing can be written to it. For equal columns, transpose before and after:
    /// `column.t().broadcast_rows(cols)?.t()`.
    ///
    /// ```
    /// use gemm_runtime::{Device, Epilogue, MN, MatrixRef, epilogue, sgemm};
    ///
    /// const RESIDUAL: Epilogue<(MN,)> = epilogue!(|acc, residual[m, n]| acc + residual);
    ///
    /// let device = Device::simulator();
    /// let x = device.upload_matrix(&[1.0, 0.0, 0.0, 1.0], 2, 2)?;
    /// let row = device.upload(&[10.0, 20.0])?;
    /// let residual = MatrixRef::new(&row, 1, 2)?.broadcast_rows(2)?;
    /// let mut y = device.alloc_matrix(2, 2)?;
    /// sgemm(&x, &x, &mut y).epilogue(RESIDUAL).operands(&residual).run(&device)?;
    /// assert_eq!(device.download(&y)?, [11.0, 20.0, 10.0, 21.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SeveralRows`](crate::Error::SeveralRows) if this matrix does not have one row.
    pub fn broadcast_rows(&self, rows: usize) -> Result<Self> {
        match self.shape.rows {
            1 => Ok(Self { shape: Shape { rows, row_stride: 0, ..self.shape }, ..*self }),
            rows => Err(Error::SeveralRows { rows }),
        }
    }
}

impl<'a, T: Element> MatrixMut<'a, T> {
    /// Packed row-major matrix of the first `rows * cols` elements of an array.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) if the array has fewer elements.
    pub fn new<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        Self::pitched(array, rows, cols, cols)
    }

    /// Row-major matrix with a row stride of `pitch` elements.
    ///
    /// # Errors
    /// * [`Error::ShortPitch`](crate::Error::ShortPitch) if `pitch` is less than `cols`.
    /// * [`Error::WrongExtent`](crate::Error::WrongExtent) if the array is too short.
    pub fn pitched<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.output() else { unreachable!("Vector: it has no shape") };
        let shape = Shape::pitched("array", elements.len(), rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Batch of `count` packed row-major matrices, one directly after the other, for a kernel with
    /// `batch: strided`.
    ///
    /// # Errors
    /// [`Error::WrongExtent`](crate::Error::WrongExtent) if the array has fewer elements.
    pub fn batch<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        count: usize,
        rows: usize,
        cols: usize,
    ) -> Result<Self> {
        let distance = extent(rows, cols, cols)?;
        Self::batch_apart(array, (count, distance), rows, cols, cols)
    }

    /// Batch of matrices at a fixed distance, with the arguments of [`MatrixRef::batch_apart`]. A
    /// launch rejects matrices that share elements.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixMut::pitched`].
    pub fn batch_apart<V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        apart: (usize, usize),
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.output() else { unreachable!("Vector: it has no shape") };
        let batch = Batch::new(apart.0, apart.1);
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Batch of matrices along one to three axes, with the arguments of [`MatrixRef::batch_axes`].
    /// A launch rejects matrices that share elements.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixMut::pitched`].
    pub fn batch_axes<const N: usize, V: VectorMut<Element = T> + ?Sized>(
        array: &'a mut V,
        axes: [(usize, usize); N],
        rows: usize,
        cols: usize,
        pitch: usize,
    ) -> Result<Self> {
        let (elements, None) = array.output() else { unreachable!("Vector: it has no shape") };
        let batch = Batch::along(axes);
        let shape = Shape::batched("array", elements.len(), batch, rows, cols, pitch)?;
        Ok(Self { elements, shape })
    }

    /// Rectangle of the matrix; for a batch, the same rectangle of each matrix.
    ///
    /// # Errors
    /// Returns the errors of [`MatrixRef::part`].
    pub fn part(&mut self, rows: Range<usize>, cols: Range<usize>) -> Result<MatrixMut<'_, T>> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(MatrixMut { elements: self.elements.reborrow(), shape })
    }

    /// Rectangle of the matrix, as [`part`](Self::part) returns it, but with the lifetime of the
    /// view's own borrow.
    #[doc(hidden)]
    pub fn into_part(self, rows: Range<usize>, cols: Range<usize>) -> Result<Self> {
        let shape = part(&self.shape, self.elements.is_list(), rows, cols)?;
        Ok(Self { elements: self.elements, shape })
    }

    /// Views of the rows before `row` and of the others, for a kernel or two to write; for a batch,
    /// of the same rows of each matrix.
    ///
    /// A launch checks the memory ranges of its operands, from the first element to the last. So
    /// one launch cannot read the columns of one view and write those of the other. It can if the
    /// views are rows of a row-major matrix.
    ///
    /// ```
    /// use gemm_runtime::Device;
    ///
    /// let device = Device::simulator();
    /// let mut x = device.upload_matrix(&[1.0, 2.0, 3.0, 4.0], 2, 2)?;
    /// let mut view = x.view_mut();
    /// let (first, mut second) = view.split_at_row_mut(1)?;
    /// second.copy_from(&first)?;
    /// assert_eq!(device.download(&x)?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// The matrix cannot be used as long as one of the views is:
    ///
    /// ```compile_fail,E0499
    /// # let device = gemm_runtime::Device::simulator();
    /// let mut x = device.alloc_matrix(2, 2)?;
    /// let mut view = x.view_mut();
    /// let (_, mut second) = view.split_at_row_mut(1)?;
    /// view.fill(1.0)?;
    /// second.fill(2.0)?;
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// * [`Error::OutOfRange`](crate::Error::OutOfRange) if the matrix has fewer rows.
    /// * [`Error::PartOfList`](crate::Error::PartOfList) if the view is a list.
    /// * [`Error::Interleaved`](crate::Error::Interleaved) if the matrix is in a `cudarc` slice and
    ///   the parts are not one after the other in memory.
    pub fn split_at_row_mut(&mut self, row: usize) -> Result<(MatrixMut<'_, T>, MatrixMut<'_, T>)> {
        let is_list = self.elements.is_list();
        let (rows, cols) = (self.shape.rows, self.shape.cols);
        let first = part(&self.shape, is_list, 0..row, 0..cols)?;
        self.split(first, part(&self.shape, is_list, row..rows, 0..cols)?)
    }

    /// Views of the columns before `col` and of the others, as
    /// [`split_at_row_mut`](Self::split_at_row_mut) returns them for rows.
    ///
    /// # Errors
    /// Returns the errors of [`split_at_row_mut`](Self::split_at_row_mut).
    pub fn split_at_col_mut(&mut self, col: usize) -> Result<(MatrixMut<'_, T>, MatrixMut<'_, T>)> {
        let is_list = self.elements.is_list();
        let (rows, cols) = (self.shape.rows, self.shape.cols);
        let first = part(&self.shape, is_list, 0..rows, 0..col)?;
        self.split(first, part(&self.shape, is_list, 0..rows, col..cols)?)
    }

    /// Views of two parts without a common element.
    fn split(
        &mut self,
        first: Shape,
        second: Shape,
    ) -> Result<(MatrixMut<'_, T>, MatrixMut<'_, T>)> {
        if self.shape.overlaps_itself() {
            let named = |nth: usize| format!("matrix {nth} of the batch");
            return Err(Error::Overlap { written: named(1), other: named(0) });
        }
        // An empty part begins at offset 0, so that it is inside any array.
        let [first, second] = [first, second]
            .map(|part| if part.count() == 0 { Shape { start: 0, ..part } } else { part });
        let mid = match (first.count(), second.count()) {
            (0, _) => Some(0),
            (_, 0) => Some(self.elements.len()),
            _ => Some(second.start).filter(|mid| first.start + first.span() <= *mid),
        };
        let (one, other, start) = self.elements.split(mid).ok_or(Error::Interleaved)?;
        let second = Shape { start: second.start.saturating_sub(start), ..second };
        let (one, other) = (
            MatrixMut { elements: one, shape: first },
            MatrixMut { elements: other, shape: second },
        );
        Ok((one, other))
    }

    /// Transpose of the matrix, without a copy: rows and columns, and their strides, are exchanged.
    pub fn t(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { elements: self.elements.reborrow(), shape: self.shape.transposed() }
    }
}

/// Shape of a rectangle. A list has no rectangles, because its pointers refer to the first elements
/// of its matrices.
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

            /// Returns the number of matrices of a batch or a list, or `None` for a single matrix.
            pub fn count(&self) -> Option<usize> {
                self.shape.batch.map(|batch| batch.count())
            }

            /// Returns the number of rows.
            pub fn rows(&self) -> usize {
                self.shape.rows
            }

            /// Returns the number of columns.
            pub fn cols(&self) -> usize {
                self.shape.cols
            }

            /// Returns the distance between neighbours in a column, in elements.
            pub fn row_stride(&self) -> usize {
                self.shape.row_stride
            }

            /// Returns the distance between neighbours in a row, in elements.
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
    /// Returns a read-only view of the whole matrix.
    pub fn view(&self) -> MatrixRef<'_, T> {
        MatrixRef { elements: Shared::Buffer(self.buffer().whole()), shape: self.shape() }
    }

    /// Returns a read-only view of the transpose.
    pub fn t(&self) -> MatrixRef<'_, T> {
        self.view().t()
    }

    /// Returns a read-only view of a part: these rows and columns.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange) if a range is not within the matrix.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Result<MatrixRef<'_, T>> {
        self.view().part(rows, cols)
    }

    /// Returns a view of the whole matrix for writing.
    pub fn view_mut(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { elements: Exclusive::Buffer(self.buffer().whole()), shape: self.shape() }
    }
}
