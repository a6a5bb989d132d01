//! Arithmetic in which a GEMM multiplies, and the accuracy of each arithmetic.

use super::table::words;
use crate::target::Format;

words! {
    /// Arithmetic of the multiplications of a GEMM. All arithmetics except `f32` use tensor cores
    /// (sm_80 and later).
    Arith {
        /// FP32 fused multiply-adds, on CUDA cores.
        F32 = "f32",
        /// A and B rounded to `bf16`: 8 bits of significand.
        Bf16 = "bf16",
        /// A and B rounded to `f16`: 11 bits of significand, and magnitudes up to 65504.
        F16 = "f16",
        /// A and B rounded to `tf32`: 11 bits of significand.
        Tf32 = "tf32",
        /// A and B of 8-bit floats, `e4m3` or `e5m2`, with `mma: wgmma`. On sm_90, the sums of one
        /// instruction keep 13 bits after the leading one; `promote` adds them in `f32`.
        Fp8 = "fp8",
        /// A and B of bytes, `i8` or `u8`, with `mma: wgmma`. Sums are exact modulo 2^32.
        Int8 = "int8",
        /// FP32 emulation, about as accurate as `f32`: each number is split into three `bf16`
        /// numbers. The six largest of the nine products are summed.
        Bf16x6 = "bf16x6",
        /// Like `bf16x6`, but sums all nine products.
        Bf16x9 = "bf16x9",
        /// FP32 emulation, nearly as accurate as `f32`: each number is split into two `tf32`
        /// numbers. The three largest of the four products are summed.
        Tf32x3 = "tf32x3",
        /// FP32 emulation, only with `mma: wgmma`. Powers of two scale rows of A and columns of B
        /// to the range of `f16`. Each number is split into two `f16` numbers. The three largest of
        /// the four products are summed.
        F16x3 = "f16x3",
    }
}

words! {
    /// Accuracy class of a table: an error bound for the elements of A·B that all rules meet. Each
    /// class also allows the arithmetics of the previous classes.
    Accuracy {
        /// The error is that of `f32` multiply-adds. Allows only `arith: f32`.
        Ieee = "ieee",
        /// The error is at most [`Arith::error_bound`], relative to the same element of |A|·|B|.
        /// Also allows `bf16x6`, `bf16x9` and `tf32x3`.
        Bound = "bound",
        /// Like `bound`, except for numbers far below the greatest magnitude of their row of A or
        /// column of B. Their error is relative to this magnitude. Also allows `f16x3`.
        Norm = "norm",
    }
}

impl Arith {
    /// Returns the strictest class that allows this arithmetic. `None` for arithmetics that neither
    /// are nor emulate `f32`; no class allows them.
    pub fn accuracy(self) -> Option<Accuracy> {
        Some(match self {
            Self::F32 => Accuracy::Ieee,
            Self::Bf16x6 | Self::Bf16x9 | Self::Tf32x3 => Accuracy::Bound,
            Self::F16x3 => Accuracy::Norm,
            Self::Bf16 | Self::F16 | Self::Tf32 | Self::Fp8 | Self::Int8 => return None,
        })
    }

    /// Returns true for arithmetics that multiply the elements of A and B as they are. They need
    /// matrices of certain types and `mma: wgmma`.
    pub fn takes_elements(self) -> bool {
        matches!(self, Self::Fp8 | Self::Int8)
    }

    /// Returns the format to which elements are converted. `None` for `f32`, and for arithmetics
    /// that take the elements of A and B as they are.
    pub fn format(self) -> Option<Format> {
        Some(match self {
            Self::F32 | Self::Fp8 | Self::Int8 => return None,
            Self::Bf16 | Self::Bf16x6 | Self::Bf16x9 => Format::Bf16,
            Self::F16 | Self::F16x3 => Format::F16,
            Self::Tf32 | Self::Tf32x3 => Format::Tf32,
        })
    }

    /// Returns the number of splits of an element of A or B.
    pub fn splits(self) -> u32 {
        match self {
            Self::F32 | Self::Bf16 | Self::F16 | Self::Tf32 | Self::Fp8 | Self::Int8 => 1,
            Self::Tf32x3 | Self::F16x3 => 2,
            Self::Bf16x6 | Self::Bf16x9 => 3,
        }
    }

    /// Returns the pairs (split of A, split of B) that are multiplied, in the order of summation.
    /// Small products are summed before large ones. Empty for `f32`.
    pub fn products(self) -> &'static [[u32; 2]] {
        const OF_THREE: [[u32; 2]; 9] =
            [[2, 2], [2, 1], [1, 2], [1, 1], [2, 0], [0, 2], [1, 0], [0, 1], [0, 0]];
        match self {
            Self::F32 => &[],
            Self::Bf16 | Self::F16 | Self::Tf32 | Self::Fp8 | Self::Int8 => &[[0, 0]],
            Self::Tf32x3 | Self::F16x3 => &[[1, 0], [0, 1], [0, 0]],
            Self::Bf16x6 => OF_THREE.split_at(3).1,
            Self::Bf16x9 => &OF_THREE,
        }
    }

    /// Returns the largest error of an element of A·B, relative to the same element of |A|·|B|, for
    /// a K of `terms`. The bound covers the rounding of A, B and their sum, and the omitted
    /// products of splits. It allows twice the summation error of `f32`.
    ///
    /// Arithmetics that do not emulate `f32` may exceed the bound for numbers that are subnormal in
    /// their format or above its maximum. Under `f16x3`, numbers of A below 2^-16 of their row's
    /// greatest magnitude have an error of at most 2^-38 of that magnitude. The same holds for B
    /// and its columns. Underflow adds [`underflow_bound`](Self::underflow_bound).
    pub fn error_bound(self, terms: u64) -> f64 {
        let unit = f64::from(f32::EPSILON) / 2.0;
        // Relative error of a product of two numbers, each rounded to a significand of `bits` bits.
        let rounded = |bits: i32| 2.0 * 2f64.powi(-bits) + 2f64.powi(-2 * bits);
        let beside = match self {
            Self::F32 | Self::Int8 => 0.0,
            Self::Bf16 => rounded(8) + 2.0 * unit,
            Self::F16 | Self::Tf32 => rounded(11) + 2.0 * unit,
            // Each instruction truncates 32 products, the sum so far, and the new sum.
            Self::Fp8 => terms.div_ceil(32) as f64 * 34.0 * 2f64.powi(-13),
            // At most three products are omitted, and tensor cores truncate their sums.
            Self::Bf16x6 | Self::Bf16x9 => 2.0 * unit,
            // One product is omitted, and A and B each leave a remainder after two splits. Each of
            // the three is at most 2^-22 of a product.
            Self::Tf32x3 | Self::F16x3 => 14.0 * unit,
        };
        2.0 * terms as f64 * unit + beside
    }

    /// Returns the largest error from underflow of an element of A·B, for a K of `terms`. It is
    /// absolute and in addition to [`error_bound`](Self::error_bound).
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

    /// Returns true for FP32 emulation. Its kernels detect numbers that the splits cannot
    /// represent, and the affected sums are then computed in `f32`.
    pub fn is_emulation(self) -> bool {
        self.splits() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guide page `tensor_cores` of gemm-runtime documents these classes and bounds.
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
            (Arith::Fp8, None, 32.0 * 34.0 * 2f64.powi(-13) + of_terms),
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
