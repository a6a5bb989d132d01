//! Keys of a GEMM that are unknown or have no effect.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(items: 4);
const _: SgemmKernel = sgemm_kernel!(aligned);
const _: SgemmKernel = sgemm_kernel!(strided);
const _: SgemmKernel = sgemm_kernel!(tille: 8x8x8);
const _: SgemmKernel = sgemm_kernel!(m);
const _: SgemmKernel = sgemm_kernel!(fragment: stride);
const _: SgemmKernel = sgemm_kernel!(bounds: none);
const _: SgemmKernel = sgemm_kernel!(batch: pointer);
const _: SgemmKernel = sgemm_kernel!(batch);
const _: SgemmKernel = sgemm_kernel!(batch: pointers, batch: strided);
const _: SgemmKernel = sgemm_kernel!(pointers);
const _: SgemmKernel = sgemm_kernel!(lanes: k, coarsen: 2, partials: 2);
const _: SgemmKernel = sgemm_kernel!(
    fragment: strided, float4, transpose, pad_a: 1, pad_b: 1, prefetch, spread: 2, warp: 8x8,
    order: column
);
const _: SgemmKernel = sgemm_kernel!(double_buffer);
const _: SgemmKernel = sgemm_kernel!(stages: 3);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, block: 16x16, lanes: m, coarsen: 2, slices: 2);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, fragment: strided);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, thread: 1x4, order: column);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x32, spread: 4);
const _: SgemmKernel = sgemm_kernel!(tile: 32x32x6, transpose, stages: 2, float4, pad_b: 1);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x8, transpose_b);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x8, batched);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x8, alpha: 0.5);
const _: SgemmKernel = sgemm_kernel!(batch: strided4);
const _: SgemmKernel = sgemm_kernel!(block: 8x8, batch: grouped);
const _: SgemmKernel = sgemm_kernel!(tile: 16x16x8, layout: tn, split_k: 4, batch: grouped);
const _: SgemmKernel = sgemm_kernel!(tile: 16x16x8, stream_k, products: 2, batch: grouped);
const _: SgemmKernel = sgemm_kernel!(tile: 16x16x8, bounds: aligned, batch: grouped);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x64, arith: bf16, mma: wgmma, batch: grouped);
const _: SgemmKernel = sgemm_kernel!(
    tile: 64x64x32, warp: 32x32, arith: bf16x6, convert: matrix, batch: grouped
);
const _: gemm_runtime::Sgemm<(gemm_runtime::BatchM,)> = sgemm_kernel!(
    tile: 16x16x8, batch: grouped, epilogue: |acc, scale[batch, m]| acc * scale
);
const _: SgemmKernel = sgemm_kernel!(tile: 8x8x8, bias);

fn main() {}
