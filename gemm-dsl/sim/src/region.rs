//! Buffers of a kernel with the sizes of one launch. A region maps logical indices to elements.

use super::buffer::BufferArg;
use super::error::{FaultKind, Position, SimError};
use crate::buffer::numbered_memory::{ListedArray, NumberedMemory};
use crate::cost::SECTOR;
use gemm_dsl::ir::{
    Buffer, BufferLayout, Elem, Kernel, ParamKind, Scalars, Space, Swizzle, VECTOR_BYTES,
};

/// Buffer with numeric extents and strides. Every element inside the extents is inside the
/// allocation: the contract checks the spans of parameters, and other arrays are allocated with
/// their size.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) elem: Elem,
    pub(super) space: Space,
    pub(super) dims: Vec<u64>,
    /// Stride of each logical dimension, in elements. The first dimension of a list has stride 0.
    pub(super) strides: Vec<u64>,
    /// Arrays of a list, indexed by the first dimension.
    pub(super) list: Option<Vec<ListedArray>>,
    /// Swizzle of a row's elements, and the row length in elements.
    pub(super) swizzle: Option<(Swizzle, u32)>,
    /// Logical dimension along which vectors are accessed.
    pub(super) contiguous: usize,
    pub(super) len: u64,
    /// First word of an array in shared memory, or first lane slot of a register array.
    pub(super) base: u32,
    /// Number of the first element, if the elements of all shared arrays are numbered together.
    pub(super) shadow: u32,
    /// Distance of a global buffer from a 32-byte boundary, in elements.
    pub(super) skew: u32,
    pub(super) memory: Option<NumberedMemory>,
    /// Argument that is bound to a buffer parameter.
    pub(super) given: Option<BufferArg>,
}

/// Buffer number and element number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ElementId {
    pub(crate) buffer: usize,
    pub(crate) element: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SharedSize {
    /// Size in words of 4 bytes.
    pub(super) words: u32,
    /// Size in elements, if each array starts at a multiple of 16 elements.
    pub(super) elements: u32,
}

/// Maximum number of arrays in a list, because a simulated pointer contains the array number and
/// the position.
const MAX_LISTED: u64 = 1 << 22;
/// Maximum number of elements of one buffer, because element numbers have 32 bits.
const MAX_ELEMENTS: u64 = u32::MAX as u64 - 32;
/// Maximum number of lane slots of all register arrays together.
const MAX_REGISTERS: u64 = 1 << 16;
/// Maximum number of elements in a vector. The numbers of a shared array start at a multiple of it.
const MOST_LANES: u64 = VECTOR_BYTES as u64;
/// First lane slot of register arrays. The slots before it contain the thread's coordinates.
const FIRST_SLOT: u32 = THREAD_Y + 1;

/// Lane slot with `threadIdx.x`.
pub(crate) const THREAD_X: u32 = 0;
/// Lane slot with `threadIdx.y`.
pub(crate) const THREAD_Y: u32 = 1;

/// Numeric extents and strides of a buffer. For an array that the kernel declares itself, also its
/// size in elements.
struct Extents {
    dims: Vec<u64>,
    strides: Vec<u64>,
    size: u64,
}

impl Extents {
    fn new(kernel: &Kernel, scalars: &Scalars, buffer: &Buffer) -> Result<Self, SimError> {
        let number = |what: &str, expr| {
            let what = || format!("{what} of `{}`", buffer.name);
            let value = kernel.eval(expr, scalars);
            let value = value.map_err(|reason| SimError::Extent { what: what(), reason })?;
            let number = u64::try_from(value).ok();
            number.filter(|&n| n <= 1 << 48).ok_or_else(|| SimError::ExtentRange {
                what: what(),
                value,
                limit: 1 << 48,
            })
        };
        let dims = buffer.dims.iter();
        let dims: Vec<u64> = dims.map(|d| number("an extent", d)).collect::<Result<_, _>>()?;
        let (strides, size) = match &buffer.layout {
            BufferLayout::Strided { strides } | BufferLayout::OfList { strides, .. } => {
                let strides = strides.iter().map(|s| number("a stride", s));
                (strides.collect::<Result<_, _>>()?, 0)
            }
            BufferLayout::Listed { strides } => {
                let strides = strides.iter().map(|s| number("a stride", s));
                ([Ok(0)].into_iter().chain(strides).collect::<Result<_, _>>()?, 0)
            }
            BufferLayout::Pointer { .. } => (vec![0; dims.len()], 0),
            BufferLayout::Array { order, pad, .. } => {
                let pad = number("the padding", pad)?;
                let mut strides = vec![0; dims.len()];
                let mut size: u64 = 1;
                for (position, &dim) in order.iter().enumerate().rev() {
                    strides[dim] = size;
                    let last = position + 1 == order.len();
                    size = size.saturating_mul(dims[dim] + if last { pad } else { 0 });
                }
                (strides, size)
            }
        };
        Ok(Self { dims, strides, size })
    }
}

