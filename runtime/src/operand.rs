//! What a launch accepts as an input or an output.

use crate::address::Address;
use crate::buffer::{Buffer, BufferView, BufferViewMut, ELEMENTS};
use crate::device::On;
use crate::error::{Error, Owner, Result};
use crate::memory::Keeps;
use crate::shape::Shape;
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, SyncOnDrop};
use gemm_dsl::sim::Element;

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

/// An array in device memory that a kernel writes: as [`Input`], exclusively borrowed.
pub trait Output: sealed::Output<<Self as Output>::Element> {
    /// What its elements are.
    type Element: Element;
}

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

pub(crate) mod sealed {
    use super::{Element, Exclusive, Shape, Shared};

    pub trait Input<T: Element> {
        /// The elements, and the shape of a matrix.
        fn input(&self) -> (Shared<'_, T>, Option<Shape>);
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

        impl<T: Element> $crate::operand::sealed::Output<T> for $array {
            fn output(&mut self) -> (Exclusive<'_, T>, Option<Shape>) {
                let $this = self;
                $parts
            }
        }
    };
}
pub(crate) use output;

/// Elements to read, before they are known to belong to the device of a call.
pub enum Shared<'a, T: Element> {
    /// Elements of a buffer.
    Buffer(BufferView<'a, T>),
    /// Elements of `cudarc`'s.
    Cuda(CudaView<'a, T>),
}

/// Elements to write, before they are known to belong to the device of a call.
pub enum Exclusive<'a, T: Element> {
    /// Elements of a buffer. The exclusive borrow is the caller's.
    Buffer(BufferView<'a, T>),
    /// Elements of `cudarc`'s.
    Cuda(CudaViewMut<'a, T>),
}

impl<T: Element> Shared<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Shared::Buffer(view) => view.len(),
            Shared::Cuda(view) => view.len(),
        }
    }

    pub(crate) fn copy(&self) -> Self {
        match self {
            Shared::Buffer(view) => Shared::Buffer(*view),
            Shared::Cuda(view) => Shared::Cuda(view.slice(..)),
        }
    }
}

impl<T: Element> Exclusive<'_, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Exclusive::Buffer(view) => view.len(),
            Exclusive::Cuda(view) => view.len(),
        }
    }

    pub(crate) fn shared(&self) -> Shared<'_, T> {
        match self {
            Exclusive::Buffer(view) => Shared::Buffer(*view),
            Exclusive::Cuda(view) => Shared::Cuda(view.as_view()),
        }
    }

    pub(crate) fn reborrow(&mut self) -> Exclusive<'_, T> {
        match self {
            Exclusive::Buffer(view) => Exclusive::Buffer(BufferView::clone(view)),
            Exclusive::Cuda(view) => Exclusive::Cuda(view.slice_mut(..)),
        }
    }
}

/// An operand that belongs to the device of the call.
pub(crate) struct Resolved<'a, A> {
    pub(crate) address: A,
    /// Elements from the address on.
    pub(crate) len: u64,
    /// The shape of a matrix; the address is that of its first element.
    pub(crate) shape: Option<Shape>,
    /// Records, when dropped after the launch, that the slice was used on the device's stream, for
    /// `cudarc` to order work on other streams after it.
    _used: Option<SyncOnDrop<'a>>,
}

/// Checks that an input lives on the device, and has the device's stream wait for work on it that
/// `cudarc` knows of.
pub(crate) fn read<'a, B: Keeps, I: Input + ?Sized>(
    on: On<'a, B>,
    input: &'a I,
    argument: &str,
) -> Result<Resolved<'a, B::Address>> {
    resolve(on, input.input(), argument)
}

/// As [`read`], of an input's elements and its shape.
pub(crate) fn resolve<'a, T: Element, B: Keeps>(
    on: On<'a, B>,
    (elements, shape): (Shared<'a, T>, Option<Shape>),
    argument: &str,
) -> Result<Resolved<'a, B::Address>> {
    let len = elements.len();
    let found = match elements {
        Shared::Buffer(view) => (view_of(on, &view, argument)?, None),
        Shared::Cuda(view) => {
            on.backend.slice(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context))?
        }
    };
    resolved(found, len, shape, argument)
}

/// As [`read`], of an output.
pub(crate) fn write<'a, B: Keeps, O: Output + ?Sized>(
    on: On<'a, B>,
    output: &'a mut O,
    argument: &str,
) -> Result<Resolved<'a, B::Address>> {
    let (elements, shape) = output.output();
    let len = elements.len();
    let found = match elements {
        Exclusive::Buffer(view) => (view_of(on, &view, argument)?, None),
        Exclusive::Cuda(view) => {
            on.backend.slice_mut(view)?.ok_or_else(|| wrong_device(on, argument, Owner::Context))?
        }
    };
    resolved(found, len, shape, argument)
}

/// The address of a view of a buffer of the device.
fn view_of<T: Element, B: Keeps>(
    on: On<'_, B>,
    view: &BufferView<'_, T>,
    argument: &str,
) -> Result<B::Address> {
    let (buffer, start, len) = view.parts();
    let owner = buffer.device();
    let ours = if owner.is_same(on.device) { buffer.address::<B>() } else { None };
    let whole = ours.ok_or_else(|| {
        let (name, is_simulator) = (owner.name().to_owned(), owner.is_simulator());
        wrong_device(on, argument, Owner::Device { name, is_simulator })
    })?;
    let part = whole.part(start as u64, len as u64);
    part.ok_or_else(|| {
        let (end, len) = (start.saturating_add(len), buffer.len());
        Error::OutOfRange { start, end, len, of: ELEMENTS }
    })
}

fn wrong_device<B>(on: On<'_, B>, argument: &str, belongs: Owner) -> Error {
    let (argument, device) = (argument.to_owned(), on.device.name().to_owned());
    Error::WrongDevice { argument, device, belongs }
}

fn resolved<'a, A: Address>(
    (address, used): (A, Option<SyncOnDrop<'a>>),
    len: usize,
    shape: Option<Shape>,
    argument: &str,
) -> Result<Resolved<'a, A>> {
    let start = shape.map_or(0, |shape| shape.start);
    let left = len.checked_sub(start).map(|left| left as u64);
    let part = left.and_then(|left| Some((address.part(start as u64, left)?, left)));
    let (address, len) = part.ok_or_else(|| Error::WrongExtent {
        argument: argument.to_owned(),
        has: len as u64,
        need: format!("the matrix starts at element {start}"),
    })?;
    Ok(Resolved { address, len, shape, _used: used })
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
