//! A crate that depends on `gemm-runtime` under the name `kernels`. That it compiles is the test:
//! the macros must reach their crate by whatever name the user gave it.

use kernels::{ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};

/// A reduction.
pub const MAX: ReduceKernel = reduce_kernel!(op: max, block: 64);

/// A product, by the macro's full path.
pub const GEMM: SgemmKernel = kernels::sgemm_kernel!(tile: 32x32x8, thread: 2x2);

/// An item of the user's that has the crate's real name gets in nobody's way.
pub mod gemm_runtime {}

/// A kernel made where the names of the standard library mean something else.
pub fn unhygienic() -> SgemmKernel {
    #[allow(dead_code, non_camel_case_types, reason = "they are there to be in the way")]
    mod core {}
    sgemm_kernel!(block: 8x8)
}
