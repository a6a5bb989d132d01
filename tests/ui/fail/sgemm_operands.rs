//! Operands that an epilogue cannot have.

use gemm_runtime::{BatchN, M, MN, N, Sgemm, SgemmKernel, sgemm_kernel};

const _: Sgemm<(N,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, a[n]| acc + a);
const _: Sgemm<(f32, f32, f32)> = sgemm_kernel!(scaled, epilogue: |acc, alpha| acc * alpha);
const _: SgemmKernel = sgemm_kernel!(block: 8x8, epilogue: |acc, c[n]| acc + c);
const _: Sgemm<(N, M)> = sgemm_kernel!(block: 8x8, epilogue: |acc, x[n], x[m]| acc + x);
const _: Sgemm<(N,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, bias[n]| acc);
const _: Sgemm<(MN,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, r[n, m]| acc + r);
const _: Sgemm<(MN,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, r[m, n]| acc + r[row, col]);
const _: Sgemm<(N,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, relu[n]| acc + relu);
const _: Sgemm<(N,)> = sgemm_kernel!(block: 8x8, epilogue: |bias[n], acc| acc + bias);
const _: SgemmKernel = sgemm_kernel!(scaled: true);
const _: Sgemm<(BatchN,)> = sgemm_kernel!(block: 8x8, epilogue: |acc, bias[batch, n]| acc + bias);

const MANY: Sgemm<(f32, f32)> = sgemm_kernel! {
    block: 8x8,
    epilogue: |acc, x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11, x12|
        acc + x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11 + x12
};

fn main() {}
