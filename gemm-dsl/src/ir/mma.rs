//! Matrix instructions of a warp (`mma.sync`, `ldmatrix`).

use super::Access;
#[cfg(doc)]
use super::Ty;
use crate::target::Format;

/// `D = A·B + D` on tensor cores, with [`Mma::ROWS`] by [`Mma::COLS`] accumulators.
///
/// Each operand is an access to a register array. It names the first element of the lane's part,
/// which fills the last dimension of the array. A word, a [`Ty::U32`], contains one 32-bit element,
/// or two 16-bit elements that are neighbours along K. Of these, the first is in the lower half.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// Number format of A and B.
    pub format: Format,
    /// First of [`Mma::OF_D`] accumulators, of [`Ty::F32`].
    pub d: Access,
    /// First of [`Mma::OF_A`] words of A.
    pub a: Access,
    /// First of [`Mma::OF_B`] words of B.
    pub b: Access,
}

impl Mma {
    /// Rows of A and D.
    pub const ROWS: usize = 16;
    /// Columns of B and D.
    pub const COLS: usize = 8;
    /// Accumulators of D that a lane holds.
    pub const OF_D: usize = 4;
    /// Words of A that a lane holds.
    pub const OF_A: usize = 4;
    /// Words of B that a lane holds.
    pub const OF_B: usize = 2;
    /// Number of lanes along the rows of D.
    pub const LANES_M: u32 = 8;
    /// Number of lanes along the columns of D.
    pub const LANES_N: u32 = 4;

    /// Row and column of D of the accumulator `sum` of a lane.
    #[inline]
    pub const fn place_of_d(lane: usize, sum: usize) -> (usize, usize) {
        (lane / 4 + 8 * (sum / 2), 2 * (lane % 4) + sum % 2)
    }

    /// Row of A that contains the word `word` of a lane, and the index of the word in that row.
    #[inline]
    pub const fn place_of_a(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4 + 8 * (word % 2), lane % 4 + 4 * (word / 2))
    }

    /// Column of B that contains the word `word` of a lane, and the index of the word in that
    /// column.
    #[inline]
    pub const fn place_of_b(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4, lane % 4 + 4 * word)
    }
}

/// Load of one, two or four matrices of 8x8 16-bit elements from shared memory.
///
/// Each row of a matrix is 16 bytes of adjacent elements: eight of 16 bits, or four of 32 bits.
/// Lane `8 * i + r` supplies the address of row `r` of matrix `i`. With fewer than four matrices,
/// the addresses from the remaining lanes are ignored. Each lane receives one word of each matrix:
/// a [`Ty::U32`], or a [`Ty::F32`] if these are the elements of the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadMatrix {
    /// Number of matrices: 1, 2 or 4.
    pub count: u8,
    /// Transposes each matrix of 16-bit elements during the load.
    pub transposed: bool,
    /// First element of the destination, which receives one word of each matrix. The words must
    /// fill the last dimensions of a register array.
    pub to: Access,
    /// Row of 16 bytes whose address this lane supplies.
    pub from: Access,
}

impl LoadMatrix {
    /// Returns the row of a loaded matrix from which a lane receives a word, and the index of the
    /// word in that row. If the load transposes, the row is one of the transposed matrix. The word
    /// contains two neighbouring elements of the row, the first in its lower half.
    #[inline]
    pub const fn place(lane: usize) -> (usize, usize) {
        (lane / 4, lane % 4)
    }
}
