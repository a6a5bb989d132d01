//! Vectors in device memory, and views of their elements.

use crate::backend::Backend;
use crate::backend::gpu::{Access, Gpu};
use crate::blocks::Blocks;
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
    /// Buffer of device memory of another owner: of another library of the process, such as candle
    /// or cubecl, or of a DLPack tensor. The memory is not copied, and dropping the buffer does not
    /// free it.
    ///
    /// `address` is the first element in the address space of the GPU, a `CUdeviceptr`. Build views
    /// of matrices from the buffer with [`MatrixRef::pitched`](crate::MatrixRef::pitched) or
    /// [`Matrix::from_buffer`](crate::Matrix::from_buffer). Kernels use 16-byte accesses if the
    /// address is a multiple of 16.
    ///
    /// # Safety
    /// From this call until all work of the device on the buffer is done, which may be after the
    /// buffer was dropped:
    ///
    /// * The memory has `len` initialised elements of type `T`, the device's context can access it,
    ///   and its owner does not free it.
    /// * The owner's work on the memory is ordered with the work of the device, for example by
    ///   [`Device::wait_for`], [`Device::record`] or [`Device::synchronize`].
    /// * Nobody else writes the memory. Nobody else reads it during a launch or a copy that writes
    ///   it. If the owner only lends it for reading, nobody borrows the buffer mutably.
    ///
    /// # Errors
    /// [`Error::Foreign`] on a simulator, and if the address is 0 or not a multiple of the size of
    /// an element.
    #[allow(unsafe_code, reason = "only the caller can know the memory")]
    pub unsafe fn from_raw_parts(device: &Device, address: u64, len: usize) -> Result<Self> {
        let size = size_of::<T>() as u64;
        let foreign = |reason: String| Err(Error::Foreign { address, reason });
        if device.is_simulator() {
            return foreign("a simulator has no addresses. Upload the elements".to_owned());
        }
        if address == 0 && len > 0 {
            return foreign("it is the null pointer. Pass the address of an allocation".to_owned());
        }
        if !address.is_multiple_of(size) {
            return foreign(format!(
                "an element of type {} has {size} bytes, and the address is not a multiple of \
                 {size}. Copy the memory to an aligned address",
                T::ELEM
            ));
        }
        let end = (len as u64).checked_mul(size).and_then(|bytes| address.checked_add(bytes));
        if end.is_none() {
            return foreign(format!("{len} elements reach beyond the address space"));
        }
        let memory = Box::new(Gpu::foreign(T::ELEM, address));
        Ok(Self { memory, len, device: device.clone(), elements: PhantomData })
    }

    /// Returns the address of the first element in the address space of the GPU, a `CUdeviceptr`,
    /// or `None` on a simulator.
    ///
    /// The address is valid as long as the buffer exists. Order work that uses it with the
    /// device's: with [`Device::record`] and [`Device::wait_for`], or on the device's stream.
    pub fn raw_address(&self) -> Option<u64> {
        self.address::<Gpu>().map(|address| address.at)
    }

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
        Ok(BufferViewMut { buffer: self, start, len, exclusive: PhantomData })
    }

    /// Returns views of the first `mid` elements and of the others, for a kernel or two to write,
    /// without a copy.
    ///
    /// ```
    /// use gemm_runtime::{Device, ReduceKernel, reduce_kernel};
    ///
    /// const SUM: ReduceKernel = reduce_kernel!(op: sum);
    /// let device = Device::simulator();
    /// let mut x = device.upload(&[1.0, 2.0, 3.0, 0.0])?;
    /// let (values, mut sum) = x.split_at_mut(3)?;
    /// SUM.launch(&device, &values, &mut sum)?;
    /// assert_eq!(device.download(&x)?, [1.0, 2.0, 3.0, 6.0]);
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// The buffer cannot be used as long as one of the views is:
    ///
    /// ```compile_fail,E0502
    /// # let device = gemm_runtime::Device::simulator();
    /// let mut x = device.alloc(4)?;
    /// let (mut first, second) = x.split_at_mut(2)?;
    /// x.read_into(&mut [0.0; 4])?;
    /// first.copy_from(&second)?;
    /// # Ok::<(), gemm_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `mid` is greater than the number of elements.
    pub fn split_at_mut(
        &mut self,
        mid: usize,
    ) -> Result<(BufferViewMut<'_, T>, BufferViewMut<'_, T>)> {
        self.whole_mut().split(mid)
    }

    pub(crate) fn whole_mut(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { start: 0, len: self.len, buffer: self, exclusive: PhantomData }
    }

    /// View of all elements, for reading and writing.
    #[doc(hidden)]
    pub fn whole(&self) -> BufferView<'_, T> {
        BufferView { buffer: self, start: 0, len: self.len }
    }

    /// Address of the first element, if `B` is the back end of the buffer's device.
    #[doc(hidden)]
    pub fn address<B: Backend>(&self) -> Option<B::Address> {
        self.allocation::<B>().map(B::address)
    }

    /// Memory of the buffer, if `B` is the back end of the buffer's device.
    pub(crate) fn allocation<B: Backend>(&self) -> Option<&B::Allocation> {
        self.memory.downcast_ref()
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
        dispatch!(self, on => make(on, elements.len(), |to| {
            let len = elements.len();
            on.backend.write(to, elements, &Blocks::rows(1, len, len, len))
        }))
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
    let logs = B::use_log(&allocation).map(std::slice::from_ref).unwrap_or_default();
    let used = on.backend.begin_use(logs, Access::Write)?;
    fill(&B::address(&allocation))?;
    drop(used);
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

    /// Returns a view of consecutive elements of the view.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range is not inside the view.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let (start, len) = within(self.len, range)?;
        Ok(Self { start: self.start + start, len, ..*self })
    }

    pub(crate) fn device(&self) -> &'a Device {
        &self.buffer.device
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
/// [`Buffer::slice_mut`] and [`Buffer::split_at_mut`].
///
/// No other view of these elements exists as long as this one does:
///
/// ```compile_fail,E0499
/// # let device = gemm_runtime::Device::simulator();
/// let mut x = device.alloc(4)?;
/// let mut view = x.slice_mut(1..)?;
/// let (mut first, _) = view.split_at_mut(1)?;
/// view.fill(1.0)?;
/// first.fill(2.0)?;
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Debug)]
pub struct BufferViewMut<'a, T: Element = f32> {
    /// The buffer, whose other elements may have other views.
    buffer: &'a Buffer<T>,
    start: usize,
    len: usize,
    exclusive: PhantomData<&'a mut Buffer<T>>,
}

impl<'a, T: Element> BufferViewMut<'a, T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the view has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns a view of consecutive elements of the view, for reading.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range is not inside the view.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<BufferView<'_, T>> {
        self.shared().slice(range)
    }

    /// Returns a view of consecutive elements of the view, for writing.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the range is not inside the view.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<BufferViewMut<'_, T>> {
        let (start, len) = within(self.len, range)?;
        Ok(BufferViewMut { start: self.start + start, len, ..self.reborrow() })
    }

    /// Returns views of the first `mid` elements and of the others.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if `mid` is greater than the number of elements.
    pub fn split_at_mut(
        &mut self,
        mid: usize,
    ) -> Result<(BufferViewMut<'_, T>, BufferViewMut<'_, T>)> {
        self.reborrow().split(mid)
    }

    fn reborrow(&mut self) -> BufferViewMut<'_, T> {
        BufferViewMut { exclusive: PhantomData, ..*self }
    }

    fn split(self, mid: usize) -> Result<(Self, Self)> {
        let (_, before) = within(self.len, ..mid)?;
        let (exclusive, len) = (PhantomData, self.len - before);
        let behind = Self { start: self.start + before, len, exclusive, ..self };
        Ok((Self { len: before, exclusive, ..self }, behind))
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
