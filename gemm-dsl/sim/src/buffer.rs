//! Simulated global memory.

pub(crate) mod numbered_memory;
use gemm_dsl::ir::Elem;
use gemm_dsl::ir::contract::{meet, united};
use gemm_dsl::target::element::Element;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Array, or view of an array, in simulated global memory.
///
/// Clones and views share the same memory, like copies of a pointer. Elements are atomic and every
/// access is relaxed, so the blocks of a launch and concurrent launches may share a buffer. Only
/// the race detector checks the order of accesses. An allocation is aligned to 256 bytes.
#[derive(Clone)]
pub struct Buffer {
    elem: Elem,
    cells: Cells,
    start: usize,
    len: usize,
}

/// Argument for a buffer parameter.
#[derive(Clone, Debug)]
pub enum BufferArg {
    One(Buffer),
    /// List of arrays of one element type, for a parameter that is an array of pointers. A list
    /// that the kernel only reads may contain the same array twice.
    List(Vec<Buffer>),
}

impl BufferArg {
    pub(super) fn buffers(&self) -> &[Buffer] {
        match self {
            BufferArg::One(buffer) => std::slice::from_ref(buffer),
            BufferArg::List(buffers) => buffers,
        }
    }

    /// Copies the elements into new allocations.
    pub fn copied(&self) -> Self {
        match self {
            BufferArg::One(buffer) => BufferArg::One(buffer.copied()),
            BufferArg::List(buffers) => {
                BufferArg::List(buffers.iter().map(Buffer::copied).collect())
            }
        }
    }

    /// Returns true if the two arguments share an element.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let memory = |given: &Self| {
            let ranges = given.buffers().iter().map(Buffer::addresses);
            united(ranges.map(|range| range.start as u64..range.end as u64).collect())
        };
        meet(&memory(self), &memory(other))
    }
}

impl From<Buffer> for BufferArg {
    fn from(buffer: Buffer) -> Self {
        BufferArg::One(buffer)
    }
}

/// Elements, stored by their size in bytes.
#[derive(Clone)]
pub(super) enum Cells {
    One(Arc<[AtomicU8]>),
    Two(Arc<[AtomicU16]>),
    Four(Arc<[AtomicU32]>),
    Eight(Arc<[AtomicU64]>),
}

/// Evaluates an expression with the cells of whichever element size a buffer has.
macro_rules! with_cells {
    ($cells:expr, $name:ident => $body:expr) => {
        match $cells {
            Cells::One($name) => $body,
            Cells::Two($name) => $body,
            Cells::Four($name) => $body,
            Cells::Eight($name) => $body,
        }
    };
}

impl Buffer {
    /// Allocates a buffer with a bitwise copy of `values`.
    pub fn from_slice<T: Element>(values: &[T]) -> Self {
        Self::from_bits(T::ELEM, values.iter().map(|v| v.into_bits()))
    }

    /// Allocates a buffer from the bits of its elements, zero-extended to 64 bits.
    pub fn from_bits(elem: Elem, bits: impl ExactSizeIterator<Item = u64>) -> Self {
        let len = bits.len();
        let cells = match elem.size() {
            1 => Cells::One(bits.map(|b| AtomicU8::new(b as u8)).collect()),
            2 => Cells::Two(bits.map(|b| AtomicU16::new(b as u16)).collect()),
            4 => Cells::Four(bits.map(|b| AtomicU32::new(b as u32)).collect()),
            _ => Cells::Eight(bits.map(AtomicU64::new).collect()),
        };
        Self { elem, cells, start: 0, len }
    }

    /// Allocates a buffer with a bitwise copy of `values`.
    pub fn from_f32(values: &[f32]) -> Self {
        Self::from_slice(values)
    }

    /// Allocates `len` zeros of `F32`.
    pub fn zeros(len: usize) -> Self {
        Self::zeros_of(Elem::F32, len)
    }

    /// Allocates `len` zeros of type `elem`.
    pub fn zeros_of(elem: Elem, len: usize) -> Self {
        let cells = match elem.size() {
            1 => Cells::One((0..len).map(|_| AtomicU8::new(0)).collect()),
            2 => Cells::Two((0..len).map(|_| AtomicU16::new(0)).collect()),
            4 => Cells::Four((0..len).map(|_| AtomicU32::new(0)).collect()),
            _ => Cells::Eight((0..len).map(|_| AtomicU64::new(0)).collect()),
        };
        Self { elem, cells, start: 0, len }
    }

    /// Copies the elements bit for bit to values of a type of the same size. `None` if the sizes
    /// differ.
    #[allow(clippy::useless_conversion, reason = "one macro for cells of every size")]
    pub fn to_vec_of<T: Element>(&self) -> Option<Vec<T>> {
        let range = self.start..self.start + self.len;
        (T::ELEM.size() == self.elem.size()).then(|| {
            with_cells!(&self.cells, cells => {
                let cells = cells[range].iter();
                cells.map(|c| T::from_bits(c.load(Ordering::Relaxed).into())).collect()
            })
        })
    }

    /// Bits of all elements, zero-extended to 64 bits.
    pub fn bits(&self) -> Vec<u64> {
        (0..self.len).map(|at| self.read(at)).collect()
    }

    /// Copies the elements of an `F32` buffer bit for bit. The result is empty if elements do not
    /// have 4 bytes.
    pub fn to_vec(&self) -> Vec<f32> {
        self.to_vec_of().unwrap_or_default()
    }

