//! A faulty spec is one mistake: the kernel still has its type, wherever it is used.

use gemm_runtime::{Device, Error, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};

const KERNELS: &[ReduceKernel] = &[reduce_kernel!(op: sum), reduce_kernel!(op: sun)];

fn product(device: &Device, a: &[f32]) -> Result<Vec<f32>, Error> {
    let kernel: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 3x3);
    kernel.run(device, a, a, (1, 1, 1))
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
