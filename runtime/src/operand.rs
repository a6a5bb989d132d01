//! Inputs and outputs of launches.

use crate::backend::{ArrayList, Backend, Place};
use crate::buffer::{Buffer, BufferView, BufferViewMut, ELEMENTS};
use crate::device::{Device, On};
use crate::error::{Error, Owner, Result};
use crate::kernel_arg::Address;
use crate::shape::Shape;
use crate::splits::SplitBuffers;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, SyncOnDrop};
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

/// [`Input`] without a shape: consecutive elements, of which a [`MatrixRef`](crate::MatrixRef) can
/// be a view.
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
    note = "a matrix or a view of one has a shape: use `view`, `part` and `t`, or the matrix's \
            `buffer`",
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
    note = "a matrix or a view of one has a shape: use `view`, `part` and `t`, or the matrix's \
            `buffer`",
    note = "upload elements of the host with `device.upload(&elements)?`"
)]
pub trait VectorOf<T: Element>: Vector<Element = T> {}

/// [`Output`] without a shape: consecutive elements, of which a [`MatrixMut`](crate::MatrixMut) can
/// be a view.
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
    note = "a matrix or a view of one has a shape: use `view_mut`, `part` and `t`"
)]
pub trait VectorMut: Output {}

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
pub enum Shared<'a, T: Element> {
    /// Elements of a [`Buffer`] or of a view of one.
    Buffer(BufferView<'a, T>),
    /// Elements of a `cudarc` slice.
    Cuda(CudaView<'a, T>),
    /// Elements of a list of arrays, with the views of those that are `cudarc` slices.
    List(&'a ListArrays, Vec<CudaView<'a, T>>),
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
            Shared::Cuda(view) => view.len(),
            Shared::List(..) => 0,
        }
    }

    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Shared::List(..))
    }

    /// Consecutive elements of an array, or `None` for a list or if the range is not inside the
    /// array.
    pub fn part(&self, range: Range<usize>) -> Option<Self> {
        match self {
            Shared::Buffer(view) => view.part(range).map(Shared::Buffer),
            Shared::Cuda(view) => view.try_slice(range).map(Shared::Cuda),
            Shared::List(..) => None,
        }
    }

    pub(crate) fn copy(&self) -> Self {
        match self {
            Shared::Buffer(view) => Shared::Buffer(*view),
            Shared::Cuda(view) => Shared::Cuda(view.slice(..)),
            Shared::List(arrays, views) => {
                Shared::List(arrays, views.iter().map(|view| view.slice(..)).collect())
            }
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
            Exclusive::Cuda(view) => Shared::Cuda(view.as_view()),
            Exclusive::List(arrays, views) => {
                Shared::List(arrays, views.iter().map(CudaViewMut::as_view).collect())
            }
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

/// Operand on the device of the call.
pub struct LocatedOperand<'a, B: Backend> {
    /// Address and length, or list of arrays.
    pub place: Place<'a, B>,
    /// Shape of a matrix, or of each matrix of a list. `place` has the address of the first element
    /// of the matrix.
    pub shape: Option<Shape>,
    /// Guard, dropped after the launch. The drop records the use of a `cudarc` slice on the
    /// device's stream, and `cudarc` orders later work of other streams after this use.
    _used: Option<SyncOnDrop<'a>>,
    /// Guards for the arrays of a list.
    _all_used: Vec<SyncOnDrop<'a>>,
}

impl<B: Backend> LocatedOperand<'_, B> {
    /// Returns true for a list without arrays.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.place, Place::List(list) if list.arrays.is_empty())
    }

    /// Address of a single array, and the number of elements from this address on.
    ///
    /// # Errors
    /// [`Error::List`] for a list.
    pub(crate) fn array(&self, argument: &str) -> Result<(&B::Address, u64)> {
        match &self.place {
            Place::One { address, len } => Ok((address, *len)),
            Place::List(_) => Err(Error::List { argument: argument.to_owned() }),
        }
    }
}

/// Locates an input: checks that it belongs to the device, and makes the device's stream wait for
/// all work on the input that `cudarc` has recorded.
pub fn read<'a, B: Backend, I: Input + ?Sized>(
    on: On<'a, B>,
    input: &'a I,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let (elements, shape) = input.input();
    resolve(on, elements, shape, argument)
}

