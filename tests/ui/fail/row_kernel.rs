//! Kernels over whole rows: faults at their tokens, and the macro for each kind of expression.

use gemm_runtime::{M, MN, Map, N, map_kernel, row_kernel};

const _: Map<(MN,)> = map_kernel!(|x[m, n]| { let s = sum(x); x / s });
const _: Map<(MN,)> = row_kernel!(|x[m, n]| relu(x));
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x - sum(x, 1.0));
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x - prod());
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x / sum(x > 0.0));
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x + sum(col));
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x + max(top));
const _: Map<(MN,)> = row_kernel!(|x[m, n]| x.sum());
const _: Map<(MN,)> = row_kernel!(|x[m, n]| mean(x));
const _: Map<(MN<i64>,), MN<i64>> = row_kernel!(|x[m, n]| sum(x), type: i64);
const _: Map<(MN<i32>,), MN<i32>> = row_kernel!(|x[m, n]| prod(x), type: i32);
const _: Map<(MN,), M> = row_kernel!(|x[m, n]| -> f32[m] x - max(x));
const _: Map<(MN,), M> = row_kernel!(|x[m, n]| -> f32[n] sum(x));
const _: Map<(N,), M> = row_kernel!(|v[n]| -> f32[m] sum(v));
const _: Map<(M,), M> = map_kernel!(|v[m]| -> f32[m] v);
const _: Map<(MN,), MN> = row_kernel!(|x[m, n]| -> f32[m] sum(x));
const _: Map<(MN,)> = row_kernel!(struct Softmax; |x[m, n]| x / sum(x));

fn main() {}
