//! Matrix instructions of four warps, whose operands lie in shared memory (`wgmma`).

use super::{Access, BufferId, Expr, TensorSwizzle};
use crate::target::Format;

/// `D = A·B + D`, or `D = A·B`, of [`Wgmma::ROWS`] by `columns` sums of [`Format::terms`] products. The four warps of a
/// warpgroup execute it together. It is asynchronous: until a [`WgmmaSync::Wait`] that covers it, D is not there, and A and
/// B are being read.
#[derive(Clone, Debug, PartialEq)]
pub struct Wgmma {
    /// What the elements of A and B are.
    pub format: Format,
    /// Columns of B and D: a multiple of 8, 8 to 256.
    pub columns: u32,
    /// The first of half as many sums as there are columns, of [`Ty::F32`](super::Ty::F32): all of the last dimension of a
    /// register array. Which sums of D a thread holds says [`Wgmma::place_of_d`].
    pub d: Access,
    /// The first element of A in shared memory, the same in all threads: its row and its k are the last two indices. The row
    /// is a multiple of 8, and k one of 16 bytes.
    pub a: Access,
    /// The first element of B: its column and its k, as those of A.
    pub b: Access,
    /// Whether the product is added to D: a [`Ty::Bool`](super::Ty::Bool), the same in all threads.
    pub accumulate: Expr,
}

impl Wgmma {
    /// Rows of A and D.
    pub const ROWS: u32 = 64;
    /// The most columns of B and D.
    pub const MOST_COLUMNS: u32 = 256;
    /// Rows that a group of the descriptor has.
    pub const GROUP: u32 = 8;
    /// Warps of a warpgroup. The number of the first is a multiple of it.
    pub const WARPS: u32 = 4;

    /// The row and the column of a sum that a thread of the warpgroup holds.
    #[inline]
    pub const fn place_of_d(thread: usize, sum: usize) -> (usize, usize) {
        let (warp, lane) = (thread / 32, thread % 32);
        (16 * warp + lane / 4 + 8 * (sum / 2 % 2), 8 * (sum / 4) + 2 * (lane % 4) + sum % 2)
    }
}

/// What orders matrix instructions of a warpgroup and what its threads do with their sums. The four warps of the warpgroup
/// execute it together.
#[derive(Clone, Debug, PartialEq)]
pub enum WgmmaSync {
    /// What the threads have done with these register arrays comes before the matrix instructions behind it
    /// (`wgmma.fence`).
    Fence {
        /// Whole register arrays whose sums matrix instructions will change.
        accumulators: Vec<BufferId>,
    },
    /// Closes the group of the matrix instructions since the last one (`wgmma.commit_group`).
    Commit,
    /// Waits until at most so many of the newest groups are unfinished (`wgmma.wait_group`).
    Wait {
        /// The groups that may still be in flight.
        pending: u32,
        /// Whole register arrays: the sums in them that no group in flight changes are there behind it.
        accumulators: Vec<BufferId>,
    },
}

/// The registers that each thread of a warpgroup may have from here on (`setmaxnreg`). The four warps of the warpgroup
/// execute it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterLimit {
    /// A multiple of 8, from 24 to 256.
    pub registers: u32,
    /// Whether that is no fewer than before, for which the warps wait until others have given theirs back; else it is no
    /// more. A thread begins with an even share, a multiple of 8, of what its block and those beside it are given.
    pub more: bool,
}

/// How a matrix instruction finds the rows of an operand in shared memory: what its descriptor says beside the address of the
/// first element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The pattern in which the chunks of a row are exchanged.
    pub swizzle: TensorSwizzle,
    /// Bytes from a group of 8 rows to the next.
    pub stride: u32,
}

impl Descriptor {
    /// All of it but the address. The distance between parts of a row counts where rows are not swizzled only; by convention
    /// it is one part.
    pub const fn bits(self) -> u64 {
        let mode = match self.swizzle {
            TensorSwizzle::None => 0,
            TensorSwizzle::Bytes128 => 1,
            TensorSwizzle::Bytes64 => 2,
            TensorSwizzle::Bytes32 => 3,
        };
        1 << 16 | (self.stride as u64 >> 4) << 32 | mode << 62
    }

    /// The address of a byte of a row, where the first one is at `start`.
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
