//! Lists of matrices at arbitrary addresses. Kernels read the addresses from an array of pointers.

use crate::backend::gpu::UseLog;
use crate::backend::{ArrayList, Backend, Place};
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use crate::kernel_arg::Address;
use crate::operand::{
    self, Exclusive, Input, ListArrays, LocatedOperand, Output, Shared, SharedSlices, input,
    listed_uses, output,
};
use crate::shape::{Batch, Shape};
use crate::view::{AsMatrix, AsMatrixMut, AsMatrixMutOf, AsMatrixOf, MatrixMut, MatrixRef};
use cudarc::driver::{CudaView, CudaViewMut};
use gemm_dsl::ir::contract::{Region, united};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// List of matrices of one shape in device memory for reading, one for each GEMM of a kernel with
/// `batch: pointers`.
///
/// The matrices may be anywhere in memory, and a list may contain a matrix twice. The list borrows
/// the views that it is built from, and copies their addresses to the device. You may pass it to
/// any number of launches, and drop it as soon as the last launch has returned. It implements
/// [`AsMatrix`], and its transpose lists the transposes.
///
/// ```
/// use gemm_runtime::{Device, MatrixList, MatrixListMut, SgemmKernel, sgemm_kernel};
///
/// const GEMM: SgemmKernel =
///     sgemm_kernel!(layout: nt, tile: 16x16x8, thread: 4x4, pitched, batch: pointers);
/// let device = Device::simulator();
/// let a = [1.0, 2.0, 3.0].map(|value| device.upload_matrix(&[value; 4], 2, 2));
/// let a = a.into_iter().collect::<Result<Vec<_>, _>>()?;
/// let b = device.upload_matrix(&[1.0, 0.0, 0.0, 1.0], 2, 2)?;
/// let (mut first, mut second) = (device.alloc_matrix(2, 2)?, device.alloc_matrix(2, 2)?);
///
/// let (a, b) = (MatrixList::new(&device, [&a[2], &a[0]])?, MatrixList::new(&device, [&b, &b])?);
/// let mut c = MatrixListMut::new(&device, [&mut first, &mut second])?;
/// GEMM.call(&device).launch(&a, &b.t(), &mut c)?;
/// assert_eq!(device.download(&c)?, [3.0, 3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
///
/// While the device's stream is captured into a graph, no list can be built.
pub struct MatrixList<'a, T: Element = f32> {
    arrays: ListArrays,
    cuda: Vec<CudaView<'a, T>>,
    shape: Shape,
    borrowed: PhantomData<&'a T>,
}

/// List of matrices in device memory for writing: a [`MatrixList`] with exclusive borrows. No two
/// matrices share elements.
pub struct MatrixListMut<'a, T: Element = f32> {
    arrays: ListArrays,
    cuda: Vec<CudaViewMut<'a, T>>,
    shape: Shape,
    borrowed: PhantomData<&'a mut T>,
}

impl<'a, T: Element> MatrixList<'a, T> {
    /// List of matrices on `device`.
    ///
    /// # Errors
    /// * [`Error::Unlike`] if a matrix differs from the first in shape or strides.
    /// * [`Error::BatchInList`] if a matrix is a batch or a list.
    /// * [`Error::WrongDevice`] if a matrix belongs to another device.
    /// * The errors of [`Device::upload`], for the array of pointers.
    pub fn new<M: AsMatrixOf<T> + ?Sized + 'a>(
        device: &Device,
        matrices: impl IntoIterator<Item = &'a M>,
    ) -> Result<Self> {
        Self::from_views(device, matrices.into_iter().map(M::as_matrix).collect())
    }

    pub(crate) fn from_views(device: &Device, views: Vec<MatrixRef<'a, T>>) -> Result<Self> {
        let shape = alike(views.iter().map(MatrixRef::shape))?;
        let arrays = dispatch!(device, on => {
            let (mut places, mut uses) = (Vec::with_capacity(views.len()), Vec::new());
            for (nth, view) in views.iter().enumerate() {
                uses.extend(listed_uses(on, &view.elements, &named(nth))?);
                places.push(place(operand::read(on, view, &named(nth))?)?);
            }
            list::<T, _>(on, places, uses, shape)
        })?;
        let cuda = |view: MatrixRef<'a, T>| match view.elements {
            Shared::Cuda(slice) => Some(slice.view()),
            Shared::Buffer(_) | Shared::List(..) => None,
        };
        let cuda = views.into_iter().filter_map(cuda).collect();
        Ok(Self { arrays, cuda, shape, borrowed: PhantomData })
    }

    /// Returns the list of the transposes.
    pub fn t(&self) -> MatrixRef<'_, T> {
        self.as_matrix().t()
    }
}

