//! Tiles, threads and warps whose extents contradict each other.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 3x5);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8);
const _: SgemmKernel = sgemm_kernel!(block: 64x64);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x4, warp: 24x16);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x4, warp: 30x16);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x4, warp: 16x16);
const _: SgemmKernel = sgemm_kernel!(tile: 96x64x8, thread: 4x4, warp: 64x8);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x6, float4);
const _: SgemmKernel = sgemm_kernel!(tile: 32x30x8, float4);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x2, fragment: split);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x8, partials: 3);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x8, partials: 4, unroll: 6);

fn main() {}
