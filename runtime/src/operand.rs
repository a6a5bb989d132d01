//! What a launch accepts as an input or an output.

use crate::buffer::{Buffer, BufferView, BufferViewMut};
use crate::device::{Backend, Device};
use crate::error::{Error, Owner, Result};
use cudarc::driver::{CudaSlice, CudaView, CudaViewMut, SyncOnDrop};
use gemm_dsl::sim;

/// An array in device memory that a kernel reads: [`Buffer`], [`Matrix`](crate::Matrix), a view of
/// either, or a `CudaSlice<f32>` or `CudaView<f32>` of the `cudarc` context that the [`Device`] was
/// made from.
pub trait Input: sealed::Input {}
impl<T: sealed::Input + ?Sized> Input for T {}

/// An array in device memory that a kernel writes: as [`Input`], exclusively borrowed.
pub trait Output: sealed::Output {}
impl<T: sealed::Output + ?Sized> Output for T {}

pub(crate) mod sealed {
    use super::{Exclusive, Shape, Shared};

    pub trait Input {
        /// The elements, and the shape of a matrix.
        fn input(&self) -> (Shared<'_>, Option<Shape>);
    }

    pub trait Output {
        /// The elements, and the shape of a matrix.
        fn output(&mut self) -> (Exclusive<'_>, Option<Shape>);
    }
}

/// Elements to read, before they are known to belong to the device of a call.
pub enum Shared<'a> {
    /// Elements of a buffer.
    Buffer(BufferView<'a>),
    /// Elements of `cudarc`'s.
    Cuda(CudaView<'a, f32>),
}

/// Elements to write, before they are known to belong to the device of a call.
pub enum Exclusive<'a> {
    /// Elements of a buffer. The exclusive borrow is the caller's.
    Buffer(BufferView<'a>),
    /// Elements of `cudarc`'s.
    Cuda(CudaViewMut<'a, f32>),
}

/// The shape of a matrix inside its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Elements before the first one of the matrix.
    pub(crate) start: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    /// The distance between neighbours in a column.
    pub(crate) row_stride: usize,
    /// The distance between neighbours in a row.
    pub(crate) col_stride: usize,
}

impl Shape {
    /// Whether the elements lie one after the other, row by row.
    pub(crate) fn is_packed(&self) -> bool {
        (self.cols <= 1 || self.col_stride == 1) && (self.rows <= 1 || self.row_stride == self.cols)
    }
}

/// Where the first element of an operand lies.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// An address in GPU memory.
    Gpu(u64),
    /// Simulated memory.
    Simulated {
        /// The elements.
        buffer: sim::Buffer,
        /// The distance of the first from the start of its allocation, in elements.
        offset: u64,
    },
}

impl Place {
    /// The address, or the distance from the start of an allocation that is aligned to 256 bytes.
    pub(crate) fn address(&self) -> u64 {
        match self {
            Place::Gpu(address) => *address,
            Place::Simulated { offset, .. } => offset * size_of::<f32>() as u64,
        }
    }

    /// Whether `len` elements from here and `other_len` from there share one.
    pub(crate) fn overlaps(&self, len: u64, other: &Self, other_len: u64) -> bool {
        if len == 0 || other_len == 0 {
            return false;
        }
        match (self, other) {
            (Place::Gpu(a), Place::Gpu(b)) => {
                let end = |at: u64, len: u64| at.saturating_add(len.saturating_mul(4));
                *a < end(*b, other_len) && *b < end(*a, len)
            }
            (Place::Simulated { .. }, Place::Simulated { .. }) => {
                let part = |place: &Self, len| match place.clone().part(0, len) {
                    Some(Place::Simulated { buffer, .. }) => Some(buffer),
                    _ => None,
                };
                let parts = part(self, len).zip(part(other, other_len));
                parts.is_some_and(|(a, b)| a.overlaps(&b))
            }
            _ => false,
        }
    }

