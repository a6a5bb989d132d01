//! Boxes of arrays that one instruction copies to shared memory, and how their rows lie there.

use super::{
    Access, Buffer, BufferId, BufferLayout, Elem, Expr, Kernel, MbarrierRef, Space, Stmt, Swizzle,
};

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

/// How a box lies in shared memory: in rows without gaps, the last dimension of the buffer contiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Elements of a row.
    pub(crate) length: u64,
    pub(crate) swizzle: TensorSwizzle,
}

impl Rows {
    /// Those of a shared array, if it lies as such hardware has it.
    pub(crate) fn of(k: &Kernel, buffer: &Buffer) -> Option<Self> {
        let BufferLayout::Array { order, pad, swizzle } = &buffer.layout else { return None };
        let plain = order.iter().copied().eq(0..buffer.dims.len());
        let packed = k.eval_const(pad).is_ok_and(|pad| pad == 0);
        if buffer.space != Space::Shared || !plain || !packed {
            return None;
        }
        let length = u64::try_from(k.eval_const(buffer.dims.last()?).ok()?).ok()?;
        let bytes = length.checked_mul(buffer.elem.size().into())?;
        let swizzle = match swizzle {
            None => TensorSwizzle::None,
            Some(swizzle) => TensorSwizzle::ALL.into_iter().find(|of| {
                of.layout(buffer.elem) == Some(*swizzle) && of.bytes().map(u64::from) == Some(bytes)
            })?,
        };
        Some(Self { length, swizzle })
    }
}

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

impl Kernel {
    /// What the tensor map of a buffer says, if a parameter is one.
    pub fn tensor_map(&self, buffer: BufferId) -> Option<&TensorMap> {
        self.params.iter().find_map(|param| match &param.kind {
            super::ParamKind::TensorMap { buffer: of, map, .. } if of.id == buffer.id => Some(map),
            _ => None,
        })
    }

    /// For each buffer, the bytes whose multiple its address in shared memory is.
    pub fn alignments(&self) -> Vec<u64> {
        let mut bytes = vec![u64::from(super::VECTOR_BYTES); self.buffers.len()];
        let mut note = |access: &Access| {
            let rows = self.buffers.get(access.buffer.id).and_then(|b| Rows::of(self, b));
            if let (Some(rows), Some(bytes)) = (rows, bytes.get_mut(access.buffer.id)) {
                *bytes = rows.swizzle.alignment();
            }
        };
        self.visit(&mut |stmt| match stmt {
            Stmt::TensorCopy(copy) => note(&copy.to),
            Stmt::Wgmma(wgmma) => [&wgmma.a, &wgmma.b].into_iter().for_each(&mut note),
            _ => {}
        });
        bytes
    }
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
