//! What products are computed in.

use super::table::words;
use crate::target::Format;

words! {
    /// What the products of a sum are computed in. All but `f32` ask tensor cores: sm_80 and later.
    Arith {
        /// In `f32`, by fused multiply-adds.
        F32 = "f32",
        /// In `bf16`, which A and B are rounded to: 8 bits of the mantissa.
        Bf16 = "bf16",
        /// In `f16`, which A and B are rounded to: 11 bits of the mantissa, and no number above 65504.
        F16 = "f16",
        /// In `tf32`, which A and B are rounded to: 11 bits of the mantissa.
        Tf32 = "tf32",
        /// As accurate as `f32`: each number is the sum of three of `bf16`, and of their nine products the six
        /// largest are summed.
        Bf16x6 = "bf16x6",
        /// The same with all nine products.
        Bf16x9 = "bf16x9",
        /// Nearly as accurate as `f32`: each number is the sum of two of `tf32`, and of their four products the
        /// three largest are summed.
        Tf32x3 = "tf32x3",
        /// Three products, by `mma: wgmma` alone: rows of A and columns of B are scaled by powers of two to the range
        /// of `f16`, each number is the sum of two of `f16`, and of their four products the three largest are summed.
        F16x3 = "f16x3",
    }
}

words! {
    /// What a table grants its rows: how far an element of A·B may be off. Each class has what those before it have.
    Accuracy {
        /// As far as multiply-adds in `f32` are: `arith: f32` alone.
        Ieee = "ieee",
        /// As far as [`Arith::error_bound`] says of the same element of |A|·|B|: also `bf16x6`, `bf16x9` and `tf32x3`.
        Bound = "bound",
        /// Of numbers far below the greatest of their row of A, or column of B, as far as that one says: also `f16x3`.
        Norm = "norm",
    }
}

impl Arith {
    /// The class that a table has to grant; none does so to those that do not stand for `f32`.
    pub fn accuracy(self) -> Option<Accuracy> {
        Some(match self {
            Self::F32 => Accuracy::Ieee,
            Self::Bf16x6 | Self::Bf16x9 | Self::Tf32x3 => Accuracy::Bound,
            Self::F16x3 => Accuracy::Norm,
            Self::Bf16 | Self::F16 | Self::Tf32 => return None,
        })
    }

    /// What tensor cores multiply; `None` of `f32`.
    pub fn format(self) -> Option<Format> {
        Some(match self {
            Self::F32 => return None,
            Self::Bf16 | Self::Bf16x6 | Self::Bf16x9 => Format::Bf16,
            Self::F16 | Self::F16x3 => Format::F16,
            Self::Tf32 | Self::Tf32x3 => Format::Tf32,
        })
    }

    /// As how many numbers of that format each of A and B is taken, the largest first.
    pub fn splits(self) -> u32 {
        match self {
            Self::F32 | Self::Bf16 | Self::F16 | Self::Tf32 => 1,
            Self::Tf32x3 | Self::F16x3 => 2,
            Self::Bf16x6 | Self::Bf16x9 => 3,
        }
    }

    /// Which of those of A is multiplied by which of B, in the order in which the products are summed: small ones come
    /// before large ones. None under `f32`.
    pub fn products(self) -> &'static [[u32; 2]] {
        const OF_THREE: [[u32; 2]; 9] =
            [[2, 2], [2, 1], [1, 2], [1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]];
        match self {
            Self::F32 => &[],
            Self::Bf16 | Self::F16 | Self::Tf32 => &[[0, 0]],
            Self::Tf32x3 | Self::F16x3 => &[[1, 0], [0, 1], [0, 0]],
            Self::Bf16x6 => OF_THREE.split_at(3).1,
            Self::Bf16x9 => &OF_THREE,
        }
    }

    /// The most that an element of A·B is off, over the same element of |A|·|B|: what rounding of as many terms as K and
    /// of A and B costs, and what products cost that are left out. Twice what `f32` needs is allowed. A number that is
    /// subnormal in the format, or above its greatest, is off by more under the arithmetics that do not stand for `f32`, and
    /// what underflows costs half of the smallest number above 0 a term. Under `f16x3` a number of A that is less than
    /// 2^-16 of the greatest of its row is off by 2^-38 of that one at most, and likewise one of B by its column.
    pub fn error_bound(self, terms: u64) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        // Of a number, by bits of the mantissa, and of the product of two.
        let rounded = |bits: i32| 2.0 * 2f64.powi(-bits) + 2f64.powi(-2 * bits);
        let beside = match self {
            Self::F32 => 0.0,
            Self::Bf16 => rounded(8) + 2.0 * unit,
            Self::F16 | Self::Tf32 => rounded(11) + 2.0 * unit,
            // Three products are left out, or none, and tensor cores cut what they sum.
            Self::Bf16x6 | Self::Bf16x9 => 2.0 * unit,
            // One product, and what two numbers leave of each: 2^-22 of a term each.
            Self::Tf32x3 | Self::F16x3 => 14.0 * unit,
        };
        2.0 * terms as f64 * unit + beside
    }

    /// Whether rows of A and columns of B are scaled to the range of the format.
    pub fn is_scaled(self) -> bool {
        self == Self::F16x3
    }

    /// Whether it stands for `f32`: a number that the planes cannot hold is seen, and its sums are then those of `f32`.
    pub fn is_emulation(self) -> bool {
        self.splits() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is granted, and the bounds, as the README has them.
    #[test]
    fn classes_and_bounds_are_as_documented() {
        let unit = 2f64.powi(-24);
        let terms = 1000;
        let of_terms = 2.0 * 1000.0 * unit;
        for (arith, class, bound) in [
            (Arith::F32, Some(Accuracy::Ieee), of_terms),
            (Arith::Bf16x6, Some(Accuracy::Bound), of_terms + 2.0 * unit),
            (Arith::Bf16x9, Some(Accuracy::Bound), of_terms + 2.0 * unit),
            (Arith::Tf32x3, Some(Accuracy::Bound), of_terms + 14.0 * unit),
            (Arith::F16x3, Some(Accuracy::Norm), of_terms + 14.0 * unit),
            (Arith::Bf16, None, 2f64.powi(-7) + 2f64.powi(-16) + of_terms + 2.0 * unit),
            (Arith::F16, None, 2f64.powi(-10) + 2f64.powi(-22) + of_terms + 2.0 * unit),
            (Arith::Tf32, None, 2f64.powi(-10) + 2f64.powi(-22) + of_terms + 2.0 * unit),
        ] {
            assert_eq!(arith.accuracy(), class, "{arith}");
            let found = arith.error_bound(terms);
            assert!((found - bound).abs() < 1e-9 * bound, "{arith}: {found}, not {bound}");
        }
    }
}
