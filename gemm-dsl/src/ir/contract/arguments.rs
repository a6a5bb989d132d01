//! Arguments of a launch, and the call that they make.

use crate::ir::Elem;
use crate::ir::{Extent, Operand};

/// An array as a launch passes it to a buffer parameter.
#[derive(Clone, Copy, Debug)]
pub struct BoundArray<'a> {
    /// What the caller calls it.
    pub name: &'a str,
    /// What its elements are.
    pub elem: Elem,
    /// Where it lies, or each array of a list.
    pub place: ArrayPlace<'a>,
    /// Its shape, outermost dimension first; of a list, that of each array. Without one it lies as the
    /// kernel says.
    pub axes: Option<&'a [ArrayAxis]>,
}

/// Consecutive elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Their address, or its distance in bytes from a place of the greatest alignment.
    pub address: u64,
    /// Their number, from the address on: nothing else may be touched.
    pub len: u64,
}

/// Where what is bound to a parameter lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrayPlace<'a> {
    /// One array.
    One(Region),
    /// The arrays of a list.
    List(&'a [Region]),
}

impl ArrayPlace<'_> {
    /// Where each array lies.
    pub(super) fn regions(&self) -> &[Region] {
        match self {
            ArrayPlace::One(region) => std::slice::from_ref(region),
            ArrayPlace::List(regions) => regions,
        }
    }
}

/// One dimension of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayAxis {
    /// The number of elements along it.
    pub extent: u64,
    /// The distance between two neighbours, in elements.
    pub stride: u64,
}

/// What a launch gives a kernel, by name.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    /// The extents of the problem.
    pub extents: &'a [(Extent, u64)],
    /// The bits of the caller's numbers, zero-extended.
    pub arguments: &'a [u64],
    /// The arrays.
    pub arrays: &'a [(Operand, BoundArray<'a>)],
}

/// A launch that satisfies the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The bits of each scalar parameter, zero-extended, by parameter; 0 for a buffer.
    pub scalars: Vec<u64>,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// The arrays that tensor maps stand for, in the order of the parameters.
    pub maps: Vec<MappedArray>,
}

/// What a tensor map says of the array of a launch, in elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedArray {
    /// Which of the buffer parameters it is.
    pub position: usize,
    /// The extents, outermost first.
    pub extents: Vec<u64>,
    /// The distances between neighbours along each dimension.
    pub strides: Vec<u64>,
}

impl Call {
    /// Whether there is nothing to launch.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}
