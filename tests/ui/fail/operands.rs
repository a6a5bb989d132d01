//! Calls with too few or too many operands, or with an operand of a wrong kind or type.

use gemm_runtime::half::bf16;
use gemm_runtime::{
    Buffer, ByName, Device, M, MN, Matrix, N, Out, OutM, Sgemm, SgemmKernel, sgemm, sgemm_kernel,
};

const PLAIN: SgemmKernel = sgemm_kernel!(block: 8x8);
const BIASED: Sgemm<(N,)> = sgemm_kernel!(epilogue: |acc, bias[n]| acc + bias);
const BOTH: Sgemm<(N, Out)> = sgemm_kernel!(epilogue: |acc, bias[n]| (relu(acc + bias), acc));
const SUMS: Sgemm<(OutM,)> = sgemm_kernel!(epilogue: |acc| (acc, sum(acc)));
const LAYER: Sgemm<(N, M, MN, f32)> = sgemm_kernel! {
    epilogue: |acc, bias[n], scale[m], residual[m, n], slope| acc * scale + bias + slope * residual
};

fn given(device: &Device, bias: &Buffer, scale: &Buffer, matrix: &Matrix, c: &mut Matrix) {
    let _ = LAYER.call(device).launch(matrix, matrix, c);
    let _ = LAYER.call(device).operands((bias, scale, matrix));
    let _ = LAYER.call(device).operands((bias, scale, matrix, 0.5, 1.0));
    let _ = LAYER.call(device).operands((bias, scale, 0.5, matrix));
    let _ = LAYER.call(device).operands((bias, matrix, scale, 0.5));
    let _ = PLAIN.call(device).operands((bias,));
    let _ = BIASED.call(device).operands(matrix);
    let _ = LAYER.call(device).operands(bias);
    let _ = BIASED.call(device).operands(());
    let _ = BIASED.call(device).operands((bias,)).operands((scale,));
}

/// The matrix of a further value cannot be forgotten, and no other operand can stand for it.
fn results(device: &Device, bias: &Buffer, matrix: &Matrix, c: &mut Matrix) {
    let _ = BOTH.call(device).operands(bias);
    let _ = BOTH.call(device).operands((bias, matrix));
    let _ = BOTH.call(device).operands((c, bias));
}

/// The vector for a fold of each row is neither a matrix nor read.
fn folds(device: &Device, sums: &Buffer, c: &mut Matrix) {
    let _ = SUMS.call(device).operands(c);
    let _ = SUMS.call(device).operands(sums);
}

fn not_what_it_takes(device: &Device, bias: Buffer, wide: &Buffer<f64>, matrix: &Matrix) {
    let _ = BIASED.call(device).operands((matrix,));
    let _ = BIASED.call(device).operands((wide,));
    let _ = BIASED.call(device).operands((&[1.0_f32, 2.0],));
    let _ = BIASED.call(device).operands((1.0,));
    let _ = LAYER.call(device).operands((&bias, &bias, matrix, 1));
    let _ = LAYER.call(device).operands((&bias, &bias, matrix, 1.0_f64));
    let _ = LAYER.call(device).operands((&bias, &bias, matrix, &0.5));
    let _ = LAYER.call(device).operands((&bias, &vec![0.5_f32][..], &vec![0.5_f32], 1.0));
    let _ = BIASED.call(device).operands((bias,));
}

fn by_name(device: &Device, kernel: &Sgemm<ByName>, bias: &Buffer) {
    let _ = BIASED.call(device).operand("bias", bias);
    let _ = kernel.call(device).operands((bias,));
    let _ = kernel.call(device).operand("bias", &vec![1.0_f32]);
    let _ = kernel.call(device).operand("slope", 1);
}

fn by_position(device: &Device, matrix: &Matrix, c: &mut Matrix) {
    let _ = BIASED.launch(device, matrix, matrix, c, (1, 1, 1));
    let _ = BIASED.run(device, &[1.0], &[1.0], (1, 1, 1));
}

fn of_another_type(device: &Device, matrix: &Matrix<bf16>, c: &mut Matrix<bf16>) {
    let _ = sgemm(&matrix.view(), &matrix.t(), c);
    let _ = PLAIN.launch(device, matrix.buffer(), matrix.buffer(), c, (1, 1, 1));
}

const OTHER: SgemmKernel = sgemm_kernel!(epilogue: |acc, bias[n]| acc + bias);
const MISPLACED: Sgemm<(f32, N)> =
    sgemm_kernel!(epilogue: |acc, bias[n], slope| acc * slope + bias);

fn types(spec: gemm_runtime::SgemmSpec) {
    let _ = Sgemm::<N>::new(spec.clone());
    let _ = Sgemm::<(N, u32)>::new(spec);
}

fn main() {}
