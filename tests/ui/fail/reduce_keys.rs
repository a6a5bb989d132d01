//! Keys that are unknown, of another macro, or duplicate, and misplaced words.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(blok: 64);
const _: ReduceKernel = reduce_kernel!(tile: 8x8x8);
const _: ReduceKernel = reduce_kernel!(zzz);
const _: ReduceKernel = reduce_kernel!(interleaved);
const _: ReduceKernel = reduce_kernel!(block: 64, block: 128);
const _: ReduceKernel = reduce_kernel!(shuffle, shuffle);
const _: ReduceKernel = reduce_kernel!(type: 3);
const _: ReduceKernel = reduce_kernel!(3: 4);

fn main() {}
