//! What a launch accepts as an input or an output.

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

/// An array in device memory that a kernel reads: [`Buffer`], [`Matrix`](crate::Matrix), a view of
/// either, or a `CudaSlice` or `CudaView` of the `cudarc` context that the
/// [`Device`](crate::Device) was made from.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array on a device",
    note = "elements of the host go there by `device.upload(&elements)?`"
)]
pub trait Input: sealed::Input<<Self as Input>::Element> {
    /// What its elements are.
    type Element: Element;
}

/// An [`Input`] of elements of that type. One bound, so that what is none gets one message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of `{T}` on a device",
    label = "no array of `{T}` on a device",
    note = "elements of the host go to a device by `device.upload(&elements)?`, those other than `f32` by `upload_of`"
)]
pub trait InputOf<T>: Input<Element = T> {}

/// An array in device memory that a kernel writes: as [`Input`], exclusively borrowed.
pub trait Output: sealed::Output<<Self as Output>::Element> {
    /// What its elements are.
    type Element: Element;
}

/// An [`Output`] of elements of that type. One bound, so that what is none gets one message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array of `{T}` to be written on a device",
    label = "no array of `{T}` to be written",
    note = "`device.alloc(len)?` makes one, of elements other than `f32` `device.alloc_of(len)?`"
)]
pub trait OutputOf<T>: Output<Element = T> {}

/// An [`Input`] without a shape: elements one after the other, of which a
/// [`MatrixRef`](crate::MatrixRef) is made.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no vector of elements on a device",
    note = "a matrix and a view of one have a shape: use `view`, `part` and `t`, or the matrix's `buffer`",
    note = "elements of the host go to a device by `device.upload(&elements)?`"
)]
pub trait Vector: Input {}

/// A [`Vector`] of elements of that type. One bound, so that what is none gets one message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no vector of `{T}` on a device",
    label = "no vector of `{T}` on a device",
    note = "a matrix and a view of one have a shape: use `view`, `part` and `t`, or the matrix's `buffer`",
    note = "elements of the host go to a device by `device.upload(&elements)?`"
)]
pub trait VectorOf<T: Element>: Vector<Element = T> {}

/// An [`Output`] without a shape: as [`Vector`], exclusively borrowed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no vector of elements to be written",
    note = "a matrix and a view of one have a shape: use `view_mut`, `part` and `t`"
)]
pub trait VectorMut: Output {}

#[doc(hidden)]
pub mod sealed {
    use super::{Element, Exclusive, Factor, Shape, Shared, SplitBuffers};

    pub trait Input<T: Element> {
        /// The elements, and the shape of a matrix.
        fn input(&self) -> (Shared<'_, T>, Option<Shape>);

        /// The splits that have been made of it for products in which it is this factor.
        fn splits(&self, _factor: Factor) -> Option<&SplitBuffers> {
            None
        }
    }

    pub trait Output<T: Element> {
        /// The elements, and the shape of a matrix.
        fn output(&mut self) -> (Exclusive<'_, T>, Option<Shape>);
    }
}

/// Makes a type of elements `T` an input: its elements, and its shape.
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

/// As `input!`, of an output.
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

/// The arrays of a list of matrices, on the device whose memory they are.
pub struct ListArrays {
    // An `ArrayList` of the device's back end, dropped before the device.
    list: Box<dyn Any + Send + Sync>,
    device: Device,
}

impl ListArrays {
    pub fn new<B: Backend>(on: On<'_, B>, list: ArrayList<B>) -> Self {
        Self { list: Box::new(list), device: on.device.clone() }
    }
}

/// Elements to read, before they are known to belong to the device of a call.
pub enum Shared<'a, T: Element> {
    /// Elements of a buffer.
    Buffer(BufferView<'a, T>),
    /// Elements of `cudarc`'s.
    Cuda(CudaView<'a, T>),
    /// Those of a list of arrays, of which these are `cudarc`'s.
    List(&'a ListArrays, Vec<CudaView<'a, T>>),
}

/// Elements to write, before they are known to belong to the device of a call.
pub enum Exclusive<'a, T: Element> {
    /// Elements of a buffer. The exclusive borrow is the caller's.
    Buffer(BufferView<'a, T>),
    /// Elements of `cudarc`'s.
    Cuda(CudaViewMut<'a, T>),
    /// Those of a list of arrays, of which these are `cudarc`'s.
    List(&'a ListArrays, Vec<CudaViewMut<'a, T>>),
}

impl<T: Element> Shared<'_, T> {
    /// The number of elements of an array; none of a list.
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

    /// Some consecutive elements of an array; none where they are not all there, and of a list.
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
    /// The number of elements of an array; none of a list.
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

/// An operand that belongs to the device of the call.
pub struct LocatedOperand<'a, B: Backend> {
    /// Its place in memory.
    pub place: Place<'a, B>,
    /// The shape of a matrix, or of each one of a list; the address is that of its first element.
    pub shape: Option<Shape>,
    /// Record, when dropped after the launch, that slices were used on the device's stream, for
    /// `cudarc` to order work on other streams after it.
    _used: Vec<SyncOnDrop<'a>>,
}

impl<B: Backend> LocatedOperand<'_, B> {
    /// Whether it is a list without arrays.
    pub(crate) fn is_empty_list(&self) -> bool {
        matches!(self.place, Place::List(list) if list.arrays.is_empty())
    }

    /// The address of one array, and the elements from there on.
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

/// Checks that an input lives on the device, and has the device's stream wait for work on it that
/// `cudarc` knows of.
pub fn read<'a, B: Backend, I: Input + ?Sized>(
    on: On<'a, B>,
    input: &'a I,
    argument: &str,
) -> Result<LocatedOperand<'a, B>> {
    let (elements, shape) = input.input();
    resolve(on, elements, shape, argument)
}

/// As [`read`], of an input's elements and its shape.
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
            let used = views.into_iter().map(|view| Ok(slice(view)?.1));
            let used: Vec<Option<SyncOnDrop<'a>>> = used.collect::<Result<_>>()?;
            return Ok(LocatedOperand {
                place,
                shape,
                _used: used.into_iter().flatten().collect(),
            });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// As [`read`], of an output.
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
            let used = views.into_iter().map(|view| Ok(slice(view)?.1));
            let used: Vec<Option<SyncOnDrop<'a>>> = used.collect::<Result<_>>()?;
            return Ok(LocatedOperand {
                place,
                shape,
                _used: used.into_iter().flatten().collect(),
            });
        }
    };
    resolved(address, used, len, shape, argument)
}

/// The arrays of a list of the device.
fn listed<'a, B: Backend>(
    on: On<'_, B>,
    arrays: &'a ListArrays,
    argument: &str,
) -> Result<&'a ArrayList<B>> {
    let owner = &arrays.device;
    let ours = if owner.is_same(on.device) { arrays.list.downcast_ref() } else { None };
    ours.ok_or_else(|| wrong_device(on, argument, owner_of(owner)))
}

/// The address of a view of a buffer of the device.
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
        _used: used.into_iter().collect(),
    })
}

/// Makes a type of elements `T` an input without a shape: its elements.
macro_rules! vector {
    ($array:ty: |$this:ident| $elements:expr) => {
        input!($array: |$this| ($elements, None));
        impl<T: Element> Vector for $array {}
        impl<T: Element> VectorOf<T> for $array {}
    };
}

/// As `vector!`, of an output.
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
