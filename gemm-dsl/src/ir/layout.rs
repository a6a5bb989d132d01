//! Buffers and their layouts: the map from a logical index to an address.

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
    /// Logical extents, in elements: constants, and for a global buffer scalar parameters. For a
    /// list, the first is the number of its arrays.
    pub dims: Vec<Expr>,
    pub layout: BufferLayout,
    /// Description of the content, for the comment beside its declaration; may be empty.
    pub meaning: String,
    /// True if its final content may depend on the order in which blocks and threads run. A kernel
    /// declares this of a global buffer on purpose, for example if tickets assign the positions.
    pub unordered: bool,
    /// True if no thread accesses an element that another thread writes, however they are ordered.
    /// A kernel with inter-block synchronisation declares this of global buffers that it does not
    /// use to communicate. The simulator checks it.
    pub exclusive: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum BufferLayout {
    /// Separate C array (shared and register memory). Physical dimension `p` is logical dimension
    /// `order[p]`, the last one contiguous; each row ends with `pad` unused elements.
    Array {
        /// Permutation of the logical dimensions, outermost first.
        order: Vec<usize>,
        /// Extra elements of the physically last dimension: an integer constant.
        pad: Expr,
        /// Permutation of the elements of a row, if any.
        swizzle: Option<Swizzle>,
    },
    /// One or more read-only pointers into a global buffer. The extents are those of the array of
    /// pointers, none for a single pointer. An access has one additional index: the distance in
    /// elements from the pointer.
    Pointer { into: super::BufferId },
    /// Stride, in elements, for each logical dimension (global memory). Exactly one is the literal
    /// 1: the contiguous dimension.
    Strided {
        /// Expressions over constants and scalar parameters.
        strides: Vec<Expr>,
    },
    /// List of arrays in global memory, each with its own pointer. The first dimension selects an
    /// array; the others are strided as in [`BufferLayout::Strided`], with the same strides in each
    /// array.
    Listed {
        /// Expressions over constants and scalar parameters, one for each dimension but the first.
        strides: Vec<Expr>,
    },
    /// One array of a list, selected by a [`Stmt::Choose`](super::Stmt::Choose) in the body. Its
    /// extents and strides are those of the list without the first dimension.
    OfList { list: super::BufferId, strides: Vec<Expr> },
}

/// XOR swizzle of the elements of a physical row. In row `r` of the array, with the outer
/// dimensions flattened, physical column `c` holds the element of unswizzled column
/// `c ^ ((r >> shift) % 2^bits) << base`. It spreads a column over the banks of shared memory
/// without padding. 16-byte accesses need a `base` that keeps a vector together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// Number of column bits that are XORed.
    pub bits: u8,
    /// Lowest of these column bits.
    pub base: u8,
    /// Lowest row bit that is used.
    pub shift: u8,
}

impl Swizzle {
    /// Physical column of the element at unswizzled column `column` of row `row`.
    pub fn apply(self, row: u64, column: u64) -> u64 {
        column ^ (((row >> self.shift) & ((1 << self.bits) - 1)) << self.base)
    }
}

impl BufferLayout {
    /// C array in the logical order of `rank` dimensions, unpadded.
    pub fn row_major(rank: usize) -> BufferLayout {
        BufferLayout::Array { order: (0..rank).collect(), pad: Expr::I32(0), swizzle: None }
    }

    /// One dimension of consecutive elements.
    pub fn linear() -> BufferLayout {
        BufferLayout::Strided { strides: vec![Expr::I32(1)] }
    }

    /// Returns true if a launch binds memory of this layout.
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
    /// Physical extents of a C array, outermost first, padding included; `None` for other layouts.
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

    /// Logical dimension along which physically consecutive elements lie.
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
