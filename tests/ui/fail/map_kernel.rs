//! Elementwise kernels: faults at their tokens, and operands and results of a wrong type.

use gemm_runtime::half::bf16;
use gemm_runtime::{Buffer, Device, InPlace, MN, Map, Matrix, N, map_kernel};

const _: Map<(MN,)> = map_kernel!();
const _: Map<(MN,)> = map_kernel!(block: 128);
const _: Map<(MN,)> = map_kernel!(x[m, n] + 1.0);
const _: Map<(MN,)> = map_kernel!(|x[n, m]| x);
const _: Map<(MN,)> = map_kernel!(|x[i]| x);
const _: Map<(MN,)> = map_kernel!(|x[m, n]: half| x);
const _: Map<(MN<u64>,)> = map_kernel!(|x[m, n]: u64| f32(1));
const _: Map<(MN, bf16)> = map_kernel!(|x[m, n], s: bf16| x * s);
const _: Map<(MN,), MN<bf16>> = map_kernel!(|x[m, n]| -> bf16 x + y);
const _: Map<(MN,), (MN, MN)> = map_kernel!(|x[m, n]| -> (f32, f32) x);
const _: Map<(MN,), (MN, MN)> = map_kernel!(|x[m, n]| (x, x + 1));
const _: Map<(MN,), (MN, MN)> = map_kernel!(|x[m, n]| -> (f32, f32) (x, col));
const _: Map<(MN,), MN<i32>> = map_kernel!(|x[m, n]| -> i32 x);
const _: Map<(MN,)> = map_kernel!(|x[m, n], y[m, n]| x);
const _: Map<(MN,)> = map_kernel!(|output[m, n]| output);
const _: Map<(MN,)> = map_kernel!(|x[m, n]| x, block: 100);
const _: Map<(MN,)> = map_kernel!(|x[m, n]| x, items: 40);
const _: Map<(MN,)> = map_kernel!(|x[m, n]| x, |x[m, n]| x);
const _: Map<(MN,)> = map_kernel!(|x[m, n]| x, tile: 8x8);
const _: Map<(MN,)> = map_kernel!(struct Relu; |x[m, n]| relu(x));

const ADD: Map<(MN, MN)> = map_kernel!(|x[m, n], y[m, n]| x + y);
const BIAS: Map<(MN, N, f32), MN<bf16>> = map_kernel!(|x[m, n], b[n], s| -> bf16 x * s + b);
const WRONG: Map<(MN, MN)> = map_kernel!(|x[m, n], b[n]| x + b);

fn launches(device: &Device, x: &Buffer, y: &Matrix, out: &mut Matrix, half: &mut Matrix<bf16>) {
    let _ = ADD.launch(device, x, out);
    let _ = ADD.launch(device, (y, y, y), out);
    let _ = ADD.launch(device, (y, &*half), out);
    let _ = ADD.launch(device, (y, 1.0), out);
    let _ = BIAS.launch(device, (y, y, 1.0), half);
    let _ = BIAS.launch(device, (y, InPlace::first(), 1.0), half);
    let _ = BIAS.launch(device, (y, x, 1.0), out);
}

fn main() {}