impl<'a, T: Element> MatrixListMut<'a, T> {
    /// List of matrices on `device`.
    ///
    /// # Errors
    /// * [`Error::Overlap`] if two matrices share elements.
    /// * The errors of [`MatrixList::new`].
    pub fn new<M: AsMatrixMutOf<T> + ?Sized + 'a>(
        device: &Device,
        matrices: impl IntoIterator<Item = &'a mut M>,
    ) -> Result<Self> {
        Self::from_views(device, matrices.into_iter().map(M::as_matrix_mut).collect())
    }

    pub(crate) fn from_views(device: &Device, mut views: Vec<MatrixMut<'a, T>>) -> Result<Self> {
        let shape = alike(views.iter().map(MatrixMut::shape))?;
        let arrays = dispatch!(device, on => {
            let (mut places, mut uses) = (Vec::with_capacity(views.len()), Vec::new());
            for (nth, view) in views.iter_mut().enumerate() {
                uses.extend(listed_uses(on, &view.elements.shared(), &named(nth))?);
                places.push(place(operand::write(on, view, &named(nth))?)?);
            }
            written::<T, _>(on, places, uses, shape)
        })?;
        let cuda = |view: MatrixMut<'a, T>| match view.elements {
            Exclusive::Cuda(view) => Some(view),
            Exclusive::Buffer(_) | Exclusive::List(..) => None,
        };
        let cuda = views.into_iter().filter_map(cuda).collect();
        Ok(Self { arrays, cuda, shape, borrowed: PhantomData })
    }

    /// List of rectangles of one matrix. `extents` are the rows and columns of every rectangle.
    /// `firsts` has the row and the column of each rectangle's first element.
    ///
    /// The constructor compares each pair of rectangles whose memory ranges overlap. In a row-major
    /// matrix, the ranges of all rectangles in the same rows overlap, so a list of single columns
    /// needs a quadratic number of comparisons.
    ///
    /// # Errors
    /// * [`Error::OutOfRange`] if a rectangle is not inside the matrix.
    /// * The errors of [`MatrixListMut::new`].
    pub fn parts<M: AsMatrixMutOf<T> + ?Sized>(
        device: &Device,
        matrix: &'a mut M,
        extents: (usize, usize),
        firsts: impl IntoIterator<Item = (usize, usize)>,
    ) -> Result<Self> {
        let ((rows, cols), mut view) = (extents, matrix.as_matrix_mut());
        let (whole, nested) = (view.shape(), view.shape().batch.is_some());
        if nested {
            return Err(Error::BatchInList { nth: 0 });
        }
        let part = |(row, col): (usize, usize)| {
            whole.part(row..row.saturating_add(rows), col..col.saturating_add(cols))
        };
        let parts = firsts.into_iter().map(part).collect::<Result<Vec<Shape>>>()?;
        // An empty list has the shape of the rectangles, too.
        let shape = Shape { rows, cols, ..alike(parts.iter().copied())? };
        let arrays = dispatch!(device, on => {
            let uses = listed_uses(on, &view.elements.shared(), "matrix")?.into_iter().collect();
            let (address, len) = place(operand::write(on, &mut view, "matrix")?)?;
            let mut places = Vec::with_capacity(parts.len());
            for part in &parts {
                // An empty part has offset 0.
                let start = part.start.saturating_sub(whole.start) as u64;
                let left = len.saturating_sub(start);
                let at = address.part(start, left);
                let at = at.unwrap_or_else(|| unreachable!("Shape::part: it is inside"));
                places.push((at, left));
            }
            written::<T, _>(on, places, uses, shape)
        })?;
        let cuda = match view.elements {
            Exclusive::Cuda(view) => vec![view],
            Exclusive::Buffer(_) | Exclusive::List(..) => Vec::new(),
        };
        Ok(Self { arrays, cuda, shape, borrowed: PhantomData })
    }

    /// Returns the list of the transposes.
    pub fn t(&mut self) -> MatrixMut<'_, T> {
        let MatrixMut { elements, shape } = self.as_matrix_mut();
        MatrixMut { elements, shape: shape.transposed() }
    }
}

/// Name of a matrix of a list in messages.
fn named(nth: usize) -> String {
    format!("matrix {nth} of the list")
}

/// Common shape of the matrices, with their number as the batch.
fn alike(shapes: impl ExactSizeIterator<Item = Shape>) -> Result<Shape> {
    let count = shapes.len();
    let mut first: Option<Shape> = None;
    for (nth, shape) in shapes.enumerate() {
        if shape.batch.is_some() {
            return Err(Error::BatchInList { nth });
        }
        let Some(first) = first else {
            first = Some(shape);
            continue;
        };
        // A stride does not matter along an extent of 1.
        let elements = shape.count() > 0;
        let [rows, cols] = [shape.rows, shape.cols].map(|extent| elements && extent > 1);
        for (what, found, expected, matters) in [
            ("the number of rows", shape.rows, first.rows, true),
            ("the number of columns", shape.cols, first.cols, true),
            ("the stride between rows", shape.row_stride, first.row_stride, rows),
            ("the stride between columns", shape.col_stride, first.col_stride, cols),
        ] {
            if matters && found != expected {
                return Err(Error::Unlike { nth, what, found, expected });
            }
        }
    }
    let of_one = first.unwrap_or(Shape::packed(0, 0));
    Ok(Shape { start: 0, batch: Some(Batch::new(count, 0)), ..of_one })
}

