//! Inputs and outputs of launches.

mod locate;
mod slices;

pub(crate) use locate::listed_uses;
pub use locate::{LocatedOperand, read, resolve, resolve_mut, write};
pub use slices::{SharedSlice, SharedSlices, SliceOwner};

use crate::backend::{ArrayList, Backend};
use crate::buffer::{Buffer, BufferView, BufferViewMut};
use crate::device::{Device, On};
use crate::shape::Shape;
use crate::splits::SplitBuffers;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut};
use gemm_dsl::spec::Factor;
use gemm_dsl::target::element::Element;
use std::any::Any;
use std::ops::Range;

/// Array in device memory that a kernel reads.
///
/// Implemented by [`Buffer`], [`Matrix`](crate::Matrix), their views and lists,
/// [`SplitMatrix`](crate::SplitMatrix), and by `CudaSlice` and `CudaView` of the `cudarc` context
/// from which the [`Device`](crate::Device) was built.
///
/// ```
/// use gemm_runtime::bounds::Input;
/// use gemm_runtime::{Device, Error};
///
/// fn first<I: Input>(device: &Device, input: &I) -> Result<Option<I::Element>, Error> {
///     Ok(device.download(input)?.first().copied())
/// }
///
/// let device = Device::simulator();
/// let x = device.upload(&[3.0, 4.0])?;
/// assert_eq!(first(&device, &x)?, Some(3.0));
/// assert_eq!(first(&device, &x.slice(1..)?)?, Some(4.0));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array on a device",
    note = "upload elements of the host with `device.upload(&elements)?`"
)]
pub trait Input: sealed::Input<<Self as Input>::Element> {
    /// Element type of the array.
    type Element: Element;
}

/// [`Input`] with elements of type `T`. It is a single bound, so that a wrong argument gets one
/// compile error.
///
/// ```
/// use gemm_runtime::bounds::InputOf;
/// use gemm_runtime::{Device, Error};
///
/// fn total(device: &Device, input: &impl InputOf<f32>) -> Result<f32, Error> {
///     Ok(device.download(input)?.iter().sum())
/// }
///
/// let device = Device::simulator();
/// assert_eq!(total(&device, &device.upload(&[1.0, 2.0])?)?, 3.0);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` on a device",
    label = "not an array of `{T}` on a device",
    note = "upload elements of the host with `device.upload(&elements)?`, or with `upload_of` if \
            they are not `f32`"
)]
pub trait InputOf<T>: Input<Element = T> {}

/// Array in device memory that a kernel writes, exclusively borrowed.
///
/// Implemented by [`Buffer`], [`Matrix`](crate::Matrix), their mutable views and lists, and by
/// `CudaSlice` and `CudaViewMut`. [`OutputOf`] has an example.
pub trait Output: sealed::Output<<Self as Output>::Element> {
    /// Element type of the array.
    type Element: Element;
}

/// [`Output`] with elements of type `T`. It is a single bound, so that a wrong argument gets one
/// compile error.
///
/// ```
/// use gemm_runtime::bounds::OutputOf;
/// use gemm_runtime::{Device, Error, ReduceKernel, reduce_kernel};
///
/// fn write_sum(device: &Device, sum: &mut impl OutputOf<f32>) -> Result<(), Error> {
///     const SUM: ReduceKernel = reduce_kernel!(op: sum);
///     SUM.launch(device, &device.upload(&[1.0, 2.0])?, sum)?;
///     Ok(())
/// }
///
/// let device = Device::simulator();
/// let mut sums = device.alloc(2)?;
/// write_sum(&device, &mut sums.slice_mut(1..)?)?;
/// assert_eq!(device.download(&sums)?, [0.0, 3.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` to be written on a device",
    label = "not an array of `{T}` to be written",
    note = "allocate one with `device.alloc(len)?`, or with `device.alloc_of(len)?` for elements \
            other than `f32`"
)]
pub trait OutputOf<T>: Output<Element = T> {}

