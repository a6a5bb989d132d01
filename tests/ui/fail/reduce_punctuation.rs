//! Faulty commas, colons and angle brackets.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(op: sum block: 64);
const _: ReduceKernel = reduce_kernel!(shuffle float4);
const _: ReduceKernel = reduce_kernel!(block 64);
const _: ReduceKernel = reduce_kernel!(block = 64);
const _: ReduceKernel = reduce_kernel!(block: 64;);
const _: ReduceKernel = reduce_kernel!(, block: 64);
const _: ReduceKernel = reduce_kernel!(block: 64,, items: 2);
const _: ReduceKernel = reduce_kernel!(<block: 64);
const _: ReduceKernel = reduce_kernel!(block: 64>);
const _: ReduceKernel = reduce_kernel!(block: 64 128);

fn main() {}
