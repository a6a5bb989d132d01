//! Numbers of reductions, and the value beside an index.

use gemm_runtime::{Number, ReduceKernel, reduce_kernel};

const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |x, mu: bf16| x - mu);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |mu: f32, x| x - mu);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |mu: f32| mu);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |x, mu[m]: f32| x - mu);
const _: ReduceKernel<(f32, Number<f64>), f32> = reduce_kernel!(map: |x, mu: f64| x - mu);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |x, mu: f32| x);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(map: |x, output: f32| x * output);
const _: ReduceKernel<(f32, Number<f32>), f32> = reduce_kernel!(finish: |s, input: f32| s + input);
const _: ReduceKernel<(f32, Number<f32>), f32> =
    reduce_kernel!(map: |x, t: f32| x * t, finish: |s, t: f64| s + f32(t));
const _: ReduceKernel<(f32, f32, f32), f32> = reduce_kernel!(
    map: |x, a: f32, b: f32, c: f32| a * x + b * c,
    finish: |s, d: f32, e: f32| s + d + e
);
const _: ReduceKernel<f32, f32> = reduce_kernel!(map: |x, mu: f32| x - mu);
const _: ReduceKernel = reduce_kernel!(fold: |a, b: f32| a + b, identity: 0.0);
const _: ReduceKernel<f32, (f32, u32)> = reduce_kernel!(op: max, with_value);
const _: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, with_value);
const _: ReduceKernel<f32, u32> = reduce_kernel!(op: argmax, result: f16);

fn main() {}
