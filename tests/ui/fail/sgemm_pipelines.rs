//! Faulty pipelines: two at once, too few stages, or copies spread over too many steps.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, prefetch, double_buffer, stages: 3);
const _: SgemmKernel = sgemm_kernel!(stages: 1, tile: 32x32x32);
const _: SgemmKernel = sgemm_kernel!(stages: 0, tile: 32x32x32);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x7, stages: 2);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x8, stages: 2, spread: 9);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x8, stages: 2, spread: 0);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x8, stages: 2, unroll: 4);

fn main() {}
