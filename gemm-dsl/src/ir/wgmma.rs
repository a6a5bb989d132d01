//! Matrix instructions of a warpgroup, with operands in shared memory (`wgmma`).

use super::{Access, BufferId, Elem, Expr, TensorSwizzle};
use crate::target::Format;

/// `D = A·B + D`, or `D = A·B`, with [`Wgmma::ROWS`] by `columns` accumulators. Each is summed over
/// [`Format::terms`] elements of K. The four warps of a warpgroup execute it together. It is
/// asynchronous: until a [`WgmmaSync::Wait`] that covers it, it may read A and B, and D is not
/// available.
#[derive(Clone, Debug, PartialEq)]
pub struct Wgmma {
    /// Number formats of A and of B. They differ only if both are floating-point formats of 8 bits,
    /// or both are integers.
    pub formats: [Format; 2],
    /// Number of columns of B and D: a multiple of 8, from 8 to 256.
    pub columns: u32,
    /// First of the thread's `columns / 2` accumulators, of [`acc`](Self::acc). They are the whole
    /// last dimension of a register array. [`Wgmma::place_of_d`] maps a thread's accumulators to D.
    pub d: Access,
    /// First element of A in shared memory, the same in all threads. Its last two indices are the
    /// row, a multiple of 8, and K, a multiple of 16 bytes.
    pub a: Access,
    /// First element of B. Its last two indices are the column and K, with the same conditions as
    /// for A.
    pub b: Access,
    /// For A and B: true if the operand is MN-major. Its last three indices are then the slab, K,
    /// and the position in the slab. A slab has the rows of A, or the columns of B, of one row of
    /// shared memory, and the operand begins with a slab. Only formats of 16 bits may be MN-major.
    pub mn_major: [bool; 2],
    /// True to add the product to D; false to overwrite D. A [`Ty::Bool`](super::Ty::Bool), the
    /// same in all threads.
    pub accumulate: Expr,
}

impl Wgmma {
    /// Element type of the accumulators. `U32` has the bits of signed sums, which wrap.
    pub const fn acc(&self) -> Elem {
        if self.formats[0].is_integer() { Elem::U32 } else { Elem::F32 }
    }

    /// Returns true if an instruction multiplies these formats.
    pub fn takes([a, b]: [Format; 2]) -> bool {
        a == b || (a.bits() == 8 && b.bits() == 8 && a.is_integer() == b.is_integer())
    }

    /// Returns true if an instruction on these formats has this number of columns: a multiple of 8
    /// from 8 to 256. Integers have multiples of 16, or 8 or 24.
    pub const fn has_columns(formats: [Format; 2], columns: u32) -> bool {
        let is_known = columns.is_multiple_of(16) || matches!(columns, 8 | 24);
        let unit = if formats[0].is_integer() { is_known } else { columns.is_multiple_of(8) };
        unit && columns >= 8 && columns <= Self::MOST_COLUMNS
    }

    /// Rows of A and D.
    pub const ROWS: u32 = 64;
    /// Maximum number of columns of B and D.
    pub const MOST_COLUMNS: u32 = 256;
    /// Number of rows in a group of a descriptor.
    pub const GROUP: u32 = 8;
    /// Number of warps of a warpgroup. The index of its first warp is a multiple of this number.
    pub const WARPS: u32 = 4;

    /// Row and column of D of the accumulator `sum` of a thread of the warpgroup.
    #[inline]
    pub const fn place_of_d(thread: usize, sum: usize) -> (usize, usize) {
        let (warp, lane) = (thread / 32, thread % 32);
        (16 * warp + lane / 4 + 8 * (sum / 2 % 2), 8 * (sum / 4) + 2 * (lane % 4) + sum % 2)
    }
}

/// Orders `wgmma` instructions and the threads' accesses to accumulators. The four warps of the
/// warpgroup execute it together.
#[derive(Clone, Debug, PartialEq)]
pub enum WgmmaSync {
    /// Orders the threads' accesses to these register arrays before the following `wgmma`
    /// instructions (`wgmma.fence`).
    Fence {
        /// Whole register arrays whose accumulators the instructions will change.
        accumulators: Vec<BufferId>,
    },
    /// Closes the group of the `wgmma` instructions since the last commit (`wgmma.commit_group`).
    Commit,
    /// Waits until all groups are complete, except at most the `pending` newest
    /// (`wgmma.wait_group`).
    Wait {
        /// Number of groups that may still be in flight.
        pending: u32,
        /// Whole register arrays. After the wait, their accumulators are available, unless a group
        /// in flight changes them.
        accumulators: Vec<BufferId>,
    },
}

