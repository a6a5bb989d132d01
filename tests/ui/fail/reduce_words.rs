//! Invalid words and numbers: for the element types, for the axis, and for the threads and blocks
//! that fold it.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(type: f33);
const _: ReduceKernel = reduce_kernel!(type: usize);
const _: ReduceKernel<f32, f64> = reduce_kernel!(acc: f46);
const _: ReduceKernel<f16> = reduce_kernel!(type: f16, acc: f16);
const _: ReduceKernel<f64, f32> = reduce_kernel!(type: f64, acc: f32);
const _: ReduceKernel<i32, u32> = reduce_kernel!(type: i32, acc: u32);
const _: ReduceKernel<f32, i32> = reduce_kernel!(result: i32);
const _: ReduceKernel<f32, u16> = reduce_kernel!(op: argmax, index: u16);
const _: ReduceKernel = reduce_kernel!(index: u64);
const _: ReduceKernel = reduce_kernel!(op: max, compensated);
const _: ReduceKernel<i32> = reduce_kernel!(type: i32, compensated);
const _: ReduceKernel<i32, (i32, i32)> = reduce_kernel!(op: mean_var, type: i32);
const _: ReduceKernel<f64> = reduce_kernel!(op: logsumexp, type: f64);
const _: ReduceKernel = reduce_kernel!(over: row);
const _: ReduceKernel = reduce_kernel!(over: (rows, columns));
const _: ReduceKernel = reduce_kernel!(rows);
const _: ReduceKernel = reduce_kernel!(pitched);
const _: ReduceKernel = reduce_kernel!(over: rows, group: 3);
const _: ReduceKernel = reduce_kernel!(over: rows, group: 64);
const _: ReduceKernel = reduce_kernel!(group: 32);
const _: ReduceKernel = reduce_kernel!(over: columns, float4);
const _: ReduceKernel = reduce_kernel!(over: rows, shuffle);
const _: ReduceKernel = reduce_kernel!(over: segments, blocks: 4);
const _: ReduceKernel = reduce_kernel!(over: rows, blocks: 4);
const _: ReduceKernel = reduce_kernel!(blocks: 100000);
const _: ReduceKernel = reduce_kernel!(over: segments, run: 4096);
const _: ReduceKernel = reduce_kernel!(over: rows, run: 4096);
const _: ReduceKernel = reduce_kernel!(run: 0);
const _: ReduceKernel = reduce_kernel!(run: 1000, items: 2);
const _: ReduceKernel = reduce_kernel!(run: 4096, blocks: 4);
const _: ReduceKernel = reduce_kernel!(launch: twice);
const _: ReduceKernel = reduce_kernel!(over: rows, launch: once);

use gemm_runtime::half::f16;

fn main() {}
