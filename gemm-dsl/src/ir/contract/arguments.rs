//! Arguments of a launch, and the checked call built from them.

use crate::ir::{Elem, Extent, Operand, TensorMap};
use smallvec::SmallVec;

/// Bits of the scalar parameters of a kernel. Few kernels have more parameters.
pub type ScalarBits = SmallVec<[u64; 16]>;

/// Array that a launch passes to a buffer parameter.
#[derive(Clone, Copy, Debug)]
pub struct BoundArray<'a> {
    /// Name that the caller gives the array.
    pub name: &'a str,
    pub elem: Elem,
    /// Location of the array; for a list, the location of each of its arrays.
    pub place: ArrayPlace<'a>,
    /// Shape, outermost dimension first; for a list, the shape of each array. Without a shape, the
    /// array is assumed to have the kernel's layout.
    pub axes: Option<&'a [ArrayAxis]>,
}

/// Address range of consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Address, or distance in bytes from a maximally aligned base address.
    pub address: u64,
    /// Number of elements that start at the address. The kernel must not access any others.
    pub len: u64,
}

/// Location of the argument bound to a buffer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayPlace<'a> {
    One(Region),
    List(&'a [Region]),
}

impl ArrayPlace<'_> {
    pub(super) fn regions(&self) -> &[Region] {
        match self {
            ArrayPlace::One(region) => std::slice::from_ref(region),
            ArrayPlace::List(regions) => regions,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayAxis {
    pub extent: u64,
    /// Stride, in elements.
    pub stride: u64,
}

/// Arguments of a launch, bound by name.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    pub extents: &'a [(Extent, u64)],
    /// Bits of the numbers that the caller passes, zero-extended to 64 bits.
    pub arguments: &'a [u64],
    pub arrays: &'a [(Operand, BoundArray<'a>)],
}

/// Checked arguments of a launch that satisfies the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Bits of each scalar parameter, zero-extended to 64 bits, in parameter order; 0 for buffers.
    pub scalars: ScalarBits,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Arrays with tensor maps, in parameter order.
    pub maps: Vec<MappedArray>,
}

/// Shape of an array with a tensor map, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedArray {
    /// Index among the buffer parameters.
    pub position: usize,
    /// Extents, outermost first.
    pub extents: SmallVec<[u64; TensorMap::MOST_AXES]>,
    /// Stride along each dimension.
    pub strides: SmallVec<[u64; TensorMap::MOST_AXES]>,
}

impl Call {
    /// Returns true if the grid is empty, so that nothing is launched.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}
