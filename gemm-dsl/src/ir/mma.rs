//! Matrix instructions of a warp (`mma.sync`, `ldmatrix`).

use super::Access;
#[cfg(doc)]
use super::Ty;
use crate::target::Format;

/// `D = A·B + D` on tensor cores, of [`Mma::ROWS`] by [`Mma::COLS`] sums. What a lane holds of a matrix lies in the last
/// dimension of a register array, all of it; the access is to its first element. A word, a [`Ty::U32`], holds one
/// element of 32 bits, or two of 16 that are neighbours along k, the first in its lower half.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// What the elements of A and B are.
    pub format: Format,
    /// [`Mma::OF_D`] sums, of [`Ty::F32`].
    pub d: Access,
    /// [`Mma::OF_A`] words.
    pub a: Access,
    /// [`Mma::OF_B`] words.
    pub b: Access,
}

impl Mma {
    /// Rows of A and D.
    pub const ROWS: usize = 16;
    /// Columns of B and D.
    pub const COLS: usize = 8;
    /// Sums that a lane holds of D.
    pub const OF_D: usize = 4;
    /// Words that a lane holds of A.
    pub const OF_A: usize = 4;
    /// Words that a lane holds of B.
    pub const OF_B: usize = 2;
    /// Lanes along the rows of D.
    pub const LANES_M: u32 = 8;
    /// Lanes along the columns of D.
    pub const LANES_N: u32 = 4;

    /// The row and the column of a sum that a lane holds.
    #[inline]
    pub const fn place_of_d(lane: usize, sum: usize) -> (usize, usize) {
        (lane / 4 + 8 * (sum / 2), 2 * (lane % 4) + sum % 2)
    }

    /// The row of a word that a lane holds of A, and which word of that row it is.
    #[inline]
    pub const fn place_of_a(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4 + 8 * (word % 2), lane % 4 + 4 * (word / 2))
    }

    /// The column of a word that a lane holds of B, and which word of that column it is.
    #[inline]
    pub const fn place_of_b(lane: usize, word: usize) -> (usize, usize) {
        (lane / 4, lane % 4 + 4 * word)
    }
}

/// The load of one, two or four matrices of 8x8 elements of 16 bits, each row of which is four words, a [`Ty::U32`] or
/// a [`Ty::F32`], that lie beside one another in shared memory. Lane `8 * i + r` says where row `r` of matrix `i` lies; what the others say,
/// where there are fewer matrices, is not looked at. Each lane gets a word of each matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadMatrix {
    /// How many: 1, 2 or 4.
    pub count: u8,
    /// Whether rows and columns, of elements of 16 bits, change places on the way.
    pub transposed: bool,
    /// Where the words go, one of each matrix: the last dimensions of a register array, all of them; the first element.
    pub to: Access,
    /// Where a row lies: 16 bytes.
    pub from: Access,
}

impl LoadMatrix {
    /// Of what was asked for, a lane gets this word: two elements that are neighbours in a row, the first in its lower half.
    #[inline]
    pub const fn place(lane: usize) -> (usize, usize) {
        (lane / 4, lane % 4)
    }
}
