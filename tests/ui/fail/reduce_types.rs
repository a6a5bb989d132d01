//! Reductions whose type differs from that of the spec, and arrays of a wrong type.

use gemm_runtime::half::f16;
use gemm_runtime::{Buffer, Device, Matrix, ReduceKernel, reduce_kernel};

const SUM: ReduceKernel = reduce_kernel!(op: sum);
const DOT: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * y);
const STATISTICS: ReduceKernel<f32, (f32, f32)> = reduce_kernel!(op: mean_var);
const ARGMAX: ReduceKernel<f16, u64> = reduce_kernel!(op: argmax, type: f16, index: u64);

const ONE_INPUT: ReduceKernel = reduce_kernel!(map: |x, y| x * y);
const WRONG_ELEMENT: ReduceKernel<f64> = reduce_kernel!(type: f16, result: f32);
const WRONG_RESULT: ReduceKernel<f32> = reduce_kernel!(op: argmin);
const ONE_RESULT: ReduceKernel = reduce_kernel!(op: mean_var);

fn inputs(device: &Device, x: &Buffer, wide: &Buffer<f64>, out: &mut Buffer) {
    let _ = SUM.launch(device, wide, out);
    let _ = SUM.launch(device, (x, x), out);
    let _ = SUM.launch(device, &vec![1.0_f32], out);
    let _ = SUM.launch(device, x.len(), out);
    let _ = DOT.launch(device, x, out);
    let _ = DOT.launch(device, (x, x, x), out);
    let _ = DOT.launch(device, (x, wide), out);
    let _ = SUM.run(device, &[1_u32]);
    let _ = DOT.run(device, &[1.0]);
}

fn results(device: &Device, x: &Buffer, matrix: &Matrix, out: &mut Buffer, wide: &mut Buffer<u64>) {
    let _ = SUM.launch(device, x, wide);
    let _ = SUM.launch(device, x, matrix);
    let _ = STATISTICS.launch(device, x, out);
    let _ = STATISTICS.launch(device, x, (out, wide));
    let _ = ARGMAX.launch(device, x, wide);
    let _: f32 = STATISTICS.run(device, &[1.0]).unwrap();
}

fn types(spec: gemm_runtime::ReduceSpec) {
    let _ = ReduceKernel::<(f32, f64), f32>::new(spec.clone());
    let _ = ReduceKernel::<bool>::new(spec);
}

fn main() {}
