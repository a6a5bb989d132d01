//! Faulty specs of GEMMs on tensor cores.

use gemm_runtime::{SgemmKernel, SgemmTable, sgemm_kernel, sgemm_table};

const _: SgemmKernel = sgemm_kernel!(arith: bf16);
const _: SgemmKernel = sgemm_kernel!(tile: 64x96x32, arith: bf16x6);
const _: SgemmKernel = sgemm_kernel!(tile: 17x64x32, arith: bf16x6);
const _: SgemmKernel = sgemm_kernel!(tile: 64x60x32, warp: 32x20, arith: bf16);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x24, warp: 32x32, arith: f16);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: f16, slices: 4);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: f16, promote: 24);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x48, warp: 32x32, arith: tf32x3, promote: 32);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, thread: 8x4, arith: bf16);
const _: SgemmKernel = sgemm_kernel!(
    tile: 64x64x32, warp: 32x32, arith: bf16, fragment: split, order: column, partials: 2
);
const _: SgemmKernel =
    sgemm_kernel!(tile: 64x64x32, warp: 32x32, thread: 8x4, promote: 16, ldmatrix);
const _: SgemmKernel =
    sgemm_kernel!(layout: tn, tile: 64x64x32, warp: 32x32, arith: tf32, ldmatrix);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, thread: 4x4, transpose, swizzle);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, thread: 4x4, pad_a: 4, swizzle);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x24, thread: 4x4, swizzle);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x32, warp: 128x64, arith: bf16x9);
const _: SgemmKernel =
    sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: bf16, stages: 3, spread: 3);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: bfloat16);
const _: SgemmTable = sgemm_table!(else => tile: 64x64x32, warp: 32x32, arith: bf16x6);

fn main() {}