    /// Overwrites the first `values.len()` elements. If there are more values than elements, or
    /// their sizes differ, it returns false and writes nothing.
    pub fn copy_from<T: Element>(&self, values: &[T]) -> bool {
        let fits = values.len() <= self.len && T::ELEM.size() == self.elem.size();
        if fits {
            for (i, value) in values.iter().enumerate() {
                self.write(i, value.into_bits());
            }
        }
        fits
    }

    /// Copies the first `values.len()` elements bit for bit. If there are more values than
    /// elements, or their sizes differ, it returns false and copies nothing.
    pub fn copy_to<T: Element>(&self, values: &mut [T]) -> bool {
        let fits = values.len() <= self.len && T::ELEM.size() == self.elem.size();
        if fits {
            for (i, value) in values.iter_mut().enumerate() {
                *value = T::from_bits(self.read(i));
            }
        }
        fits
    }

    /// Overwrites the first elements with those of another buffer, bit for bit. If the other buffer
    /// is longer, or the element sizes differ, it returns false and writes nothing.
    pub fn copy_of(&self, other: &Self) -> bool {
        let fits = other.len <= self.len && other.elem.size() == self.elem.size();
        if fits {
            for at in 0..other.len {
                self.write(at, other.read(at));
            }
        }
        fits
    }

    pub fn zero(&self) {
        let range = self.start..self.start + self.len;
        with_cells!(&self.cells, cells => {
            cells[range].iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
        });
    }

    pub fn elem(&self) -> Elem {
        self.elem
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the elements `offset .. offset + len` as a view of the same memory, or `None` if
    /// they are out of bounds. If the offset is not a multiple of 16 bytes, the base of the view is
    /// misaligned.
    pub fn view(&self, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Self {
            elem: self.elem,
            cells: self.cells.clone(),
            start: self.start + offset,
            len,
        })
    }

    /// Returns the same memory with elements of another type, or `None` if that type has another
    /// size.
    pub fn reinterpreted(&self, elem: Elem) -> Option<Self> {
        (elem.size() == self.elem.size()).then(|| Self { elem, ..self.clone() })
    }

    /// Offset of the first element from the start of the allocation, in bytes.
    pub fn byte_offset(&self) -> u64 {
        u64::from(self.elem.size()) * self.start as u64
    }

    /// Returns true if both buffers view one allocation.
    pub(super) fn is_of_same_allocation(&self, other: &Self) -> bool {
        match (&self.cells, &other.cells) {
            (Cells::One(a), Cells::One(b)) => Arc::ptr_eq(a, b),
            (Cells::Two(a), Cells::Two(b)) => Arc::ptr_eq(a, b),
            (Cells::Four(a), Cells::Four(b)) => Arc::ptr_eq(a, b),
            (Cells::Eight(a), Cells::Eight(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Copies the current content into a new allocation.
    pub(super) fn copied(&self) -> Self {
        let range = self.start..self.start + self.len;
        macro_rules! copied {
            ($cells:expr, $atomic:ident) => {
                $cells[range].iter().map(|c| $atomic::new(c.load(Ordering::Relaxed))).collect()
            };
        }
        let cells = match &self.cells {
            Cells::One(cells) => Cells::One(copied!(cells, AtomicU8)),
            Cells::Two(cells) => Cells::Two(copied!(cells, AtomicU16)),
            Cells::Four(cells) => Cells::Four(copied!(cells, AtomicU32)),
            Cells::Eight(cells) => Cells::Eight(copied!(cells, AtomicU64)),
        };
        Self { elem: self.elem, cells, start: 0, len: self.len }
    }

    /// Range of the elements within the allocation.
    pub(super) fn elements(&self) -> Range<usize> {
        self.start..self.start + self.len
    }

    /// Returns a view of other elements of the same allocation, which must contain them.
    pub(super) fn of_allocation(&self, Range { start, end }: Range<usize>) -> Self {
        Self { elem: self.elem, cells: self.cells.clone(), start, len: end - start }
    }

    /// Host addresses of the elements. Elements of different allocations never share an address.
    pub fn addresses(&self) -> Range<usize> {
        let range = self.start..self.start + self.len;
        with_cells!(&self.cells, cells => {
            let cells = cells[range].as_ptr_range();
            cells.start.addr()..cells.end.addr()
        })
    }

    /// Cells of 4-byte elements; `None` for other sizes.
    pub(super) fn words(&self) -> Option<&[AtomicU32]> {
        match &self.cells {
            Cells::Four(cells) => cells.get(self.start..self.start + self.len),
            _ => None,
        }
    }

    #[allow(clippy::useless_conversion, reason = "one macro for cells of every size")]
    #[inline]
    pub(super) fn read(&self, at: usize) -> u64 {
        let at = self.start + at;
        with_cells!(&self.cells, cells => cells[at].load(Ordering::Relaxed).into())
    }

    #[inline]
    pub(super) fn write(&self, at: usize, bits: u64) {
        let at = self.start + at;
        match &self.cells {
            Cells::One(cells) => cells[at].store(bits as u8, Ordering::Relaxed),
            Cells::Two(cells) => cells[at].store(bits as u16, Ordering::Relaxed),
            Cells::Four(cells) => cells[at].store(bits as u32, Ordering::Relaxed),
            Cells::Eight(cells) => cells[at].store(bits, Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("elem", &self.elem)
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
