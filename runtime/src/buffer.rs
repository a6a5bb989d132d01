//! Vectors in device memory, and views of their elements.

use crate::backend::Backend;
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use gemm_dsl::target::element::Element;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};

/// Vector in the memory of one device.
///
/// [`Device::upload`] and [`Device::alloc`] create vectors of `f32`. [`Device::upload_of`] and
/// [`Device::alloc_of`] create vectors of any [`Element`] type.
///
/// A buffer keeps its device alive. Its memory is freed in the order of the device's stream, so you
/// may drop a buffer while a launch still uses it.
///
/// ```
/// use gemm_runtime::Device;
///
/// let device = Device::simulator();
/// let x = device.upload(&[1.0, 2.0, 3.0])?;
/// assert_eq!((x.len(), device.download(&x)?), (3, vec![1.0, 2.0, 3.0]));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Buffer<T: Element = f32> {
    // An allocation of the device's back end, dropped before the device.
    memory: Box<dyn Any + Send + Sync>,
    len: usize,
    device: Device,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device that owns the memory.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns a view of consecutive elements, without a copy.
    ///
    /// A view whose offset is not a multiple of 16 bytes is unaligned. For unaligned arrays, a
    /// kernel with vector accesses runs its scalar variant.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range is not inside the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferView<'_, T>> {
        let (start, len) = within(self.len, range)?;
        Ok(BufferView { buffer: self, start, len })
    }

    /// Returns a view of consecutive elements for a kernel to write, without a copy.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range is not inside the buffer.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferViewMut<'_, T>> {
        let (start, len) = within(self.len, range)?;
        Ok(BufferViewMut { buffer: self, start, len })
    }

    /// View of all elements, for reading and writing.
    #[doc(hidden)]
    pub fn whole(&self) -> BufferView<'_, T> {
        BufferView { buffer: self, start: 0, len: self.len }
    }

    /// Address of the first element, if `B` is the back end of the buffer's device.
    #[doc(hidden)]
    pub fn address<B: Backend>(&self) -> Option<B::Address> {
        self.memory.downcast_ref().map(B::address)
    }
}

impl Device {
    /// Copies `elements` to the device. The slice may be changed after the call returns.
    ///
    /// # Errors
    /// * [`Error::OutOfMemory`] if the device has too little memory.
    /// * [`Error::Capturing`] while the device's stream is captured into a graph.
    /// * [`Error::Driver`] if the driver fails.
    pub fn upload(&self, elements: &[f32]) -> Result<Buffer> {
        self.upload_of(elements)
    }

    /// Copies elements of any type to the device, as [`Device::upload`] does for `f32`.
    ///
    /// `upload` is not generic itself, because Rust would not infer `f32` for `upload(&[1.0])`.
    ///
    /// ```
    /// use gemm_runtime::{Buffer, Device};
    ///
    /// let device = Device::simulator();
    /// let buffer: Buffer<i64> = device.upload_of(&[1, 2, 3])?;
    /// assert_eq!(device.download(&buffer.slice(1..)?)?, [2, 3]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`].
    pub fn upload_of<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        dispatch!(self, on => make(on, elements.len(), |to| on.backend.write(to, elements)))
    }

    /// Allocates a vector of `len` zeros of type `f32`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`].
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        self.alloc_of(len)
    }

    /// Allocates a vector of `len` zeros of any type: `device.alloc_of::<f64>(len)`.
    ///
    /// # Errors
    /// Returns the errors of [`Device::upload`].
    pub fn alloc_of<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        dispatch!(self, on => make(on, len, |at| on.backend.zero(at, len as u64)))
    }
}

/// Allocates a buffer and initialises it with `fill`.
fn make<T: Element, B: Backend>(
    on: On<'_, B>,
    len: usize,
    fill: impl FnOnce(&B::Address) -> Result<()>,
) -> Result<Buffer<T>> {
    let allocation = on.backend.alloc(T::ELEM, len as u64)?;
    fill(&B::address(&allocation))?;
    let (memory, device) = (Box::new(allocation), on.device.clone());
    Ok(Buffer { memory, len, device, elements: PhantomData })
}

impl<T: Element> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("elem", &T::ELEM)
            .field("len", &self.len)
            .field("device", &self.device.name())
            .finish_non_exhaustive()
    }
}

/// View of consecutive elements of a [`Buffer`], returned by [`Buffer::slice`].
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'a, T: Element = f32> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

impl<'a, T: Element> BufferView<'a, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn parts(&self) -> (&'a Buffer<T>, usize, usize) {
        (self.buffer, self.start, self.len)
    }

    /// Part of the view, or `None` if the range is not inside it.
    pub(crate) fn part(&self, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= self.len;
        inside.then(|| Self { start: self.start + range.start, len: range.len(), ..*self })
    }
}

/// View of consecutive elements of a [`Buffer`] for a kernel to write, returned by
/// [`Buffer::slice_mut`].
#[derive(Debug)]
pub struct BufferViewMut<'a, T: Element = f32> {
    buffer: &'a mut Buffer<T>,
    start: usize,
    len: usize,
}

impl<T: Element> BufferViewMut<'_, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// View of the same elements, for the holder of the exclusive borrow.
    pub(crate) fn shared(&self) -> BufferView<'_, T> {
        BufferView { buffer: self.buffer, start: self.start, len: self.len }
    }
}

/// Name of a buffer's elements in messages about ranges.
pub(crate) const ELEMENTS: &str = "the elements of the buffer";

/// Start and length of a range, checked to lie inside `0..len`.
fn within(len: usize, range: impl RangeBounds<usize>) -> Result<(usize, usize)> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => len,
    };
    if start <= end && end <= len {
        Ok((start, end - start))
    } else {
        Err(Error::OutOfRange { start, end, len, of: ELEMENTS })
    }
}