/// [`Input`] without a shape: consecutive elements, from which a [`MatrixRef`](crate::MatrixRef)
/// can be built.
///
/// ```
/// use gemm_runtime::bounds::Vector;
/// use gemm_runtime::{Device, Error, MatrixRef};
///
/// fn as_row<V: Vector>(x: &V, len: usize) -> Result<MatrixRef<'_, V::Element>, Error> {
///     MatrixRef::new(x, 1, len)
/// }
///
/// let device = Device::simulator();
/// let x = device.upload(&[1.0, 2.0])?;
/// assert_eq!(as_row(&x, 2)?.cols(), 2);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a vector of elements on a device",
    note = "a matrix already has a shape: use `view`, `part` and `t`; to pass it as a vector, pass \
            its `buffer`",
    note = "upload elements of the host with `device.upload(&elements)?`"
)]
pub trait Vector: Input {}

/// [`Vector`] with elements of type `T`. It is a single bound, so that a wrong argument gets one
/// compile error.
///
/// ```
/// use gemm_runtime::bounds::VectorOf;
/// use gemm_runtime::{Device, Error, MatrixRef};
///
/// fn last(device: &Device, vector: &impl VectorOf<f32>, len: usize) -> Result<Vec<f32>, Error> {
///     device.download(&MatrixRef::new(vector, 1, len)?.part(0..1, len - 1..len)?)
/// }
///
/// let device = Device::simulator();
/// assert_eq!(last(&device, &device.upload(&[1.0, 2.0])?, 2)?, [2.0]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a vector of `{T}` on a device",
    label = "not a vector of `{T}` on a device",
    note = "to pass a matrix as a vector, pass its `buffer`",
    note = "upload elements of the host with `device.upload(&elements)?`"
)]
pub trait VectorOf<T: Element>: Vector<Element = T> {}

/// [`Output`] without a shape: consecutive elements, from which a [`MatrixMut`](crate::MatrixMut)
/// can be built.
///
/// ```
/// use gemm_runtime::bounds::VectorMut;
/// use gemm_runtime::{Device, MatrixMut};
///
/// fn as_column<V: VectorMut>(
///     vector: &mut V,
///     len: usize,
/// ) -> gemm_runtime::error::Result<MatrixMut<'_, V::Element>> {
///     MatrixMut::new(vector, len, 1)
/// }
///
/// let device = Device::simulator();
/// let mut y = device.alloc(3)?;
/// assert_eq!(as_column(&mut y, 3)?.rows(), 3);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a vector of elements to be written",
    note = "a matrix already has a shape: use `view_mut`, `part` and `t`"
)]
pub trait VectorMut: Output {}

/// [`VectorMut`] with elements of type `T`. It is a single bound, so that a wrong argument gets one
/// compile error.
///
/// ```
/// use gemm_runtime::bounds::VectorMutOf;
/// use gemm_runtime::{Device, Error, MatrixMut};
///
/// fn clear(vector: &mut impl VectorMutOf<f32>, len: usize) -> Result<(), Error> {
///     MatrixMut::new(vector, 1, len)?.fill(0.0)
/// }
///
/// let device = Device::simulator();
/// let mut sums = device.upload(&[7.0, 1.0])?;
/// clear(&mut sums, 2)?;
/// assert_eq!(device.download(&sums)?, [0.0; 2]);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a vector of `{T}` to be written on a device",
    label = "not a vector of `{T}` to be written",
    note = "allocate one with `device.alloc(len)?`"
)]
pub trait VectorMutOf<T: Element>: VectorMut<Element = T> + Written<T> {}

/// [`InputOf`] and [`OutputOf`] for the same array, which is not a list.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array of `{T}` to be written on a device",
    label = "not an array of `{T}` to be written",
    note = "allocate a vector with `device.alloc(len)?`, or a matrix with \
            `device.alloc_matrix(rows, cols)?`"
)]
pub trait Written<T>: InputOf<T> + OutputOf<T> {}

#[doc(hidden)]
pub mod sealed {
    use super::{Element, Exclusive, Factor, Shape, Shared, SplitBuffers};

