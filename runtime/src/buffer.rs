//! Vectors in device memory.

use crate::backend::Backend;
use crate::device::{Device, On, dispatch};
use crate::error::{Error, Result};
use gemm_dsl::target::element::Element;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};

/// A vector in the memory of one device, made by [`Device::upload`] or [`Device::alloc`], or, of
/// elements other than `f32`, by [`Device::upload_of`] or [`Device::alloc_of`].
///
/// It keeps its device alive, and its memory is given back when it is dropped, in the order of the
/// device's stream: a launch that uses it may still be under way.
pub struct Buffer<T: Element = f32> {
    // An allocation of the device's back end, dropped before the device.
    memory: Box<dyn Any + Send + Sync>,
    len: usize,
    device: Device,
    elements: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device whose memory this is.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Some consecutive elements, without a copy.
    ///
    /// A view that does not start at a multiple of 16 bytes from the start is not aligned to them: a kernel
    /// with vector accesses then runs as its scalar variant.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferView<'_, T>> {
        let (start, len) = within(self.len, range)?;
        Ok(BufferView { buffer: self, start, len })
    }

    /// Some consecutive elements for a kernel to write, without a copy.
    ///
    /// # Errors
    /// [`Error::OutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferViewMut<'_, T>> {
        let (start, len) = within(self.len, range)?;
        Ok(BufferViewMut { buffer: self, start, len })
    }

    /// All elements.
    #[doc(hidden)]
    pub fn whole(&self) -> BufferView<'_, T> {
        BufferView { buffer: self, start: 0, len: self.len }
    }

    /// Where the first element lies, on the back end whose memory it is.
    #[doc(hidden)]
    pub fn address<B: Backend>(&self) -> Option<B::Address> {
        self.memory.downcast_ref().map(B::address)
    }
}

impl Device {
    /// Copies elements to the device. When the call returns, the host's may be changed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Capturing`], [`Error::Driver`].
    pub fn upload(&self, elements: &[f32]) -> Result<Buffer> {
        self.upload_of(elements)
    }

    /// As [`Device::upload`], of elements of any type. A call of its own, so that `upload(&[1.0])`
    /// means `f32`, which Rust would not infer.
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
    /// As [`Device::upload`].
    pub fn upload_of<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        dispatch!(self, on => make(on, elements.len(), |to| on.backend.write(to, elements)))
    }

    /// A vector of `len` zeros.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn alloc(&self, len: usize) -> Result<Buffer> {
        self.alloc_of(len)
    }

    /// As [`Device::alloc`], of elements of any type: `device.alloc_of::<f64>(len)`.
    ///
    /// # Errors
    /// As [`Device::upload`].
    pub fn alloc_of<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        dispatch!(self, on => make(on, len, |at| on.backend.zero(at, len as u64)))
    }
}

/// Allocates a buffer and has it filled.
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

/// Consecutive elements of a [`Buffer`], made by [`Buffer::slice`].
#[derive(Clone, Copy, Debug)]
pub struct BufferView<'a, T: Element = f32> {
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
}

impl<'a, T: Element> BufferView<'a, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn parts(&self) -> (&'a Buffer<T>, usize, usize) {
        (self.buffer, self.start, self.len)
    }

    /// Some of them; none where they are not all there.
    pub(crate) fn part(&self, range: Range<usize>) -> Option<Self> {
        let inside = range.start <= range.end && range.end <= self.len;
        inside.then(|| Self { start: self.start + range.start, len: range.len(), ..*self })
    }
}

/// Consecutive elements of a [`Buffer`] for a kernel to write, made by [`Buffer::slice_mut`].
#[derive(Debug)]
pub struct BufferViewMut<'a, T: Element = f32> {
    buffer: &'a mut Buffer<T>,
    start: usize,
    len: usize,
}

impl<T: Element> BufferViewMut<'_, T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same elements, to whoever holds the exclusive borrow.
    pub(crate) fn shared(&self) -> BufferView<'_, T> {
        BufferView { buffer: self.buffer, start: self.start, len: self.len }
    }
}

/// What a range of a buffer is of, in messages.
pub(crate) const ELEMENTS: &str = "the elements of the buffer";

/// Start and length of a range that lies inside `0..len`.
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