/// Address of a matrix, and the number of elements from this address on.
fn place<B: Backend>(resolved: LocatedOperand<'_, B>) -> Result<(B::Address, u64)> {
    match &resolved.place {
        Place::One { address, len } => Ok((address.clone(), *len)),
        Place::List(_) => unreachable!("alike: the matrix is not a batch"),
    }
}

/// List of the arrays at these addresses.
fn list<T: Element, B: Backend>(
    on: On<'_, B>,
    places: Vec<(B::Address, u64)>,
    mut uses: Vec<Arc<UseLog>>,
    shape: Shape,
) -> Result<ListArrays> {
    // Many matrices may be in one buffer.
    uses.sort_unstable_by_key(Arc::as_ptr);
    uses.dedup_by(|one, other| Arc::ptr_eq(one, other));
    let span = shape.span() as u64;
    let memory = united(places.iter().map(|(address, _)| address.range(span)).collect());
    let stretch =
        |(address, len): &(B::Address, u64)| Region { address: address.bytes(), len: *len };
    let stretches = places.iter().map(stretch).collect();
    let arrays: Vec<B::Address> = places.into_iter().map(|(address, _)| address).collect();
    let pointers = on.backend.pointers(&arrays)?;
    Ok(ListArrays::new(on, ArrayList { elem: T::ELEM, arrays, pointers, stretches, uses, memory }))
}

/// List of arrays to be written, as [`list`] builds it. Checks that no two matrices share elements.
fn written<T: Element, B: Backend>(
    on: On<'_, B>,
    places: Vec<(B::Address, u64)>,
    uses: Vec<Arc<UseLog>>,
    shape: Shape,
) -> Result<ListArrays> {
    let span = shape.span() as u64;
    let size = u64::from(T::ELEM.size());
    let mut starts: Vec<(u64, usize)> = Vec::with_capacity(places.len());
    for (nth, (address, _)) in places.iter().enumerate() {
        let range = address.range(span);
        if !range.is_empty() {
            starts.push((range.start, nth));
        }
    }
    starts.sort_unstable();
    for (i, &(start, nth)) in starts.iter().enumerate() {
        // Matrices that begin before this one ends.
        let inside = starts[i + 1..].iter().take_while(|(other, _)| *other - start < span * size);
        for &(other, of) in inside {
            if shape.overlaps_shifted((other - start) / size) {
                let (written, other) = (named(nth.max(of)), named(nth.min(of)));
                return Err(Error::Overlap { written, other });
            }
        }
    }
    list::<T, B>(on, places, uses, shape)
}

macro_rules! common {
    ($list:ident: $borrow:ident) => {
        impl<T: Element> $list<'_, T> {
            /// Returns the number of matrices.
            pub fn len(&self) -> usize {
                self.shape.batch().count()
            }

            /// Returns true if the list is empty.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of rows of each matrix. For an empty list, this is the number
            /// passed to [`MatrixListMut::parts`], or 0.
            pub fn rows(&self) -> usize {
                self.shape.rows
            }

            /// Returns the number of columns of each matrix. For an empty list, this is the number
            /// passed to [`MatrixListMut::parts`], or 0.
            pub fn cols(&self) -> usize {
                self.shape.cols
            }

            fn shared(&self) -> Shared<'_, T> {
                Shared::List(&self.arrays, SharedSlices::$borrow(&self.cuda))
            }
        }

        impl<T: Element> fmt::Debug for $list<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($list))
                    .field("shape", &self.shape)
                    .finish_non_exhaustive()
            }
        }
    };
}
common!(MatrixList: Shared);
common!(MatrixListMut: Exclusive);

impl<T: Element> AsMatrixOf<T> for MatrixList<'_, T> {}
impl<T: Element> AsMatrixMutOf<T> for MatrixListMut<'_, T> {}

impl<T: Element> AsMatrix for MatrixList<'_, T> {
    fn as_matrix(&self) -> MatrixRef<'_, T> {
        MatrixRef { elements: self.shared(), shape: self.shape }
    }
}

impl<T: Element> AsMatrixMut for MatrixListMut<'_, T> {
    fn as_matrix_mut(&mut self) -> MatrixMut<'_, T> {
        let Self { arrays, cuda, shape, .. } = self;
        let cuda = cuda.iter_mut().map(|view| view.slice_mut(..)).collect();
        MatrixMut { elements: Exclusive::List(arrays, cuda), shape: *shape }
    }
}

input!(MatrixList<'_, T>: |list| (list.shared(), Some(list.shape)));
input!(MatrixListMut<'_, T>: |list| (list.shared(), Some(list.shape)));
output!(MatrixListMut<'_, T>: |list| {
    let view = list.as_matrix_mut();
    (view.elements, Some(view.shape))
});
