//! Specs that exceed registers, shared memory or threads. The message shows the sum.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(tile: 128x128x8, thread: 16x16);
const _: SgemmKernel = sgemm_kernel!(tile: 256x256x8, thread: 8x8);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x8, thread: 8x8, blocks_per_sm: 4);
const _: SgemmKernel = sgemm_kernel!(partials: 200, block: 32x32);
const _: SgemmKernel = sgemm_kernel!(tile: 128x256x16, thread: 8x16, stages: 40);
const _: SgemmKernel = sgemm_kernel!(tile: 256x256x128, thread: 8x8, double_buffer);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x128, thread: 8x8, double_buffer);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, pad_a: 4294967295);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, thread: 8x8, blocks_per_sm: 4);
const _: SgemmKernel = sgemm_kernel!(blocks_per_sm: 0);
const _: SgemmKernel = sgemm_kernel!(blocks_per_sm: 33);
const _: SgemmKernel = sgemm_kernel!(blocks_per_sm: 9);
const _: SgemmKernel = sgemm_kernel!(coarsen: 0);
const _: SgemmKernel = sgemm_kernel!(coarsen: 4294967295);
const _: SgemmKernel = sgemm_kernel!(raster: 0);
const _: SgemmKernel = sgemm_kernel!(unroll: 0);
const _: SgemmKernel = sgemm_kernel!(unroll: 5000);
const _: SgemmKernel = sgemm_kernel!(partials: 0);

fn main() {}
