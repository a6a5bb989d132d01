//! A faulty spec is reported once: the kernel still has its type wherever it is used.

use gemm_runtime::{
    Buffer, Device, Error, Matrix, N, ReduceKernel, Sgemm, SgemmKernel, reduce_kernel, sgemm_kernel,
};

const KERNELS: &[ReduceKernel] = &[reduce_kernel!(op: sum), reduce_kernel!(op: sun)];

fn product(device: &Device, a: &[f32]) -> Result<Vec<f32>, Error> {
    let kernel: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 3x3);
    kernel.run(device, a, a, (1, 1, 1))
}

const BIASED: Sgemm<(N,)> = sgemm_kernel!(epilogue: |acc, bias[n]| acc + bais);
const MISSPELT: Sgemm<(N,)> = sgemm_kernel!(epilog: |acc, bias[n]| acc + bias);

fn biased(device: &Device, a: &Matrix, c: &mut Matrix) -> Result<(), Error> {
    for kernel in [BIASED, MISSPELT] {
        kernel.call(device).operands((a.buffer(),)).launch(a, a, c)?;
    }
    sgemm_kernel!(epilogue: |acc, x| acc *).call(device).operands((2.0,)).launch(a, a, c)?;
    Ok(())
}

const DOT: ReduceKernel<(f32, f32), f32> = reduce_kernel!(map: |x, y| x * z);
const ARGMAX: ReduceKernel<f32, u64> = reduce_kernel!(op: argmxa, index: u64);
const HALF: ReduceKernel<u8, u32> = reduce_kernel!(tpye: u8);

fn reduced(
    device: &Device,
    x: &Buffer,
    out: &mut Buffer,
    index: &mut Buffer<u64>,
) -> Result<(), Error> {
    DOT.launch(device, (x, x), &mut *out)?;
    ARGMAX.launch(device, x, &mut *index)?;
    reduce_kernel!(op: argmin, index: u64, group: 3).launch(device, x, &mut *index)?;
    reduce_kernel!(map: x * x).launch(device, x, &mut *out)?;
    let largest: u32 = HALF.run(device, &[1, 2])?;
    let (mean, var): (f64, f64) =
        reduce_kernel!(op: mean_var, type: f64, block: 7).run(device, &[0.5])?;
    println!("{largest} {}", mean + var);
    Ok(())
}

fn main() -> Result<(), Error> {
    let device = Device::auto()?;
    for kernel in KERNELS {
        println!("{}", kernel.source());
    }
    let c: Vec<f32> = product(&device, &[1.0])?;
    let sum: f32 = reduce_kernel!(block: 7).run(&device, &c)?;
    println!("{sum}");
    Ok(())
}
