//! A faulty spec is one mistake: the kernel still has its type, wherever it is used.

use gemm_runtime::{
    Device, Error, Matrix, N, ReduceKernel, Sgemm, SgemmKernel, reduce_kernel, sgemm_kernel,
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

fn main() -> Result<(), Error> {
    let device = Device::simulator();
    for kernel in KERNELS {
        println!("{}", kernel.source());
    }
    let c: Vec<f32> = product(&device, &[1.0])?;
    let sum: f32 = reduce_kernel!(block: 7).run(&device, &c)?;
    println!("{sum}");
    Ok(())
}
