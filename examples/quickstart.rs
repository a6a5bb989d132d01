//! A reduction and a matrix multiplication, from host slices and on the device.

use gemm_runtime::{Device, ReduceKernel, SgemmKernel, reduce_kernel, sgemm_kernel};

const SUM: ReduceKernel = reduce_kernel!(op: sum, block: 256, items: 4, shuffle);
const GEMM: SgemmKernel = sgemm_kernel!(tile: 128x128x8, thread: 8x8, double_buffer);

fn main() -> Result<(), gemm_runtime::Error> {
    let (m, n, k) = (64, 96, 32);
    let (a, b) = (vec![0.5; m * k], vec![2.0; k * n]);

    let device = Device::auto()?; // first CUDA GPU, else the simulator
    let total = SUM.run(&device, &a)?;
    let c = GEMM.run(&device, &a, &b, (m, n, k))?;
    println!("on {}: the sum is {total}, and every element of C is {}", device.name(), c[0]);

    // The same kernels on arrays that stay on the device.
    let (a, b) = (device.upload(&a)?, device.upload(&b)?);
    let mut c = device.alloc(m * n)?;
    GEMM.launch(&device, &a, &b, &mut c, (m, n, k))?;
    let mut total = device.alloc(1)?;
    SUM.launch(&device, &c, &mut total)?;
    println!("the sum of C is {}", device.download(&total)?[0]);

    println!("\n{}", SUM.source());
    Ok(())
}
