//! All faults of a spec are reported together, each at its own token.

use gemm_runtime::{ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};

const SUM: ReduceKernel = reduce_kernel!(
    op: sun,
    block: 96,
    items: 0,
    blok: 3,
    shuffle: 1,
);

const GEMM: SgemmKernel = sgemm_kernel! {
    <
    tile: 64x64x8,
    thread: 3x5,
    stages: 1,
    prefetch,
    double_buffer,
    transpoze,
    pad_a: x,
    block: 16x16
    >
};

fn main() {}
