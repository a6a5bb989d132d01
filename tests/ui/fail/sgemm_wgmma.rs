//! Faulty specs of GEMMs with `mma: wgmma`.

use gemm_runtime::{SgemmKernel, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(tile: 128x128x16, thread: 8x8, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: bf16, copy: tma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, arith: bf16, mma: wgmma, producer);
const _: SgemmKernel =
    sgemm_kernel!(tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, persistent);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, arith: bf16, mma: wgmma, stages: 3);
const _: SgemmKernel = sgemm_kernel!(tile: 96x128x64, arith: bf16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 320x128x64, arith: bf16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x260x64, arith: bf16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x48, arith: bf16x6, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, arith: tf32, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, warp: 32x128, arith: f16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 128x128x64, arith: f16, mma: wgmma, promote: 24);
const _: SgemmKernel = sgemm_kernel!(
    tile: 128x128x64, thread: 8x8, arith: bf16x6, mma: wgmma, transpose, pad_a: 4, slices: 2,
    ldmatrix
);
const _: SgemmKernel = sgemm_kernel!(tile: 256x256x64, warp: 16x8, arith: bf16, mma: wgmma);
const _: SgemmKernel =
    sgemm_kernel!(tile: 128x128x64, arith: bf16x6, mma: wgmma, copy: tma, stages: 3);
const _: SgemmKernel = sgemm_kernel!(tile: 256x256x64, arith: bf16x6, mma: wgmma);
const _: SgemmKernel =
    sgemm_kernel!(tile: 128x256x32, arith: bf16x6, mma: wgmma, copy: tma, producer);
const _: SgemmKernel = sgemm_kernel!(
    tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, stages: 2, blocks_per_sm: 4
);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: f16x3);
const _: SgemmKernel =
    sgemm_kernel!(tile: 128x40x64, arith: bf16, mma: wgmma, copy: tma, producer, cluster: 2);
const _: SgemmKernel = sgemm_kernel!(
    tile: 128x128x64, arith: bf16, mma: wgmma, copy: tma, producer, cluster: 2, split_k: 3
);
const _: SgemmKernel = sgemm_kernel!(tile: 64x64x32, warp: 32x32, arith: bf16, swap_ab);
const _: SgemmKernel = sgemm_kernel!(tile: 12x96x64, swap_ab, arith: bf16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(tile: 264x320x64, swap_ab, arith: bf16, mma: wgmma);
const _: SgemmKernel = sgemm_kernel!(
    tile: 16x64x64, warp: 16x64, swap_ab, arith: bf16, mma: wgmma, copy: tma, producer, cluster: 2,
    epilogue: |acc| acc * next(acc)
);

fn main() {}
