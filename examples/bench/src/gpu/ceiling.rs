//! Measured ceilings of the device: rates of multiply-adds, and of bytes read.

use super::{Gpu, Timer, failed};
use cudarc::driver::{CudaSlice, LaunchConfig, PushKernelArg};
use gemm_runtime::Error;

/// Kernel with sixteen independent chains of multiply-adds per thread, unrolled to hide the cost of
/// the loop.
const FMA: &str = r#"
extern "C" __global__ void __launch_bounds__(256) fma_rate(float *out, float a, float b,
                                                           int rounds) {
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = (float)(threadIdx.x + i);
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int step = 0; step < 16; ++step) {
#pragma unroll
            for (int i = 0; i < 16; ++i) x[i] = fmaf(x[i], a, b);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += x[i];
    // Never true: keeps the compiler from dropping the work.
    if (sum == -1.0f) *out = sum;
}
"#;

const FMA_THREADS: u32 = 256;
const FMA_BLOCKS_PER_SM: u32 = 8;
const FMA_ROUNDS: i32 = 2048;
/// Multiply-adds of a thread in one iteration of the loop.
const FMA_PER_ROUND: u32 = 256;

/// Kernel with a grid-stride loop and four 16-byte loads in flight.
const READ: &str = r#"
extern "C" __global__ void __launch_bounds__(512) read_rate(const float4 *__restrict__ in,
                                                            float *out, unsigned long long n) {
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (; i + 3 * stride < n; i += 4 * stride) {
        const float4 a = in[i], b = in[i + stride], c = in[i + 2 * stride], d = in[i + 3 * stride];
        sum += (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w);
        sum += (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
    }
    for (; i < n; i += stride) {
        const float4 a = in[i];
        sum += a.x + a.y + a.z + a.w;
    }
    // Never true: keeps the compiler from dropping the work.
    if (sum == -1.0f) *out = sum;
}
"#;

const READ_THREADS: u32 = 512;
const READ_BLOCKS_PER_SM: u32 = 2;
/// Array lengths, tried in this order until one fits into memory. All arrays are larger than any
/// cache.
const READ_LENGTHS: [usize; 3] = [1 << 28, 1 << 27, 1 << 26];

const ROUNDS: usize = 20;

/// Measures the rate of multiply-adds, in 10^9 floating-point operations per second. A multiply-add
/// is two operations.
///
/// # Errors
/// Returns the errors of [`Gpu::load`] and of the driver.
#[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
pub fn fma_rate(gpu: Gpu<'_>, timer: &Timer<'_>) -> Result<f64, Error> {
    let kernel = gpu.load("fma_rate", FMA)?;
    let mut out = zeros(gpu, 1)?;
    let blocks = gpu.multiprocessors * FMA_BLOCKS_PER_SM;
    let mut launch = || {
        let mut launch = gpu.stream.launch_builder(&kernel);
        launch.arg(&mut out).arg(&0.999_f32).arg(&0.001_f32).arg(&FMA_ROUNDS);
        // SAFETY: the arguments are the kernel's parameters, and `out` has one element.
        let launched = unsafe { launch.launch(config(blocks, FMA_THREADS)) };
        launched.map(drop).map_err(failed("launching the multiply-adds"))
    };
    let time = timer.medians(ROUNDS, &mut [&mut launch])?.into_iter().next().unwrap_or(f64::NAN);
    let threads = f64::from(blocks) * f64::from(FMA_THREADS);
    let flops = 2.0 * threads * f64::from(FMA_ROUNDS) * f64::from(FMA_PER_ROUND);
    Ok(flops / time / 1e6)
}

/// Measures the rate of reads from memory, in 10^9 bytes/s.
///
/// # Errors
/// Returns the errors of [`Gpu::load`] and of the driver.
#[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
pub fn read_rate(gpu: Gpu<'_>, timer: &Timer<'_>) -> Result<f64, Error> {
    let kernel = gpu.load("read_rate", READ)?;
    let mut out = zeros(gpu, 1)?;
    let mut input = Err(Error::OutOfMemory { bytes: 0, device: gpu.device.name().to_owned() });
    for length in READ_LENGTHS {
        input = zeros(gpu, length);
        if input.is_ok() {
            break;
        }
    }
    let input = input?;
    let vectors = input.len() as u64 / 4;
    let blocks = gpu.multiprocessors * READ_BLOCKS_PER_SM;
    let mut launch = || {
        let mut launch = gpu.stream.launch_builder(&kernel);
        launch.arg(&input).arg(&mut out).arg(&vectors);
        // SAFETY: the arguments are the kernel's parameters; `input` has `vectors` vectors of four
        // elements and `out` one element.
        let launched = unsafe { launch.launch(config(blocks, READ_THREADS)) };
        launched.map(drop).map_err(failed("launching the reads"))
    };
    let time = timer.medians(ROUNDS, &mut [&mut launch])?.into_iter().next().unwrap_or(f64::NAN);
    Ok((input.len() * size_of::<f32>()) as f64 / time / 1e6)
}

fn zeros(gpu: Gpu<'_>, len: usize) -> Result<CudaSlice<f32>, Error> {
    gpu.stream.alloc_zeros(len).map_err(failed(format!("allocating {len} elements")))
}

fn config(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}