    /// The place `start` elements on, without those after the next `len`.
    fn part(self, start: u64, len: u64) -> Option<Self> {
        Some(match self {
            Place::Gpu(address) => Place::Gpu(address + start * size_of::<f32>() as u64),
            Place::Simulated { buffer, offset } => Place::Simulated {
                buffer: buffer.view(usize::try_from(start).ok()?, usize::try_from(len).ok()?)?,
                offset: offset + start,
            },
        })
    }
}

/// An operand that belongs to the device of the call.
pub(crate) struct Resolved<'a> {
    pub(crate) place: Place,
    /// Elements from the place on.
    pub(crate) len: u64,
    /// The shape of a matrix; the place is that of its first element.
    pub(crate) shape: Option<Shape>,
    /// Records, when dropped after the launch, that the slice was used on the device's stream, for
    /// `cudarc` to order work on other streams after it.
    _used: Option<SyncOnDrop<'a>>,
}

/// Checks that an input lives on the device, and has the device's stream wait for work on it that
/// `cudarc` knows of.
pub(crate) fn read<'a, I: Input + ?Sized>(
    input: &'a I,
    device: &'a Device,
    argument: &'static str,
) -> Result<Resolved<'a>> {
    let (elements, shape) = input.input();
    let (place, len, used) = match elements {
        Shared::Buffer(view) => view_of(&view, device, argument)?,
        Shared::Cuda(view) => match device.backend() {
            Backend::Gpu(gpu) if gpu.owns(&view) => {
                let len = view.len();
                let (address, used) = gpu.pass(|stream| view.view_ptr(stream))?;
                (Place::Gpu(address), len, used)
            }
            _ => return Err(wrong_device(device, argument, Owner::Context)),
        },
    };
    resolved(place, len, shape, used, argument)
}

/// As [`read`], of an output.
pub(crate) fn write<'a, O: Output + ?Sized>(
    output: &'a mut O,
    device: &'a Device,
    argument: &'static str,
) -> Result<Resolved<'a>> {
    let (elements, shape) = output.output();
    let (place, len, used) = match elements {
        Exclusive::Buffer(view) => view_of(&view, device, argument)?,
        Exclusive::Cuda(view) => match device.backend() {
            Backend::Gpu(gpu) if gpu.owns(&view) => {
                let len = view.len();
                let (address, used) = gpu.pass(|stream| view.view_ptr_mut(stream))?;
                (Place::Gpu(address), len, used)
            }
            _ => return Err(wrong_device(device, argument, Owner::Context)),
        },
    };
    resolved(place, len, shape, used, argument)
}

type Found<'a> = (Place, usize, Option<SyncOnDrop<'a>>);

fn view_of<'a>(
    view: &BufferView<'_>,
    device: &Device,
    argument: &'static str,
) -> Result<Found<'a>> {
    let (buffer, start, len) = view.parts();
    let owner = buffer.device();
    if !owner.is_same(device) {
        let (name, is_simulator) = (owner.name().to_owned(), owner.is_simulator());
        return Err(wrong_device(device, argument, Owner::Device { name, is_simulator }));
    }
    Ok((buffer.place(start, len)?, len, None))
}

fn wrong_device(device: &Device, argument: &'static str, belongs: Owner) -> Error {
    Error::WrongDevice { argument, device: device.name().to_owned(), belongs }
}

fn resolved<'a>(
    place: Place,
    len: usize,
    shape: Option<Shape>,
    used: Option<SyncOnDrop<'a>>,
    argument: &'static str,
) -> Result<Resolved<'a>> {
    let start = shape.map_or(0, |shape| shape.start);
    let left = len.checked_sub(start);
    let part = left.and_then(|left| Some((place.part(start as u64, left as u64)?, left as u64)));
    let (place, len) = part.ok_or(Error::WrongExtent {
        argument,
        has: len as u64,
        need: format!("the matrix starts at element {start}"),
    })?;
    Ok(Resolved { place, len, shape, _used: used })
}

impl sealed::Input for Buffer {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Buffer(self.whole()), None)
    }
}

impl sealed::Output for Buffer {
    fn output(&mut self) -> (Exclusive<'_>, Option<Shape>) {
        (Exclusive::Buffer(self.whole()), None)
    }
}

impl sealed::Input for BufferView<'_> {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Buffer(*self), None)
    }
}

impl sealed::Input for BufferViewMut<'_> {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Buffer(self.shared()), None)
    }
}

impl sealed::Output for BufferViewMut<'_> {
    fn output(&mut self) -> (Exclusive<'_>, Option<Shape>) {
        (Exclusive::Buffer(self.shared()), None)
    }
}

impl sealed::Input for CudaSlice<f32> {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Cuda(self.as_view()), None)
    }
}

impl sealed::Output for CudaSlice<f32> {
    fn output(&mut self) -> (Exclusive<'_>, Option<Shape>) {
        (Exclusive::Cuda(self.as_view_mut()), None)
    }
}

impl sealed::Input for CudaView<'_, f32> {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Cuda(self.slice(..)), None)
    }
}

impl sealed::Input for CudaViewMut<'_, f32> {
    fn input(&self) -> (Shared<'_>, Option<Shape>) {
        (Shared::Cuda(self.as_view()), None)
    }
}

impl sealed::Output for CudaViewMut<'_, f32> {
    fn output(&mut self) -> (Exclusive<'_>, Option<Shape>) {
        (Exclusive::Cuda(self.slice_mut(..)), None)
    }
}