    pub trait Input<T: Element> {
        /// Elements, and the shape if this is a matrix.
        fn input(&self) -> (Shared<'_, T>, Option<Shape>);

        /// Prepared splits for GEMMs in which this matrix is the given factor, if there are any.
        fn splits(&self, _factor: Factor) -> Option<&SplitBuffers> {
            None
        }
    }

    pub trait Output<T: Element> {
        /// Elements, and the shape if this is a matrix.
        fn output(&mut self) -> (Exclusive<'_, T>, Option<Shape>);
    }
}

/// Implements [`Input`] for a type with elements `T`, from an expression that returns its elements
/// and its shape.
macro_rules! input {
    ($array:ty: |$this:ident| $parts:expr) => {
        impl<T: Element> Input for $array {
            type Element = T;
        }

        impl<T: Element> $crate::operand::InputOf<T> for $array {}

        impl<T: Element> $crate::operand::sealed::Input<T> for $array {
            fn input(&self) -> (Shared<'_, T>, Option<Shape>) {
                let $this = self;
                $parts
            }
        }
    };
}
pub(crate) use input;

/// Implements [`Output`], as `input!` implements [`Input`].
macro_rules! output {
    ($array:ty: |$this:ident| $parts:expr) => {
        impl<T: Element> Output for $array {
            type Element = T;
        }

        impl<T: Element> $crate::operand::OutputOf<T> for $array {}

        impl<T: Element> $crate::operand::sealed::Output<T> for $array {
            fn output(&mut self) -> (Exclusive<'_, T>, Option<Shape>) {
                let $this = self;
                $parts
            }
        }
    };
}
pub(crate) use output;

/// Arrays of a matrix list, on the device that owns their memory.
pub struct ListArrays {
    // `ArrayList` of the device's back end, dropped before the device.
    list: Box<dyn Any + Send + Sync>,
    device: Device,
}

impl ListArrays {
    pub fn new<B: Backend>(on: On<'_, B>, list: ArrayList<B>) -> Self {
        Self { list: Box::new(list), device: on.device.clone() }
    }
}

/// Elements to read. Nothing has checked yet that they belong to the device of the call.
#[derive(Clone, Copy)]
pub enum Shared<'a, T: Element> {
    /// Elements of a [`Buffer`] or of a view of one.
    Buffer(BufferView<'a, T>),
    /// Elements of a `cudarc` slice.
    Cuda(SharedSlice<'a, T>),
    /// Elements of a list of arrays, with the views of those that are `cudarc` slices.
    List(&'a ListArrays, SharedSlices<'a, T>),
}

/// Elements to write. Nothing has checked yet that they belong to the device of the call.
pub enum Exclusive<'a, T: Element> {
    /// Elements of a buffer, whose exclusive borrow the caller holds.
    Buffer(BufferView<'a, T>),
    /// Elements of a `cudarc` slice.
    Cuda(CudaViewMut<'a, T>),
    /// Elements of a list of arrays, with the views of those that are `cudarc` slices.
    List(&'a ListArrays, Vec<CudaViewMut<'a, T>>),
}

impl<T: Element> Shared<'_, T> {
    /// Number of elements of an array, or 0 for a list.
    #[expect(clippy::len_without_is_empty, reason = "a hidden type; nobody asks for emptiness")]
    pub fn len(&self) -> usize {
        match self {
            Shared::Buffer(view) => view.len(),
            Shared::Cuda(slice) => slice.len,
            Shared::List(..) => 0,
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Shared::List(..))
    }

    /// Device of the elements, if they are in a buffer of this crate.
    pub(crate) fn device(&self) -> Option<&Device> {
        match self {
            Shared::Buffer(view) => Some(view.device()),
            Shared::Cuda(_) => None,
            Shared::List(arrays, _) => Some(&arrays.device),
        }
    }

    /// Consecutive elements of an array. `None` for a list, or if the range is not inside the
    /// array.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        match self {
            Shared::Buffer(view) => view.part(range).map(Shared::Buffer),
            Shared::Cuda(slice) => slice.part(range).map(Shared::Cuda),
            Shared::List(..) => None,
        }
    }
}

impl<T: Element> Exclusive<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Exclusive::Buffer(view) => view.len(),
            Exclusive::Cuda(view) => view.len(),
            Exclusive::List(..) => 0,
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Exclusive::List(..))
    }

    pub(crate) fn shared(&self) -> Shared<'_, T> {
        match self {
            Exclusive::Buffer(view) => Shared::Buffer(*view),
            Exclusive::Cuda(view) => Shared::Cuda(SharedSlice::new(SliceOwner::ViewMut(view))),
            Exclusive::List(arrays, views) => Shared::List(arrays, SharedSlices::Exclusive(views)),
        }
    }

    /// Device of the elements, if they are in a buffer of this crate.
    pub(crate) fn device(&self) -> Option<&Device> {
        match self {
            Exclusive::Buffer(view) => Some(view.device()),
            Exclusive::Cuda(_) => None,
            Exclusive::List(arrays, _) => Some(&arrays.device),
        }
    }

    /// Elements of two matrices without a common element. `mid` is the offset at which the second
    /// begins, if all elements of the first are before it. Then the offsets of the second are
    /// relative to the offset that is returned.
    ///
    /// Returns `None` for a list, and for a `cudarc` slice without `mid`: views of slices are
    /// consecutive elements.
    pub(crate) fn split(
        &mut self,
        mid: Option<usize>,
    ) -> Option<(Exclusive<'_, T>, Exclusive<'_, T>, usize)> {
        match self {
            Exclusive::Buffer(view) => {
                Some((Exclusive::Buffer(*view), Exclusive::Buffer(*view), 0))
            }
            Exclusive::Cuda(view) => {
                let mid = mid?;
                let (first, second) = view.try_split_at_mut(mid)?;
                Some((Exclusive::Cuda(first), Exclusive::Cuda(second), mid))
            }
            Exclusive::List(..) => None,
        }
    }

    pub(crate) fn reborrow(&mut self) -> Exclusive<'_, T> {
        match self {
            Exclusive::Buffer(view) => Exclusive::Buffer(BufferView::clone(view)),
            Exclusive::Cuda(view) => Exclusive::Cuda(view.slice_mut(..)),
            Exclusive::List(arrays, views) => {
                Exclusive::List(arrays, views.iter_mut().map(|view| view.slice_mut(..)).collect())
            }
        }
    }
}

