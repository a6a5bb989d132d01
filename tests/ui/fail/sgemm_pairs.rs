//! Epilogues over pairs of columns. Each fault is reported at its token, or at the key that
//! excludes pairs.

use gemm_runtime::{Epilogue, N, SgemmKernel, epilogue, sgemm_kernel};

const _: SgemmKernel = sgemm_kernel!(epilogue: |acc| acc * next(acc));
const _: SgemmKernel = sgemm_kernel!(thread: 4x3, epilogue: |acc| acc * next(acc));
const _: SgemmKernel =
    sgemm_kernel!(tile: 32x32x8, thread: 4x4, fragment: strided, epilogue: |acc| next(acc));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, scaled, epilogue: |acc| acc * next(acc));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, epilogue: |acc, c[m, n]| c * next(acc));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, epilogue: |acc| 2.0 * pair(acc, next(acc)));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, epilogue: |acc| pair(acc));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, epilogue: |acc| acc * next(next(acc)));
const _: SgemmKernel = sgemm_kernel!(thread: 4x4, epilogue: |acc| (acc, pair(sum(acc), 0.0)));
const _: Epilogue<(N,)> = epilogue!(|acc, scale[m], bias[n]| acc + next(scale) + bias);
const _: Epilogue = epilogue!(|acc| acc * next(acc, acc));
const SWIGLU: Epilogue = epilogue!(|acc, bias[n]| (acc + bias) * next(acc + bias));

fn main() {
    let _ = SWIGLU;
}
