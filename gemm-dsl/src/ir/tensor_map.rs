//! Boxes of arrays that one instruction copies to shared memory, and how their rows lie there.

use super::{Access, BufferId, Elem, Expr, MbarrierRef, Swizzle};

/// How the 16-byte parts of the rows of a box are exchanged in shared memory, as the hardware that copies boxes and the
/// one that multiplies them have it: by bits of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorSwizzle {
    /// Not at all.
    None,
    /// Two parts of a row of 32 bytes, every four rows.
    Bytes32,
    /// Four parts of a row of 64 bytes, every two rows.
    Bytes64,
    /// Eight parts of a row of 128 bytes.
    Bytes128,
}

impl TensorSwizzle {
    /// Those that exchange something.
    pub const ALL: [TensorSwizzle; 3] =
        [TensorSwizzle::Bytes32, TensorSwizzle::Bytes64, TensorSwizzle::Bytes128];

    /// Bytes of a row; none where rows of any length lie as they are.
    pub const fn bytes(self) -> Option<u32> {
        match self {
            TensorSwizzle::None => None,
            TensorSwizzle::Bytes32 => Some(32),
            TensorSwizzle::Bytes64 => Some(64),
            TensorSwizzle::Bytes128 => Some(128),
        }
    }

    /// What addresses a box starts at: there the bits of an address that say which row it is are those of the row's number.
    pub const fn alignment(self) -> u64 {
        match self.bytes() {
            None => 128,
            Some(bytes) => 8 * bytes as u64,
        }
    }

    /// As a layout says it.
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

    /// The address, counted from one of the greatest alignment, of what would lie at this one.
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

/// The bytes that a swizzle leaves together.
const PART: u32 = 16;

/// What a kernel parameter says of the array that it stands for, beside where it lies: the host makes of both a tensor map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// The extents of the boxes that are copied, outermost first, as those of the array.
    pub tile: Vec<u32>,
    /// How they lie in shared memory.
    pub swizzle: TensorSwizzle,
}

impl TensorMap {
    /// The most elements of a box along a dimension.
    pub const LONGEST: u32 = 256;

    /// Elements of a box.
    pub fn elements(&self) -> u64 {
        self.tile.iter().map(|&extent| u64::from(extent)).product()
    }
}

/// The copy of a box from global to shared memory (`cp.async.bulk.tensor`), which each thread that executes it issues.
/// Elements outside the array come as zeros. Wherever the box lies, all of its bytes count at the barrier.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorCopy {
    /// The array: a buffer that a tensor map stands for.
    pub from: BufferId,
    /// Where the box begins in it, an [`I32`](super::Ty::I32) for each dimension, outermost first: along the last one a
    /// multiple of 16 bytes. An H200 takes any other for an illegal instruction.
    pub at: Vec<Expr>,
    /// Where it goes: its first element. Along its last dimensions it fills the buffer without a gap; for the first ones
    /// along which it is one element deep the buffer needs no dimension.
    pub to: Access,
    /// The barrier at which its bytes are counted when they have come.
    pub barrier: MbarrierRef,
    /// The blocks of the cluster that it goes to, an [`I32`](super::Ty::I32): bit `n` stands for block `n`, and one is set. In
    /// each it goes to the same place in shared memory, and counts at the same barrier. Without it, it goes to the block of its thread.
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