/// Implements [`Vector`] for a type with elements `T`.
macro_rules! vector {
    ($array:ty: |$this:ident| $elements:expr) => {
        input!($array: |$this| ($elements, None));
        impl<T: Element> Vector for $array {}
        impl<T: Element> VectorOf<T> for $array {}
    };
}

/// Implements [`VectorMut`] for a type with elements `T`.
macro_rules! vector_mut {
    ($array:ty: |$this:ident| $elements:expr) => {
        output!($array: |$this| ($elements, None));
        impl<T: Element> VectorMut for $array {}
        impl<T: Element> Written<T> for $array {}
        impl<T: Element> VectorMutOf<T> for $array {}
    };
}

vector!(Buffer<T>: |buffer| Shared::Buffer(buffer.whole()));
vector_mut!(Buffer<T>: |buffer| Exclusive::Buffer(buffer.whole()));
vector!(BufferView<'_, T>: |view| Shared::Buffer(*view));
vector!(BufferViewMut<'_, T>: |view| Shared::Buffer(view.shared()));
vector_mut!(BufferViewMut<'_, T>: |view| Exclusive::Buffer(view.shared()));
vector!(CudaSlice<T>: |slice| Shared::Cuda(SharedSlice::new(SliceOwner::Slice(slice))));
vector_mut!(CudaSlice<T>: |slice| Exclusive::Cuda(slice.as_view_mut()));
vector!(CudaView<'_, T>: |view| Shared::Cuda(SharedSlice::new(SliceOwner::View(view))));
vector!(CudaViewMut<'_, T>: |view| Shared::Cuda(SharedSlice::new(SliceOwner::ViewMut(view))));
vector_mut!(CudaViewMut<'_, T>: |view| Exclusive::Cuda(view.slice_mut(..)));
