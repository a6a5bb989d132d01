//! Element types of the matrices of a GEMM.

use gemm_runtime::fp8::{e4m3, e5m2};
use gemm_runtime::half::bf16;
use gemm_runtime::{
    Device, Gemm, GemmTable, Matrix, N, SgemmKernel, SgemmTable, gemm, gemm_kernel, gemm_table,
    sgemm_kernel, sgemm_table,
};

const _: SgemmKernel = sgemm_kernel!(tile: 16x16x8, thread: 4x4, b: bf16, a: bf16);
const _: Gemm<bf16, bf16, f32> = gemm_kernel!(a: bf16, b: bf17);
const _: Gemm<bf16, bf16, f32> = gemm_kernel!(a: bf16);
const _: Gemm<bf16, bf16, bf16> = gemm_kernel!(a: bf16, b: bf16);
const _: Gemm<f64, f64, bf16> = gemm_kernel!(a: f64, b: f64, c: bf16);
const _: Gemm<f64, f64, f64> = gemm_kernel!(a: f64, b: f64, c: f64, epilogue: |acc| acc + 1.0);
const _: Gemm<f64, f64, f64, (f32, f32)> = gemm_kernel!(a: f64, b: f64, c: f64, scaled);
const _: Gemm<bf16, bf16, f32> =
    gemm_kernel!(a: bf16, b: bf16, tile: 32x32x16, thread: 4x4, stages: 3);
const _: Gemm<bf16, bf16, f32> =
    gemm_kernel!(a: bf16, b: bf16, tile: 32x32x32, warp: 16x16, arith: bf16);
const _: Gemm<bf16, bf16, f32> =
    gemm_kernel!(a: bf16, b: bf16, tile: 64x32x64, arith: bf16, mma: wgmma, batch: pointers);
const _: Gemm<bf16, bf16, f32> =
    gemm_kernel!(a: bf16, b: bf16, tile: 64x24x64, arith: bf16, mma: wgmma, copy: tma);
const _: Gemm<bf16, bf16, f32> = gemm_kernel!(
    a: bf16, b: bf16, layout: tn, tile: 64x32x64, warp: 16x8, arith: bf16, mma: wgmma, copy: tma
);
const _: Gemm<bf16, bf16, f32> = gemm_kernel!(
    a: bf16, b: bf16, layout: tn, tile: 24x64x64, swap_ab, arith: bf16, mma: wgmma, copy: tma
);
const _: Gemm<e4m3, e4m3, f32> =
    gemm_kernel!(a: e4m3, b: e4m3, tile: 64x32x128, mma: wgmma, copy: tma);
const _: Gemm<e5m2, e5m2, f32> =
    gemm_kernel!(a: e5m2, b: e5m2, tile: 64x32x128, mma: wgmma, copy: tma, layout: tn);
const _: Gemm<e4m3, e4m3, f32> =
    gemm_kernel!(a: e4m3, b: e4m3, layout: nt, tile: 64x32x64, warp: 16x16, arith: fp8);
const _: Gemm<i8, i8, i32> = gemm_kernel!(
    a: i8, b: i8, c: i32, layout: nt, tile: 64x32x64, mma: wgmma, copy: tma, batch: strided
);
const _: Gemm<bf16, bf16, f32> =
    gemm_kernel!(a: bf16, b: bf16, tile: 64x32x64, arith: fp8, mma: wgmma, copy: tma);
const _: Gemm<i8, i8, i8> = gemm_kernel!(a: i8, b: i8, c: i8);
const _: Gemm<i32, i32, i32> = gemm_kernel!(a: i32, b: i32, c: i32);
const _: Gemm<i8, i8, i32> = gemm_kernel!(a: i8, b: i8, c: i32, epilogue: |acc| acc * 2.0);
const _: Gemm<bf16, bf16, i32> = gemm_kernel!(a: bf16, b: bf16, c: i32);
const _: Gemm<i8, u8, i32> =
    gemm_kernel!(a: i8, b: u8, c: i32, layout: nt, tile: 64x40x128, mma: wgmma, copy: tma);
const _: Gemm<e4m3, bf16, f32> = gemm_kernel!(a: e4m3, b: bf16);

const _: SgemmTable = sgemm_table! { a: bf16, b: bf16; else => block: 8x8 };
const _: GemmTable<bf16, bf16, f32> = gemm_table! { a: bf16; else => block: 8x8 };
const _: GemmTable<bf16, bf16, f32> = gemm_table! { a: bf16, b: bf16 else => block: 8x8 };
const _: GemmTable<bf16, bf16, f32> =
    gemm_table! { a: bf16, b: bf16, block: 8x8; else => block: 8x8 };
const _: GemmTable<bf16, bf16, f32> = gemm_table! { else => a: bf16, b: bf16, block: 8x8 };
const _: GemmTable<bf16, bf16, f32> = gemm_table! {
    m <= 8 => block: 8x8;
    a: bf16, b: bf16;
    else => block: 16x16
};
const _: GemmTable<bf16, bf16, bf16> = gemm_table! { a: bf16, b: bf16; else => block: 8x8 };
const _: GemmTable<bf16, bf16, f32> = gemm_table! {
    a: bf16, b: bf16;
    invariant;
    m <= 8 => block: 8x8;
    else => tile: 64x64x64, mma: wgmma, copy: tma
};

const LAYER: Gemm<bf16, bf16, f32, (N,)> =
    gemm_kernel!(a: bf16, b: bf16, epilogue: |acc, bias[n]| acc + bias);

fn calls(device: &Device, x: &Matrix<bf16>, w: &Matrix, y: &mut Matrix<f64>) {
    let _ = LAYER.call(device).operands((x, 1.0));
    let _ = gemm(x, w, y);
    let _ = gemm(x, x, y);
}

fn doubles(x: &Matrix<f64>, y: &mut Matrix<f64>) {
    let _ = gemm(x, x, y).alpha(2.0);
}

fn main() {}