/// Returns [`SimError::ExtentRange`] if a number exceeds its limit.
fn limited(number: u64, limit: u64, what: impl FnOnce() -> String) -> Result<(), SimError> {
    match number <= limit {
        true => Ok(()),
        false => Err(SimError::ExtentRange { what: what(), value: number.into(), limit }),
    }
}

/// Resolves all buffers of the kernel. `memory` contains the global buffers in parameter order.
/// Returns the regions, the size of shared memory, and the end of the lane slots of register
/// arrays.
pub(super) fn resolve(
    kernel: &Kernel,
    scalars: &Scalars,
    memory: &[BufferArg],
) -> Result<(Vec<Region>, SharedSize, u32), SimError> {
    let mut bound = vec![None; kernel.buffers.len()];
    let params = kernel.params.iter().filter_map(|p| match p.kind {
        ParamKind::Buffer { buffer, .. } | ParamKind::TensorMap { buffer, .. } => Some(buffer),
        ParamKind::Scalar { .. } => None,
    });
    for (buffer, memory) in params.zip(memory) {
        bound[buffer.id] = Some(memory.clone());
    }
    let (mut shared, mut elements, mut slots) = (0u64, 0u64, u64::from(FIRST_SLOT));
    let mut regions = Vec::with_capacity(bound.len());
    let alignments = kernel.alignments();
    for ((buffer, bound), alignment) in kernel.buffers.iter().zip(bound).zip(alignments) {
        let Extents { dims, strides, size } = Extents::new(kernel, scalars, buffer)?;
        let skew = match &bound {
            Some(BufferArg::One(of)) => of.byte_offset() % SECTOR / u64::from(buffer.elem.size()),
            Some(BufferArg::List(_)) | None => 0,
        };
        let (memory, list) = bound.as_ref().map(NumberedMemory::new).unzip();
        let len = match (&memory, buffer.space) {
            (Some(memory), _) => memory.len() as u64,
            (None, Space::Global) => 0,
            (None, _) => size,
        };
        let listed = list.as_ref().and_then(Option::as_ref).map_or(0, Vec::len) as u64;
        limited(listed, MAX_LISTED, || format!("the number of arrays of `{}`", buffer.name))?;
        limited(len, MAX_ELEMENTS, || format!("the size of `{}`", buffer.name))?;
        let (mut base, mut shadow) = (0, 0);
        if buffer.space == Space::Shared {
            // Each array is aligned to at least 16 bytes. The verifier has checked that all arrays
            // fit in the shared memory of a block.
            shared = shared.next_multiple_of(alignment / 4);
            base = shared as u32;
            shared += (len * u64::from(buffer.elem.size())).div_ceil(4);
            elements = elements.next_multiple_of(MOST_LANES);
            shadow = elements as u32;
            elements += len;
        }
        if buffer.space == Space::Register {
            base = slots as u32;
            slots += len * u64::from(slots_of(buffer.elem));
            let what = || format!("the register arrays up to `{}`", buffer.name);
            limited(slots, MAX_REGISTERS, what)?;
        }
        let swizzle = match &buffer.layout {
            BufferLayout::Array { order, swizzle: Some(swizzle), .. } => {
                let row = order.iter().rev().nth(1).map_or(0, |&outer| strides[outer]);
                Some((*swizzle, row as u32))
            }
            _ => None,
        };
        regions.push(Region {
            name: buffer.name.clone(),
            elem: buffer.elem,
            space: buffer.space,
            contiguous: buffer.contiguous_dim(),
            dims,
            strides,
            list: list.flatten(),
            swizzle,
            len,
            base,
            shadow,
            skew: skew as u32,
            memory,
            given: bound,
        });
    }
    Ok((regions, SharedSize { words: shared as u32, elements: elements as u32 }, slots as u32))
}

/// Number of lane slots per element of a register array.
pub(super) fn slots_of(elem: Elem) -> u32 {
    elem.size().div_ceil(4)
}

