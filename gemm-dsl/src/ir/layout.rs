//! Buffers and their layouts. A layout maps a logical index to an address.

use super::{Elem, Expr};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory, bound to a parameter by the launch.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Array private to one thread, held in registers if the compiler can resolve every index.
    Register,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub name: String,
    pub elem: Elem,
    pub space: Space,
    /// Logical extents, in elements. They are constants, or for a global buffer also expressions of
    /// scalar parameters. For a list, the first extent is the number of arrays.
    pub dims: Vec<Expr>,
    pub layout: BufferLayout,
    /// Description of the content for the comment next to the declaration; may be empty.
    pub meaning: String,
    /// True if the buffer's final content may depend on the order in which blocks and threads run.
    /// A kernel declares this on purpose, for example if tickets assign positions in the buffer.
    pub unordered: bool,
    /// True if no thread accesses an element that another thread writes, even if the accesses are
    /// ordered. A kernel with inter-block synchronisation declares this for each global buffer that
    /// it does not use for communication. The simulator checks this.
    pub exclusive: bool,
    /// True if the last two dimensions are those of the operand in reverse order, for a
    /// column-major matrix.
    pub transposed: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BufferLayout {
    /// Separate C array in shared or register memory. Physical dimension `p` is logical dimension
    /// `order[p]`, and the last physical dimension is contiguous. Each row ends with `pad` unused
    /// elements.
    Array {
        /// Permutation of the logical dimensions, outermost first.
        order: Vec<usize>,
        /// Unused elements at the end of the last physical dimension: an integer constant.
        pad: Expr,
        /// Permutation of the elements inside a row, if any.
        swizzle: Option<Swizzle>,
    },
    /// One pointer or an array of pointers, read-only, into a global buffer. The buffer's extents
    /// are those of the array of pointers; a single pointer has none. An access has one additional
    /// index, the distance from the pointer in elements.
    Pointer { into: super::BufferId },
    /// Array in global memory with a stride for each logical dimension, in elements. Exactly one
    /// stride, that of the contiguous dimension, is the literal 1.
    Strided {
        /// Expressions over constants and scalar parameters.
        strides: Vec<Expr>,
    },
    /// List of arrays in global memory, each with its own pointer. The first dimension selects an
    /// array. The other dimensions are strided as in [`BufferLayout::Strided`], and all arrays have
    /// the same strides.
    Listed {
        /// Expressions over constants and scalar parameters, one for each dimension except the
        /// first.
        strides: Vec<Expr>,
    },
    /// One array of a list. A [`Stmt::Choose`](super::Stmt::Choose) in the body selects the array.
    /// Its extents and strides are the list's, without the first dimension.
    OfList { list: super::BufferId, strides: Vec<Expr> },
}

/// XOR swizzle of the elements of a physical row. Let `r` be the row of the array with its outer
/// dimensions flattened. Physical column `c` of the row holds the element of unswizzled column
/// `c ^ ((r >> shift) % 2^bits) << base`. A column is thereby spread over the banks of shared
/// memory without padding. If accesses have 16 bytes, `base` must be large enough to keep a vector
/// together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// Number of column bits that are XORed.
    pub bits: u8,
    /// Lowest of these column bits.
    pub base: u8,
    /// Lowest of the row bits with which they are XORed.
    pub shift: u8,
}

impl Swizzle {
    /// Physical column of the element at unswizzled column `column` of row `row`.
    pub fn apply(self, row: u64, column: u64) -> u64 {
        column ^ (((row >> self.shift) & ((1 << self.bits) - 1)) << self.base)
    }
}

impl BufferLayout {
    /// C array without padding, in the logical order of `rank` dimensions.
    pub fn row_major(rank: usize) -> BufferLayout {
        BufferLayout::Array { order: (0..rank).collect(), pad: Expr::I32(0), swizzle: None }
    }

    /// One dimension of consecutive elements.
    pub fn linear() -> BufferLayout {
        BufferLayout::Strided { strides: vec![Expr::I32(1)] }
    }

    /// Returns true if a launch binds memory to a buffer with this layout.
    pub fn is_bound(&self) -> bool {
        match self {
            BufferLayout::Strided { .. } | BufferLayout::Listed { .. } => true,
            BufferLayout::Array { .. }
            | BufferLayout::Pointer { .. }
            | BufferLayout::OfList { .. } => false,
        }
    }
}

impl Buffer {
    /// Physical extents of a C array, outermost first, including padding; `None` for other layouts.
    pub fn physical_dims(&self) -> Option<Vec<Expr>> {
        let BufferLayout::Array { order, pad, .. } = &self.layout else {
            return None;
        };
        let mut dims: Vec<Expr> = order.iter().map(|&d| self.dims[d].clone()).collect();
        if let Some(last) = dims.pop() {
            dims.push(last + pad.clone());
        }
        Some(dims)
    }

    /// Logical dimension whose consecutive elements are adjacent in memory.
    pub fn contiguous_dim(&self) -> usize {
        let unit = |strides: &[Expr]| {
            let found = strides.iter().position(|stride| *stride == Expr::I32(1));
            found.unwrap_or_else(|| unreachable!("verify: one stride is 1"))
        };
        match &self.layout {
            BufferLayout::Array { order, .. } => order.last().copied().unwrap_or(0),
            BufferLayout::Strided { strides } | BufferLayout::OfList { strides, .. } => {
                unit(strides)
            }
            BufferLayout::Listed { strides } => 1 + unit(strides),
            BufferLayout::Pointer { .. } => self.dims.len(),
        }
    }
}
