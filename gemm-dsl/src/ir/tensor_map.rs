//! Tensor maps: boxes of arrays that one instruction copies to shared memory (TMA), and the layout
//! of their rows.

use super::{Access, BufferId, Elem, Expr, List, MbarrierRef, Swizzle};

/// Swizzle of the 16-byte chunks of a box's rows in shared memory. TMA copies and `wgmma` compute
/// it from bits of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorSwizzle {
    None,
    /// Rows of 32 bytes: two chunks, with a period of eight rows.
    Bytes32,
    /// Rows of 64 bytes: four chunks, with a period of eight rows.
    Bytes64,
    /// Rows of 128 bytes: eight chunks, with a period of eight rows.
    Bytes128,
}

impl TensorSwizzle {
    /// All variants except [`TensorSwizzle::None`].
    pub const ALL: [TensorSwizzle; 3] =
        [TensorSwizzle::Bytes32, TensorSwizzle::Bytes64, TensorSwizzle::Bytes128];

    /// Row length in bytes; `None` if rows may have any length.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            TensorSwizzle::None => None,
            TensorSwizzle::Bytes32 => Some(32),
            TensorSwizzle::Bytes64 => Some(64),
            TensorSwizzle::Bytes128 => Some(128),
        }
    }

    /// Alignment of a box in bytes. The swizzle is computed from address bits. With this alignment,
    /// they equal the bits of the row index.
    pub const fn alignment(self) -> u64 {
        match self.bytes() {
            None => 128,
            Some(bytes) => 8 * bytes as u64,
        }
    }

    /// Returns the equivalent [`Swizzle`] of a buffer layout.
    pub fn layout(self, elem: Elem) -> Option<Swizzle> {
        let shift = match self {
            TensorSwizzle::None => return None,
            TensorSwizzle::Bytes32 => 2,
            TensorSwizzle::Bytes64 => 1,
            TensorSwizzle::Bytes128 => 0,
        };
        let base = (PART / elem.size()).ilog2() as u8;
        Some(Swizzle { bits: 3 - shift, base, shift })
    }

    /// Returns the swizzled address of a byte, relative to a base of maximum alignment.
    pub const fn exchange(self, address: u32) -> u32 {
        let bits = match self {
            TensorSwizzle::None => 0,
            TensorSwizzle::Bytes32 => 0x10,
            TensorSwizzle::Bytes64 => 0x30,
            TensorSwizzle::Bytes128 => 0x70,
        };
        address ^ (address >> 3 & bits)
    }
}

/// Size of the chunks that a swizzle moves as a whole, in bytes.
const PART: u32 = 16;

/// Box and swizzle of a tensor map. The host creates a `CUtensorMap` from them and the array's
/// address and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Extents of a box, outermost first, in the order of the array's dimensions.
    pub tile: List<u32>,
    pub swizzle: TensorSwizzle,
}

impl TensorMap {
    /// Maximum number of elements of a box along a dimension.
    pub const LONGEST: u32 = 256;

    /// Maximum number of dimensions.
    pub const MOST_AXES: usize = 5;

    /// Number of elements of a box.
    pub fn elements(&self) -> u64 {
        self.tile.iter().map(|&extent| u64::from(extent)).product()
    }
}

/// Copy of a box from global to shared memory (`cp.async.bulk.tensor`), issued by each thread that
/// executes it. Elements outside the array are written as zeros. All bytes of the box count at the
/// mbarrier, even those of elements outside the array.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCopy {
    /// Array to copy from: a buffer with a tensor map.
    pub from: BufferId,
    /// Start of the box in the array: an [`I32`](super::Ty::I32) for each dimension, outermost
    /// first. Along the last dimension, it must be a multiple of 16 bytes. An H200 reports any
    /// other start as an illegal instruction.
    pub at: Vec<Expr>,
    /// First element of the destination. The box must fill the buffer's last dimensions without
    /// gaps. Leading extents of 1 need no dimension in the buffer.
    pub to: Access,
    /// Mbarrier at which the bytes count once they are written.
    pub barrier: MbarrierRef,
    /// Destination blocks of the cluster: an [`I32`](super::Ty::I32) mask with bit `n` for block
    /// `n`. At least one bit must be set. In each block, the box is written to the same position in
    /// shared memory, and its bytes count at the same mbarrier. Without a mask, the thread's own
    /// block receives the box.
    pub multicast: Option<Expr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_exchanges_what_the_hardware_does() {
        for swizzle in TensorSwizzle::ALL {
            let Some(bytes) = swizzle.bytes() else { panic!("{swizzle:?}") };
            for elem in Elem::ALL {
                let (size, layout) = (elem.size(), swizzle.layout(elem));
                let Some(layout) = layout else { panic!("{swizzle:?}") };
                for row in 0..32 {
                    for column in 0..bytes / size {
                        let there = layout.apply(row.into(), column.into()) as u32;
                        let address = row * bytes + column * size;
                        assert_eq!(swizzle.exchange(address), row * bytes + there * size);
                    }
                }
            }
        }
    }
}
