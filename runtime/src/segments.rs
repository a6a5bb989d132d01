//! Segments of an array, as a reduction over segments takes them.

use crate::buffer::Buffer;
use crate::device::Device;
use crate::dyn_array::Readable;
use crate::error::{Error, Result};
use gemm_dsl::target::element::Element;
use std::fmt;

/// The segments that an array is cut into, by offsets on a device: segment `i` goes from offset `i` up to offset
/// `i + 1`, so that `n` segments have `n + 1` offsets. They ascend; a segment between two equal ones is empty.
/// Elements before the first offset and behind the last one belong to no segment.
///
/// The offsets are of the `index` of the kernels that take them, `u32` or `u64`. They were checked when the segments
/// were made and are not changed any more, so that no launch reads an element beside the array.
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

/// The type of the offsets of [`Segments`]: `u32` or `u64`.
#[diagnostic::on_unimplemented(
    message = "offsets of segments are of `u32` or `u64`, not of `{Self}`",
    label = "`u32` or `u64`, as the `index` of the kernel",
    note = "convert them first, such as by `u32::try_from`"
)]
pub trait Offset: Element + Into<u64> {}

impl Offset for u32 {}
impl Offset for u64 {}

/// Segments by offsets of either type.
pub struct Cut<'a> {
    pub(crate) offsets: Box<dyn Readable + 'a>,
    pub(crate) count: u64,
    pub(crate) end: u64,
}

impl<I: Offset> Segments<I> {
    /// Segments by offsets of the host, which are copied to the device.
    ///
    /// # Errors
    /// [`Error::WrongExtent`] where there is no offset, [`Error::Backwards`] where they do not ascend, and those of
    /// [`Device::upload`].
    pub fn new(device: &Device, offsets: &[I]) -> Result<Self> {
        let end = end_of(offsets)?;
        Ok(Self { offsets: device.upload_of(offsets)?, end })
    }

    /// Segments by offsets that lie on the device. They are copied to the host once, to be checked.
    ///
    /// # Errors
    /// As [`Segments::new`], and those of [`Device::download`].
    pub fn from_buffer(device: &Device, offsets: Buffer<I>) -> Result<Self> {
        let end = end_of(&device.download(&offsets)?)?;
        Ok(Self { offsets, end })
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        // There is an offset.
        self.offsets.len() - 1
    }

    /// Whether there are no segments.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The end of the last segment: the arrays that are cut have at least so many elements.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The offsets.
    pub fn offsets(&self) -> &Buffer<I> {
        &self.offsets
    }

    pub(crate) fn cut(&self) -> Cut<'_> {
        let (count, end) = (self.len() as u64, self.end);
        Cut { offsets: Box::new(&self.offsets), count, end }
    }
}

/// The last of offsets that ascend.
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
