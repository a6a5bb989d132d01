//! Values that are missing, malformed, of the wrong kind, or not among the words of the key.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(block);
const _: ReduceKernel = reduce_kernel!(block:);
const _: ReduceKernel = reduce_kernel!(block: items: 4);
const _: ReduceKernel = reduce_kernel!(float4: 4);
const _: ReduceKernel = reduce_kernel!(block: big);
const _: ReduceKernel = reduce_kernel!(block: "64");
const _: ReduceKernel = reduce_kernel!(block: -8);
const _: ReduceKernel = reduce_kernel!(block: 1.5);
const _: ReduceKernel = reduce_kernel!(block: 1_024);
const _: ReduceKernel = reduce_kernel!(block: 5000000000);
const _: ReduceKernel = reduce_kernel!(block: 16x16);
const _: ReduceKernel = reduce_kernel!(block: 12u32);
const _: ReduceKernel = reduce_kernel!(block: (4));
const _: ReduceKernel = reduce_kernel!(op: sun);
const _: ReduceKernel = reduce_kernel!(op: quux);
const _: ReduceKernel = reduce_kernel!(op: 4);
const _: ReduceKernel = reduce_kernel!(op: Op::Sum);
const _: ReduceKernel = reduce_kernel!(name: 3x);

fn main() {}