impl Region {
    /// Returns true if both are the same elements of one array, in the same layout.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let start = |region: &Self| match &region.given {
            Some(BufferArg::One(buffer)) => Some(buffer.addresses().start),
            Some(BufferArg::List(_)) | None => None,
        };
        self.elem == other.elem
            && self.dims == other.dims
            && self.strides == other.strides
            && start(self).is_some_and(|own| start(other) == Some(own))
    }

    /// Position for a logical index at which there is no element.
    pub(super) fn nowhere(&self, index: Vec<i128>) -> Position {
        Position { buffer: self.name.clone(), space: self.space, index, at: None }
    }

    /// Position of the element at an offset in this buffer. In a list, it is in the first array
    /// that contains the element.
    pub(super) fn element(&self, offset: u32) -> Position {
        let named = |index| Position { at: Some(u64::from(offset)), ..self.nowhere(index) };
        let Some(list) = &self.list else { return named(self.index(offset, 0)) };
        let of = |(nth, array): (usize, &ListedArray)| {
            let rest = u64::from(offset).checked_sub(array.first)?;
            let mut index = self.index(rest as u32, 1);
            let inside = index.iter().zip(&self.dims).all(|(i, dim)| *i < i128::from(*dim));
            index[0] = nth as i128;
            inside.then_some(index)
        };
        let index = list.iter().enumerate().find_map(of);
        named(index.unwrap_or_else(|| vec![0, offset.into()]))
    }

    /// Logical index of an offset along the dimensions from `from` on. The index is 0 along the
    /// other dimensions.
    fn index(&self, offset: u32, from: usize) -> Vec<i128> {
        let mut by_stride: Vec<usize> = (from..self.dims.len()).collect();
        by_stride.sort_by_key(|&d| std::cmp::Reverse((self.strides[d], self.dims[d] > 1)));
        let mut rest = u64::from(self.exchanged(offset));
        let mut index = vec![0; self.dims.len()];
        for d in by_stride {
            if let Some(quotient) = rest.checked_div(self.strides[d]) {
                index[d] = quotient.into();
                rest %= self.strides[d];
            }
        }
        index
    }

    /// Number of the first element of an array in a list; 0 if there is no such array.
    #[inline]
    pub(super) fn first_of(list: &[ListedArray], nth: u64) -> u32 {
        let array = usize::try_from(nth).ok().and_then(|nth| list.get(nth));
        array.map_or(0, |array| array.first as u32)
    }

    /// Offset of an index that is within bounds, in elements. It must not be used for lists.
    pub(super) fn offset(&self, index: &[i128]) -> u32 {
        let steps = index.iter().zip(&self.strides);
        let linear = steps.fold(0, |offset, (&i, &stride)| offset + i as u32 * stride as u32);
        self.exchanged(linear)
    }

    /// Distance of a logical index from the first element of the buffer, in elements. The index may
    /// be out of bounds. `None` if a list has no such array.
    pub(super) fn distance(&self, index: &[i128]) -> Option<i64> {
        let (first, from) = match &self.list {
            Some(list) => (list.get(usize::try_from(*index.first()?).ok()?)?.first, 1),
            None => (0, 0),
        };
        let steps = index.iter().zip(&self.strides).skip(from);
        let at = steps.fold(i128::from(first), |at, (i, stride)| at + i * i128::from(*stride));
        let exchanged = |at: u32| i128::from(self.exchanged(at));
        i64::try_from(u32::try_from(at).map_or(at, exchanged)).ok()
    }

    /// Returns true if an access of `width` elements at this position is aligned. The position may
    /// be out of bounds. Always true for width 1.
    pub(super) fn is_aligned(&self, at: i64, width: u32) -> bool {
        (at + i64::from(self.skew)).rem_euclid(width.into()) == 0
    }

    /// Applies the swizzle to an offset. A swizzle is its own inverse.
    #[inline]
    pub(super) fn exchanged(&self, offset: u32) -> u32 {
        match self.swizzle {
            Some((swizzle, row)) if row > 0 => {
                let (at, column) = (offset / row, offset % row);
                at * row + swizzle.apply(at.into(), column.into()) as u32
            }
            _ => offset,
        }
    }

    /// Byte offset of an element in global memory, relative to a sector boundary.
    #[inline]
    pub(super) fn byte(&self, offset: u32) -> u64 {
        (u64::from(offset) + u64::from(self.skew)) * u64::from(self.elem.size())
    }

    /// Number of elements per access: the vector width, or 1.
    #[inline]
    pub(super) fn width(&self, vector: bool) -> u32 {
        if vector { self.elem.vector_lanes().into() } else { 1 }
    }

    /// Creates the fault for an index that is out of bounds.
    pub(super) fn out_of_bounds(&self, index: Vec<i128>, vector: bool) -> FaultKind {
        let (extents, width) = (self.dims.clone(), self.width(vector));
        FaultKind::OutOfBounds { place: self.nowhere(index), extents, width }
    }
}
