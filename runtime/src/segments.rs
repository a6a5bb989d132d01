//! Segments of an array, as inputs of segmented reductions.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::dyn_array::Readable;
use crate::error::{Error, Result};
use gemm_dsl::target::element::Element;
use std::fmt;

/// Segments of an array, defined by offsets on a device: segment `i` begins at offset `i` and ends
/// before offset `i + 1`.
///
/// `n` segments have `n + 1` ascending offsets. A segment between two equal offsets is empty.
/// Elements before the first offset, and elements from the last offset on, belong to no segment.
///
/// The type of the offsets, `u32` or `u64`, must be the `index` of the kernels that take the
/// segments. The offsets are checked when the segments are built and never change, so no launch
/// reads outside the array.
///
/// ```
/// use gemm_runtime::{Device, Segments};
///
/// let device = Device::simulator();
/// let segments: Segments = Segments::new(&device, &[0, 3, 3, 7])?;
/// assert_eq!((segments.len(), segments.end()), (3, 7));
/// let backwards = Segments::<u32>::new(&device, &[0, 3, 2]).unwrap_err();
/// assert!(backwards.to_string().contains("offset 2 is 2, but the one before it is 3"));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
pub struct Segments<I: Offset = u32> {
    offsets: Buffer<I>,
    end: u64,
}

/// Offset type of [`Segments`]: `u32` or `u64`.
///
/// ```
/// use gemm_runtime::bounds::Offset;
/// use gemm_runtime::{Device, Segments};
///
/// fn count<I: Offset>(device: &Device, offsets: &[I]) -> gemm_runtime::error::Result<usize> {
///     Ok(Segments::new(device, offsets)?.len())
/// }
///
/// let device = Device::simulator();
/// assert_eq!(count(&device, &[0_u32, 2, 5])?, 2);
/// assert_eq!(count(&device, &[0_u64, 2, 5])?, 2);
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "segment offsets are `u32` or `u64`, not `{Self}`",
    label = "`u32` or `u64`, as the `index` of the kernel",
    note = "convert them first, for example with `u32::try_from`"
)]
pub trait Offset: Element + Into<u64> {}

impl Offset for u32 {}
impl Offset for u64 {}

/// Segments with offsets of either type.
pub struct Cut<'a> {
    pub(crate) offsets: Box<dyn Readable + 'a>,
    pub(crate) count: u64,
    pub(crate) end: u64,
}

impl<I: Offset> Segments<I> {
    /// Builds segments from offsets in host memory, which are copied to the device.
    ///
    /// # Errors
    /// * [`Error::WrongExtent`] if there is no offset.
    /// * [`Error::Backwards`] if the offsets do not ascend.
    /// * The errors of [`Device::upload`].
    pub fn new(device: &Device, offsets: &[I]) -> Result<Self> {
        let end = end_of(offsets)?;
        Ok(Self { offsets: device.upload_of(offsets)?, end })
    }

    /// Builds segments from offsets in device memory, which are copied to the host once for
    /// checking.
    ///
    /// # Errors
    /// * The errors of [`Segments::new`].
    /// * The errors of [`Device::download`].
    pub fn from_buffer(device: &Device, offsets: Buffer<I>) -> Result<Self> {
        let end = end_of(&device.download(&offsets)?)?;
        Ok(Self { offsets, end })
    }

    /// Returns the number of segments.
    pub fn len(&self) -> usize {
        // There is at least one offset.
        self.offsets.len() - 1
    }

    /// Returns true if there are no segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the end of the last segment. Segmented arrays must have at least as many elements.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the offsets. There is one more offset than there are segments.
    pub fn offsets(&self) -> &Buffer<I> {
        &self.offsets
    }

    pub(crate) fn cut(&self) -> Cut<'_> {
        let (count, end) = (self.len() as u64, self.end);
        Cut { offsets: Box::new(&self.offsets), count, end }
    }
}

/// Last offset, after checking that the offsets ascend.
fn end_of<I: Offset>(offsets: &[I]) -> Result<u64> {
    let Some(&first) = offsets.first() else {
        let (argument, need) = ("offsets".to_owned(), "n segments have n + 1 of them".to_owned());
        return Err(Error::WrongExtent { argument, has: 0, need });
    };
    let mut before: u64 = first.into();
    for (index, &offset) in offsets.iter().enumerate() {
        let offset = offset.into();
        if offset < before {
            return Err(Error::Backwards { index, offset, before });
        }
        before = offset;
    }
    Ok(before)
}

impl<I: Offset> fmt::Debug for Segments<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segments")
            .field("offsets", &self.offsets)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
