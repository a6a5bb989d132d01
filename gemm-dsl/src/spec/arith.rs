//! Arithmetic of a GEMM's multiplications, and its accuracy.

use super::table::words;
use crate::target::Format;

words! {
    /// Arithmetic of the multiplications of a GEMM. All but `f32` use tensor cores (sm_80 and
    /// later).
    Arith {
        /// FP32 fused multiply-adds, on CUDA cores.
        F32 = "f32",
        /// A and B rounded to `bf16`: 8 bits of significand.
        Bf16 = "bf16",
        /// A and B rounded to `f16`: 11 bits of significand, and magnitudes up to 65504.
        F16 = "f16",
        /// A and B rounded to `tf32`: 11 bits of significand.
        Tf32 = "tf32",
        /// FP32 emulation, about as accurate as `f32`: each number is split into three of `bf16`.
        /// The six largest of the nine products are summed.
        Bf16x6 = "bf16x6",
        /// As `bf16x6`, with all nine products.
        Bf16x9 = "bf16x9",
        /// FP32 emulation, nearly as accurate as `f32`: each number is split into two of `tf32`.
        /// The three largest of the four products are summed.
        Tf32x3 = "tf32x3",
        /// FP32 emulation, only with `mma: wgmma`: powers of two scale rows of A and columns of B
        /// to the range of `f16`. Each number is split into two of `f16`. The three largest of the
        /// four products are summed.
        F16x3 = "f16x3",
    }
}

words! {
    /// Accuracy that a table demands of its rules, as a bound of the error of an element of A·B.
    /// Each class contains the ones before it.
    Accuracy {
        /// The error of `f32` multiply-adds: only `arith: f32`.
        Ieee = "ieee",
        /// The error of [`Arith::error_bound`], relative to the same element of |A|·|B|: also
        /// `bf16x6`, `bf16x9` and `tf32x3`.
        Bound = "bound",
        /// As `bound`, except for numbers far below the greatest of their row of A or column of B,
        /// whose error is relative to that one: also `f16x3`.
        Norm = "norm",
    }
}

impl Arith {
    /// Returns the class that admits this arithmetic; `None` for arithmetics that do not emulate
    /// `f32`, which no class admits.
    pub fn accuracy(self) -> Option<Accuracy> {
        Some(match self {
            Self::F32 => Accuracy::Ieee,
            Self::Bf16x6 | Self::Bf16x9 | Self::Tf32x3 => Accuracy::Bound,
            Self::F16x3 => Accuracy::Norm,
            Self::Bf16 | Self::F16 | Self::Tf32 => return None,
        })
    }

    /// Returns the format that tensor cores multiply; `None` for `f32`.
    pub fn format(self) -> Option<Format> {
        Some(match self {
            Self::F32 => return None,
            Self::Bf16 | Self::Bf16x6 | Self::Bf16x9 => Format::Bf16,
            Self::F16 | Self::F16x3 => Format::F16,
            Self::Tf32 | Self::Tf32x3 => Format::Tf32,
        })
    }

    /// Returns the number of splits of an element of A or B, the largest first.
    pub fn splits(self) -> u32 {
        match self {
            Self::F32 | Self::Bf16 | Self::F16 | Self::Tf32 => 1,
            Self::Tf32x3 | Self::F16x3 => 2,
            Self::Bf16x6 | Self::Bf16x9 => 3,
        }
    }

    /// Returns the pairs of splits, of A and of B, that are multiplied, in the order of summation:
    /// small products come before large ones. Empty for `f32`.
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

    /// Returns the largest error of an element of A·B, relative to the same element of |A|·|B|, for
    /// a K of `terms`. It covers the rounding of the sum and of A and B, and the omitted products
    /// of splits; twice the error of `f32` is allowed.
    ///
    /// Larger errors are possible for the arithmetics that do not emulate `f32`, for numbers that
    /// are subnormal in the format or above its greatest. Under `f16x3` a number of A below 2^-16
    /// of the greatest of its row has an error of at most 2^-38 of that one; likewise a number of B
    /// by its column. [`underflow_bound`](Self::underflow_bound) is the error of subnormal sums.
    pub fn error_bound(self, terms: u64) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        // Errors of a rounded number, by bits of significand, and of the product of two.
        let rounded = |bits: i32| 2.0 * 2f64.powi(-bits) + 2f64.powi(-2 * bits);
        let beside = match self {
            Self::F32 => 0.0,
            Self::Bf16 => rounded(8) + 2.0 * unit,
            Self::F16 | Self::Tf32 => rounded(11) + 2.0 * unit,
            // Three products are omitted, or none, and tensor cores truncate their sums.
            Self::Bf16x6 | Self::Bf16x9 => 2.0 * unit,
            // One product is omitted, and two numbers leave a remainder of each: 2^-22 of a product
            // each.
            Self::Tf32x3 | Self::F16x3 => 14.0 * unit,
        };
        2.0 * terms as f64 * unit + beside
    }

    /// Returns the largest error from underflow of an element of A·B, for a K of `terms`. It is
    /// absolute, and adds to [`error_bound`](Self::error_bound).
    ///
    /// `f32` rounds each multiply-add, by at most half of the smallest positive number, 2^-149.
    /// Tensor cores truncate each sum to a multiple of 2^-149: at most one sum per product of
    /// splits. The sums of `f16x3` are truncated while they are scaled, and rounded when they are
    /// scaled back.
    pub fn underflow_bound(self, terms: u64) -> f64 {
        let least = f64::from(f32::from_bits(1));
        let of_term = match self {
            Self::F32 => 0.5,
            Self::F16x3 => 1.0,
            _ => self.products().len() as f64,
        };
        of_term * terms as f64 * least
    }

    /// Returns true if rows of A and columns of B are scaled to the range of the format.
    pub fn is_scaled(self) -> bool {
        self == Self::F16x3
    }

    /// Returns true for FP32 emulation. The kernel detects numbers that the split cannot represent,
    /// and their sums are then computed in `f32`.
    pub fn is_emulation(self) -> bool {
        self.splits() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The classes and bounds are as in the guide of gemm-runtime, `tensor_cores`.
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
