//! Valid keys and values for which there is no kernel.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(block: 0);
const _: ReduceKernel = reduce_kernel!(block: 16);
const _: ReduceKernel = reduce_kernel!(block: 96);
const _: ReduceKernel = reduce_kernel!(block: 2048);
const _: ReduceKernel = reduce_kernel!(items: 0);
const _: ReduceKernel = reduce_kernel!(items: 4294967295);
const _: ReduceKernel = reduce_kernel!(block: 32, unroll_last_warp);
const _: ReduceKernel = reduce_kernel!(unroll_last_warp, shuffle);
const _: ReduceKernel = reduce_kernel!(tree: interleaved, shuffle);
const _: ReduceKernel = reduce_kernel!(tree: interleaved_divergent, unroll_last_warp);
const _: ReduceKernel = reduce_kernel!(name: __);
const _: ReduceKernel = reduce_kernel!(name: ünder);
const _: ReduceKernel = reduce_kernel!(launch: tiles, map: |x| x * x);
const _: ReduceKernel = reduce_kernel!(launch: tiles, blocks: 8);
const _: ReduceKernel = reduce_kernel!(op: sum, topk: 8);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 0);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 65);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, over: columns);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, over: rows, group: 8);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, finish: |x| x + 1.0);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, shuffle);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, run: 1024);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, launch: once);
const _: ReduceKernel = reduce_kernel!(op: max, topk: 8, launch: tiles);

fn main() {}
