//! Malformed sizes.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(tile: 128x);
const _: SgemmKernel = sgemm_kernel!(tile: 0x8);
const _: SgemmKernel = sgemm_kernel!(tile: 0x8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 8X8);
const _: SgemmKernel = sgemm_kernel!(tile: 8X8X8);
const _: SgemmKernel = sgemm_kernel!(tile: 1.5x2);
const _: SgemmKernel = sgemm_kernel!(tile: 1.5x2x3);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x8x8);
const _: SgemmKernel = sgemm_kernel!(tile: -8x8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 1_0x8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x5000000000);
const _: SgemmKernel = sgemm_kernel!(tile: 99999999999999999999x8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 8 x 8 x 8);
const _: SgemmKernel = sgemm_kernel!(tile: 8);
const _: SgemmKernel = sgemm_kernel!(tile: 8xx8);
const _: SgemmKernel = sgemm_kernel!(tile: big);
const _: SgemmKernel = sgemm_kernel!(tile: 1e5x2x2);
const _: SgemmKernel = sgemm_kernel!(thread: 0x8, tile: 8x8x8);
const _: SgemmKernel = sgemm_kernel!(stages: 2x2, tile: 32x32x8);

fn main() {}