/// Sets the register limit of each thread of a warpgroup (`setmaxnreg`). The four warps of the
/// warpgroup execute it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterLimit {
    /// New limit: a multiple of 8, from 24 to 256.
    pub registers: u32,
    /// True if the limit is raised or kept; the warps then wait until other warps have released
    /// enough registers. False if the limit is lowered or kept. At launch, each thread has an even
    /// share of the registers of its SM, rounded down to a multiple of 8.
    pub more: bool,
}

/// Fields of a `wgmma` descriptor except the address of the first element. They locate the rows of
/// an operand in shared memory. Rows have elements along K, or along M or N if the operand is
/// MN-major.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub swizzle: TensorSwizzle,
    /// Distance from one group of 8 rows to the next, in bytes.
    pub stride: u32,
    /// Leading byte offset: distance from one slab of an MN-major operand to the next, in bytes.
    /// For a K-major operand it is [`CHUNK`](Self::CHUNK) by convention, without effect.
    pub leading: u32,
}

impl Descriptor {
    /// Unit of the addresses and distances of a descriptor, in bytes.
    pub const CHUNK: u32 = 16;

    /// Bits of the descriptor without the address.
    pub const fn bits(self) -> u64 {
        (self.leading as u64 >> 4) << 16 | (self.stride as u64 >> 4) << 32 | self.mode() << 62
    }

    /// Code of the swizzle in the descriptor.
    pub const fn mode(self) -> u64 {
        match self.swizzle {
            TensorSwizzle::None => 0,
            TensorSwizzle::Bytes128 => 1,
            TensorSwizzle::Bytes64 => 2,
            TensorSwizzle::Bytes32 => 3,
        }
    }

    /// Address of a byte of a row, if the operand's first byte is at `start`. Bytes past the end of
    /// a row are in the next slab.
    #[inline]
    pub const fn place(self, start: u32, row: u32, byte: u32) -> u32 {
        let row_bytes = self.stride / Wgmma::GROUP;
        let group = row / Wgmma::GROUP * self.stride;
        let slab = byte / row_bytes * self.leading;
        let in_slab = row % Wgmma::GROUP * row_bytes + byte % row_bytes;
        self.swizzle.exchange(start + slab + group + in_slab)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_warpgroup_hold_each_sum_once() {
        for columns in [8, 128, 256] {
            let mut held = vec![0; 64 * columns];
            for (thread, sum) in
                (0..128).flat_map(|thread| (0..columns / 2).map(move |s| (thread, s)))
            {
                let (row, column) = Wgmma::place_of_d(thread, sum);
                held[row * columns + column] += 1;
            }
            assert!(held.iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn descriptors_are_those_of_hand_written_kernels() {
        let of = |swizzle: TensorSwizzle| {
            let stride = 8 * swizzle.bytes().unwrap_or_default();
            Descriptor { swizzle, stride, leading: 16 }.bits()
        };
        assert_eq!(of(TensorSwizzle::Bytes128), 1 << 62 | 64 << 32 | 1 << 16);
        assert_eq!(of(TensorSwizzle::Bytes64), 2 << 62 | 32 << 32 | 1 << 16);
        assert_eq!(of(TensorSwizzle::Bytes32), 3 << 62 | 16 << 32 | 1 << 16);
    }

    #[test]
    fn slabs_follow_each_other() {
        let swizzle = TensorSwizzle::Bytes128;
        let descriptor = Descriptor { swizzle, stride: 1024, leading: 8192 };
        assert_eq!(descriptor.bits(), 1 << 62 | 64 << 32 | 512 << 16);
        // Row 9 of the second slab, at its fifth chunk.
        assert_eq!(descriptor.place(2048, 9, 128 + 64), 2048 + 8192 + 1024 + 128 + (64 ^ 16));
    }

    #[test]
    fn another_swizzle_reads_other_elements() {
        let [right, wrong] = [TensorSwizzle::Bytes128, TensorSwizzle::Bytes64]
            .map(|swizzle| Descriptor { swizzle, stride: 1024, leading: 16 });
        assert_eq!(right.place(0, 12, 32), 1024 + 512 + (32 ^ 64));
        assert_eq!(wrong.place(0, 12, 32), 1024 + 512 + 32);
    }
}
