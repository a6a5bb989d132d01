//! Buffers and their layouts: where the element of a logical index lies.

use super::{Elem, Expr};

/// A memory space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Device memory, bound to a parameter by the launch.
    Global,
    /// Memory of the block.
    Shared,
    /// An array of one thread, held in registers where the compiler can resolve every index.
    Register,
}

/// A buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Its name in the text.
    pub name: String,
    /// What its elements are.
    pub elem: Elem,
    /// Where it lives.
    pub space: Space,
    /// The logical extents, in elements: constants, and for a global buffer scalar parameters. Of a list
    /// the first is the number of its arrays.
    pub dims: Vec<Expr>,
    /// Where an element lies.
    pub layout: BufferLayout,
    /// What it holds, for the comment beside its declaration; may be empty.
    pub meaning: String,
    /// Whether what it holds at the end may depend on the order in which blocks and threads run: declared of a
    /// global buffer by a kernel that means it to, as where tickets say what lies where.
    pub unordered: bool,
    /// Whether no thread accesses an element that another one writes, however they are ordered: declared of a global
    /// buffer by a kernel whose blocks speak to one another, but not by it. The simulator holds it to that.
    pub exclusive: bool,
}

/// The map from a logical index to a place in a buffer.
#[derive(Clone, Debug, PartialEq)]
pub enum BufferLayout {
    /// A C array of its own (shared and register memory). Physical dimension `p` is logical
    /// dimension `order[p]`, the last one contiguous; each row has `pad` unused elements at its end.
    Array {
        /// A permutation of the logical dimensions, outermost first.
        order: Vec<usize>,
        /// Extra elements of the physically last dimension: an integer constant.
        pad: Expr,
        /// How the elements of a row are exchanged, if they are.
        swizzle: Option<Swizzle>,
    },
    /// One or more pointers into a global buffer, for reading. The extents are those of the array of
    /// pointers, none for a single one; an access has one more index, the distance in elements from
    /// where the pointer stands.
    Pointer {
        /// The buffer pointed into.
        into: super::BufferId,
    },
    /// A stride, in elements, for each logical dimension (global memory). Exactly one is the literal
    /// 1: along that dimension consecutive elements lie.
    Strided {
        /// Expressions over constants and scalar parameters.
        strides: Vec<Expr>,
    },
    /// A list of arrays in global memory, each wherever its pointer says: the first dimension selects one,
    /// the others have strides as [`BufferLayout::Strided`] says, the same in each.
    Listed {
        /// Expressions over constants and scalar parameters, one for each dimension but the first.
        strides: Vec<Expr>,
    },
    /// One array of a list, which a [`Stmt::Choose`](super::Stmt::Choose) in the body chooses: its extents and
    /// strides are those of the list behind the first.
    OfList {
        /// The list.
        list: super::BufferId,
        /// As those of the list.
        strides: Vec<Expr>,
    },
}

/// An exchange of the elements of a physical row by exclusive or: in row `r` of the array, with the
/// outer dimensions flattened, physical column `c` holds what would lie at column
/// `c ^ ((r >> shift) % 2^bits) << base`. It spreads a column over the banks of shared memory without
/// padding. 16-byte accesses need a `base` that leaves a vector together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Swizzle {
    /// How many bits of the column are exchanged.
    pub bits: u8,
    /// The lowest of them.
    pub base: u8,
    /// The lowest bit of the row that takes part.
    pub shift: u8,
}

impl Swizzle {
    /// The physical column of an element of row `row` that would lie at `column`.
    pub fn apply(self, row: u64, column: u64) -> u64 {
        column ^ (((row >> self.shift) & ((1 << self.bits) - 1)) << self.base)
    }
}

impl BufferLayout {
    /// The C array that follows the logical order of `rank` dimensions, unpadded.
    pub fn row_major(rank: usize) -> BufferLayout {
        BufferLayout::Array { order: (0..rank).collect(), pad: Expr::I32(0), swizzle: None }
    }

    /// One dimension of consecutive elements.
    pub fn linear() -> BufferLayout {
        BufferLayout::Strided { strides: vec![Expr::I32(1)] }
    }

    /// Whether it is that of memory which a launch binds.
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
    /// The physical extents of a C array, outermost first, padding included; `None` if strided.
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

    /// The logical dimension along which physically consecutive elements lie, of a verified buffer.
    /// An array without dimensions has one element: its answer is 0.
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
