//! Matrix instructions of a warp (`mma.sync`, `ldmatrix`).

use super::Access;
#[cfg(doc)]
use super::Ty;
use crate::target::Format;

/// `D = A·B + D` on tensor cores, with [`Mma::ROWS`] by [`Mma::COLS`] accumulators.
///
/// A lane's part of a matrix fills the last dimension of a register array; the access names its
/// first element. A word, a [`Ty::U32`], holds one 32-bit element, or two 16-bit elements that are
/// neighbours along K, the first in its lower half.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// Number format of A and B.
    pub format: Format,
    /// [`Mma::OF_D`] accumulators, of [`Ty::F32`].
    pub d: Access,
    /// [`Mma::OF_A`] words of A.
    pub a: Access,
    /// [`Mma::OF_B`] words of B.
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
    /// Lanes along the rows of D.
    pub const LANES_M: u32 = 8;
    /// Lanes along the columns of D.
    pub const LANES_N: u32 = 4;

    /// Row and column of an accumulator that a lane holds.
    #[inline]
    pub const fn place_of_d(lane: usize, sum: usize) -> (usize, usize) {
        (lane / 4 + 8 * (sum / 2), 2 * (lane % 4) + sum % 2)
    }

    /// Row of a word of A that a lane holds, and the index of the word in that row.
    #[inline]
    pub const fn place_of_a(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4 + 8 * (word % 2), lane % 4 + 4 * (word / 2))
    }

    /// Column of a word of B that a lane holds, and the index of the word in that column.
    #[inline]
    pub const fn place_of_b(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4, lane % 4 + 4 * word)
    }
}

/// Load of one, two or four matrices of 8x8 16-bit elements from shared memory.
///
/// Each matrix row is four adjacent words, [`Ty::U32`] or [`Ty::F32`]. Lane `8 * i + r` supplies
/// the address of row `r` of matrix `i`; with fewer than four matrices the addresses of the other
/// lanes are ignored. Each lane receives one word of each matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadMatrix {
    /// Number of matrices: 1, 2 or 4.
    pub count: u8,
    /// Transposes each matrix of 16-bit elements during the load.
    pub transposed: bool,
    /// Destination, one word of each matrix: all of the last dimensions of a register array; the
    /// access names the first element.
    pub to: Access,
    /// Row that this lane supplies: 16 bytes.
    pub from: Access,
}

impl LoadMatrix {
    /// Row of a loaded matrix, after the transposition if any, and index in that row of the word
    /// that a lane receives. The word holds two neighbouring elements of the row, the first in its
    /// lower half.
    #[inline]
    pub const fn place(lane: usize) -> (usize, usize) {
        (lane / 4, lane % 4)
    }
}
