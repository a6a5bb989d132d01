//! A reduction and a GEMM whose machine code is in the binary. `build.rs` compiles it.

use gemm_runtime::{
    Archive, Device, ReduceKernel, SgemmKernel, include_archive, reduce_kernel, sgemm_kernel,
};
use std::time::Instant;

const KERNELS: Archive = include_archive!("kernels");

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 256, items: 4, shuffle);
const GEMM: SgemmKernel = sgemm_kernel!(tile: 64x64x8, thread: 4x4, float4);

fn main() -> Result<(), gemm_runtime::Error> {
    let device = Device::auto()?; // first CUDA GPU, else the simulator
    device.add_archive(KERNELS)?;

    let (m, n, k) = (64, 96, 32);
    let (a, b) = (device.upload(&vec![0.5; m * k])?, device.upload(&vec![2.0; k * n])?);
    let (mut c, mut sum) = (device.alloc(m * n)?, device.alloc(1)?);
    for kernel in 0..2 {
        let start = Instant::now();
        let report = match kernel {
            0 => GEMM.launch(&device, &a, &b, &mut c, (m, n, k))?,
            _ => SUM.launch(&device, &c, &mut sum)?,
        };
        device.synchronize()?;
        let time = start.elapsed();
        match report.loaded_from_archive() {
            Some(load) => println!("first launch in {time:?}: loaded from the archive in {load:?}"),
            None => println!("first launch in {time:?}: not loaded from the archive"),
        }
    }
    println!("on {}: the sum of C is {}", device.name(), device.download(&sum)?[0]);
    Ok(())
}
