//! Expressions of reductions: faults in names, types and forms of `map`, `fold` and `finish`.

use gemm_runtime::{ReduceKernel, reduce_kernel};

const _: ReduceKernel = reduce_kernel!(map: |x| x * y);
const _: ReduceKernel = reduce_kernel!(map: |x| x > 0.0);
const _: ReduceKernel = reduce_kernel!(map: |x| x + i);
const _: ReduceKernel<i32> = reduce_kernel!(type: i32, map: |x| x * 0.5);
const _: ReduceKernel<i32> = reduce_kernel!(type: i32, map: |x| sqrt(x));
const _: ReduceKernel<f32, u8> = reduce_kernel!(op: any, map: |x| x);
const _: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, x| x);
const _: ReduceKernel = reduce_kernel!(map: |x[n]| x);
const _: ReduceKernel = reduce_kernel!(map: x * x);
const _: ReduceKernel = reduce_kernel!(map: |a, b, c, d, e| a);
const _: ReduceKernel<u64> = reduce_kernel!(type: u64, map: |x| x);
const _: ReduceKernel = reduce_kernel!(finish: |s| s / n);
const _: ReduceKernel = reduce_kernel!(finish: |s, len, more| s);
const _: ReduceKernel = reduce_kernel!(op: mean_var, finish: |mean| mean);
const _: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, finish: |s| s);
const _: ReduceKernel = reduce_kernel!(fold: |a, b| a + c, identity: 0.0);
const _: ReduceKernel = reduce_kernel!(fold: |a, b| a < b, identity: 0.0);
const _: ReduceKernel = reduce_kernel!(fold: |a| a, identity: 0.0);
const _: ReduceKernel = reduce_kernel!(fold: |a, b| a + b);
const _: ReduceKernel = reduce_kernel!(fold: |a, b| a + b, identity: x);
const _: ReduceKernel = reduce_kernel!(fold: |a, b| a + b, identity: true);
const _: ReduceKernel = reduce_kernel!(op: max, fold: |a, b| a + b, identity: 0.0);
const _: ReduceKernel = reduce_kernel!(identity: 0.0);
const _: ReduceKernel<(f32, f32), f32> = reduce_kernel!(over: rows, map: |x, top[m]| exp(x - top));

fn main() {}