/// Locates an input as [`read`] does, given its elements and its shape.
pub fn resolve<'a, T: Element, B: Backend>(
    on: On<'a, B>,
    elements: Shared<'a, T>,
    shape: Option<Shape>,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let len = elements.len();
    let slice =
        |view| on.backend.slice(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context));
    let (address, used) = match elements {
        Shared::Buffer(view) => (view_of(on, &view, argument)?, None),
        Shared::Cuda(view) => slice(view)?,
        Shared::List(arrays, views) => {
            let place = Place::List(listed(on, arrays, argument)?);
            let used = views.into_iter().map(slice);
            let used = used.filter_map(|slice| slice.map(|(_, used)| used).transpose());
            let all_used = used.collect::<Result<_>>()?;
            return Ok(LocatedOperand { place, shape, _used: None, _all_used: all_used });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// Locates an output as [`read`] locates an input.
pub fn write<'a, B: Backend, O: Output + ?Sized>(
    on: On<'a, B>,
    output: &'a mut O,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let (elements, shape) = output.output();
    let len = elements.len();
    let slice = |view| {
        on.backend.slice_mut(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context))
    };
    let (address, used) = match elements {
        Exclusive::Buffer(view) => (view_of(on, &view, argument)?, None),
        Exclusive::Cuda(view) => slice(view)?,
        Exclusive::List(arrays, views) => {
            let place = Place::List(listed(on, arrays, argument)?);
            let used = views.into_iter().map(slice);
            let used = used.filter_map(|slice| slice.map(|(_, used)| used).transpose());
            let all_used = used.collect::<Result<_>>()?;
            return Ok(LocatedOperand { place, shape, _used: None, _all_used: all_used });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// Arrays of a list, checked to belong to the device.
fn listed<'a, B: Backend>(
    on: On<'_, B>,
    arrays: &'a ListArrays,
    argument: &str,
) -> Result<&'a ArrayList<B>> {
    let owner = &arrays.device;
    let ours = if owner.is_same(on.device) { arrays.list.downcast_ref() } else { None };
    ours.ok_or_else(|| wrong_device(on, argument, owner_of(owner)))
}

/// Address of a buffer view, checked to belong to the device.
fn view_of<T: Element, B: Backend>(
    on: On<'_, B>,
    view: &BufferView<'_, T>,
    argument: &str,
) -> Result<B::Address> {
    let (buffer, start, len) = view.parts();
    let owner = buffer.device();
    let ours = if owner.is_same(on.device) { buffer.address::<B>() } else { None };
    let whole = ours.ok_or_else(|| wrong_device(on, argument, owner_of(owner)))?;
    let part = whole.part(start as u64, len as u64);
    part.ok_or_else(|| {
        let (end, len) = (start.saturating_add(len), buffer.len());
        Error::OutOfRange { start, end, len, of: ELEMENTS }
    })
}

fn owner_of(device: &Device) -> Owner {
    Owner::Device { name: device.name().to_owned(), is_simulator: device.is_simulator() }
}

fn wrong_device<B>(on: On<'_, B>, argument: &str, belongs: Owner) -> Error {
    let (argument, device) = (argument.to_owned(), on.device.name().to_owned());
    Error::WrongDevice { argument, device, belongs }
}

fn resolved<'a, B: Backend>(
    address: B::Address,
    used: Option<SyncOnDrop<'a>>,
    len: usize,
    shape: Option<Shape>,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let start = shape.map_or(0, |shape| shape.start);
    let left = len.checked_sub(start).map(|left| left as u64);
    let part = left.and_then(|left| Some((address.part(start as u64, left)?, left)));
    let (address, len) = part.ok_or_else(|| Error::WrongExtent {
        argument: argument.to_owned(),
        has: len as u64,
        need: format!("the matrix starts at element {start}"),
    })?;
    Ok(LocatedOperand {
        place: Place::One { address, len },
        shape,
        _used: used,
        _all_used: Vec::new(),
    })
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
    };
}

vector!(Buffer<T>: |buffer| Shared::Buffer(buffer.whole()));
vector_mut!(Buffer<T>: |buffer| Exclusive::Buffer(buffer.whole()));
vector!(BufferView<'_, T>: |view| Shared::Buffer(*view));
vector!(BufferViewMut<'_, T>: |view| Shared::Buffer(view.shared()));
vector_mut!(BufferViewMut<'_, T>: |view| Exclusive::Buffer(view.shared()));
vector!(CudaSlice<T>: |slice| Shared::Cuda(slice.as_view()));
vector_mut!(CudaSlice<T>: |slice| Exclusive::Cuda(slice.as_view_mut()));
vector!(CudaView<'_, T>: |view| Shared::Cuda(view.slice(..)));
vector!(CudaViewMut<'_, T>: |view| Shared::Cuda(view.as_view()));
vector_mut!(CudaViewMut<'_, T>: |view| Exclusive::Cuda(view.slice_mut(..)));
