//! Matrix instructions of a warpgroup, with operands in shared memory (`wgmma`).

use super::{Access, BufferId, Expr, TensorSwizzle};
use crate::target::Format;

/// `D = A·B + D`, or `D = A·B`: [`Wgmma::ROWS`] by `columns` accumulators, each over
/// [`Format::terms`] elements of K. The four warps of a warpgroup execute it together. It is
/// asynchronous: until a [`WgmmaSync::Wait`] that covers it, D is not available, and A and B are
/// being read.
#[derive(Clone, Debug, PartialEq)]
pub struct Wgmma {
    /// Number format of A and B.
    pub format: Format,
    /// Columns of B and D: a multiple of 8, 8 to 256.
    pub columns: u32,
    /// First accumulator of `columns / 2`, of [`Ty::F32`](super::Ty::F32): the whole last dimension
    /// of a register array. [`Wgmma::place_of_d`] maps a thread's accumulators to D.
    pub d: Access,
    /// First element of A in shared memory, the same in all threads: row and K are the last two
    /// indices. The row is a multiple of 8, and K one of 16 bytes.
    pub a: Access,
    /// First element of B: column and K, under the same conditions as for A.
    pub b: Access,
    /// Adds the result to D; otherwise D is overwritten. A [`Ty::Bool`](super::Ty::Bool), the same
    /// in all threads.
    pub accumulate: Expr,
}

impl Wgmma {
    /// Rows of A and D.
    pub const ROWS: u32 = 64;
    /// Maximum number of columns of B and D.
    pub const MOST_COLUMNS: u32 = 256;
    /// Rows per group of a descriptor.
    pub const GROUP: u32 = 8;
    /// Warps of a warpgroup. The index of its first warp is a multiple of it.
    pub const WARPS: u32 = 4;

    /// Row and column of an accumulator that a thread of the warpgroup holds.
    #[inline]
    pub const fn place_of_d(thread: usize, sum: usize) -> (usize, usize) {
        let (warp, lane) = (thread / 32, thread % 32);
        (16 * warp + lane / 4 + 8 * (sum / 2 % 2), 8 * (sum / 4) + 2 * (lane % 4) + sum % 2)
    }
}

/// Ordering between `wgmma` instructions and accesses of threads to their accumulators. The four
/// warps of the warpgroup execute it together.
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
    /// Waits until at most `pending` of the newest groups are unfinished (`wgmma.wait_group`).
    Wait {
        /// Number of groups that may still be in flight.
        pending: u32,
        /// Whole register arrays: after the wait, the accumulators in them that no group in flight
        /// changes are available.
        accumulators: Vec<BufferId>,
    },
}

/// Register limit of each thread of a warpgroup from here on (`setmaxnreg`). The four warps of the
/// warpgroup execute it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterLimit {
    /// A multiple of 8, from 24 to 256.
    pub registers: u32,
    /// True if the limit is not lowered: the warps wait until others have released theirs.
    /// Otherwise it is not raised. A thread starts with an even share, a multiple of 8, of the
    /// registers given to its block and the blocks beside it.
    pub more: bool,
}

/// Layout part of a `wgmma` descriptor: the fields besides the address of the first element, which
/// locate the rows of an operand in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub swizzle: TensorSwizzle,
    /// Bytes from one group of 8 rows to the next.
    pub stride: u32,
}

impl Descriptor {
    /// Descriptor bits without the address. The leading byte offset, one chunk by convention,
    /// matters only without a swizzle.
    pub const fn bits(self) -> u64 {
        1 << 16 | (self.stride as u64 >> 4) << 32 | self.mode() << 62
    }

    /// Number of the swizzle in the descriptor.
    pub const fn mode(self) -> u64 {
        match self.swizzle {
            TensorSwizzle::None => 0,
            TensorSwizzle::Bytes128 => 1,
            TensorSwizzle::Bytes64 => 2,
            TensorSwizzle::Bytes32 => 3,
        }
    }

    /// Address of a byte of a row, with the operand's first byte at `start`.
    #[inline]
    pub const fn place(self, start: u32, row: u32, byte: u32) -> u32 {
        let row_bytes = self.stride / Wgmma::GROUP;
        let group = row / Wgmma::GROUP * self.stride;
        self.swizzle.exchange(start + group + row % Wgmma::GROUP * row_bytes + byte)
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
            Descriptor { swizzle, stride }.bits()
        };
        assert_eq!(of(TensorSwizzle::Bytes128), 1 << 62 | 64 << 32 | 1 << 16);
        assert_eq!(of(TensorSwizzle::Bytes64), 2 << 62 | 32 << 32 | 1 << 16);
        assert_eq!(of(TensorSwizzle::Bytes32), 3 << 62 | 16 << 32 | 1 << 16);
    }

    #[test]
    fn another_swizzle_reads_other_elements() {
        let [right, wrong] = [TensorSwizzle::Bytes128, TensorSwizzle::Bytes64]
            .map(|swizzle| Descriptor { swizzle, stride: 1024 });
        assert_eq!(right.place(0, 12, 32), 1024 + 512 + (32 ^ 64));
        assert_eq!(wrong.place(0, 12, 32), 1024 + 512 + 32);
    }
}
