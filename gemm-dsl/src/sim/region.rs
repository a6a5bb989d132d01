//! The buffers of a kernel, resolved for one launch: where each element of a logical index lies.

use super::Buffer;
use super::code::THREAD_Y;
use super::error::{FaultKind, Place, SimError};
use crate::ir::{Kernel, Layout, ParamKind, Scalars, Space};

/// One buffer with extents and strides in numbers.
pub(super) struct Region {
    pub(super) name: String,
    pub(super) space: Space,
    /// Logical extents.
    pub(super) dims: Vec<u64>,
    /// The distance between neighbours along each logical dimension, in words.
    pub(super) strides: Vec<u64>,
    /// The logical dimension along which a vector access lies.
    pub(super) contiguous: usize,
    /// Words allocated.
    pub(super) words: u64,
    /// The first word in shared memory, or the first lane slot of a register array.
    pub(super) base: u32,
    /// The word at which a global buffer starts, counted from a 32-byte boundary.
    pub(super) skew: u32,
    /// Whether every element inside the extents lies inside the allocation.
    pub(super) roomy: bool,
    /// The memory of a global buffer.
    pub(super) memory: Option<Buffer>,
}

/// The largest number of words of one buffer: their addresses are 32 bits wide.
const MAX_WORDS: u64 = u32::MAX as u64 - 8;
/// The largest number of elements of all register arrays together.
const MAX_REGISTERS: u64 = 1 << 16;
/// The first lane slot of register arrays: those before hold the coordinates of the thread.
const FIRST_SLOT: u32 = THREAD_Y + 1;

/// Resolves all buffers of the kernel; `memory` holds the global ones in parameter order. Returns
/// them with the words of shared memory and the end of the lane slots of register arrays.
pub(super) fn resolve(
    kernel: &Kernel,
    scalars: &Scalars,
    memory: &[Buffer],
) -> Result<(Vec<Region>, u32, u32), SimError> {
    let mut bound = vec![None; kernel.buffers.len()];
    let params = kernel.params.iter().filter_map(|p| match p.kind {
        ParamKind::Buffer { buffer, .. } => Some(buffer),
        ParamKind::Scalar { .. } => None,
    });
    for (buffer, memory) in params.zip(memory) {
        if let Some(slot) = bound.get_mut(buffer.0) {
            *slot = Some(memory.clone());
        }
    }
    let (mut shared, mut slots) = (0u64, u64::from(FIRST_SLOT));
    let mut regions = Vec::with_capacity(bound.len());
    for (buffer, bound) in kernel.buffers.iter().zip(bound) {
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
            Layout::Strided { strides } => {
                let strides = strides.iter().map(|s| number("a stride", s));
                let mut strides: Vec<u64> = strides.collect::<Result<_, _>>()?;
                strides.push(1);
                (strides, 0)
            }
            Layout::Pointer { .. } => (vec![0; dims.len()], 0),
            Layout::Array { order, pad } => {
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
        let words = match (&bound, buffer.space) {
            (Some(memory), _) => memory.len() as u64,
            (None, Space::Global) => 0,
            (None, _) => size,
        };
        if words > MAX_WORDS {
            return Err(SimError::ExtentRange {
                what: format!("the size of `{}`", buffer.name),
                value: words.into(),
                limit: MAX_WORDS,
            });
        }
        let mut base = 0;
        if buffer.space == Space::Shared {
            // Each array starts on 16 bytes. All together are within MAX_SHARED_BYTES.
            shared = shared.next_multiple_of(4);
            base = shared as u32;
            shared += words;
        }
        if buffer.space == Space::Register {
            base = slots as u32;
            slots += words;
            if slots > MAX_REGISTERS {
                return Err(SimError::ExtentRange {
                    what: format!("the register arrays up to `{}`", buffer.name),
                    value: slots.into(),
                    limit: MAX_REGISTERS,
                });
            }
        }
        let empty = dims.contains(&0);
        let spans = dims.iter().zip(&strides);
        let furthest: u128 =
            spans.map(|(&d, &s)| u128::from(d.saturating_sub(1)) * u128::from(s)).sum();
        if !empty && furthest > 1 << 62 {
            return Err(SimError::ExtentRange {
                what: format!("the distance of the last element of `{}`", buffer.name),
                value: furthest as i128,
                limit: 1 << 62,
            });
        }
        regions.push(Region {
            name: buffer.name.clone(),
            space: buffer.space,
            contiguous: buffer.contiguous_dim(),
            dims,
            strides,
            words,
            base,
            skew: bound.as_ref().map_or(0, |m| (m.byte_offset() / 4 % 8) as u32),
            roomy: empty || furthest < u128::from(words),
            memory: bound,
        });
    }
    Ok((regions, shared as u32, slots as u32))
}

impl Region {
    /// The element of a logical index.
    pub(super) fn place(&self, index: Vec<i128>) -> Place {
        Place { buffer: self.name.clone(), space: self.space, index }
    }

    /// The element that lies at a word of this buffer.
    pub(super) fn element(&self, word: u64) -> Place {
        let mut by_stride: Vec<usize> = (0..self.dims.len()).collect();
        by_stride.sort_by_key(|&d| std::cmp::Reverse((self.strides[d], self.dims[d] > 1)));
        let (mut index, mut rest) = (vec![0; self.dims.len()], word);
        for d in by_stride {
            if let Some(quotient) = rest.checked_div(self.strides[d]) {
                index[d] = quotient.into();
                rest %= self.strides[d];
            }
        }
        self.place(index)
    }

    /// The word of an element inside the extents.
    pub(super) fn word(&self, index: &[i128]) -> u32 {
        let steps = index.iter().zip(&self.strides);
        steps.fold(0, |word, (&i, &stride)| word + i as u32 * stride as u32)
    }

    /// The fault of an index outside the extents.
    pub(super) fn out_of_bounds(&self, index: Vec<i128>, vector: bool) -> FaultKind {
        FaultKind::OutOfBounds { place: self.place(index), extents: self.dims.clone(), vector }
    }
}
