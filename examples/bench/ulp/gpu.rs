//! Errors of a function over all inputs, measured on a GPU.

use super::Worst;
use cudarc::driver::{LaunchConfig, PushKernelArg};
use gemm_bench::gpu::{Gpu, failed};
use gemm_runtime::Error;

/// Kernel that compares `epilogue(x)` with the reference. The source of `epilogue` precedes it.
const COMPARE: &str = r#"
__device__ double sigmoid(double x)
{
    return x < 0.0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}

// The limit where x is -infinity.
__device__ double at_minus_zero(double x, double value)
{
    return x < -1e300 ? -0.0 : value;
}

__device__ double reference(double x)
{
    return REFERENCE;
}

// The error in units in the last place of the exact result; 65535 where the kind is wrong.
__device__ double error(float found, double exact)
{
    if (exact != exact) return __float_as_uint(found) == 0x7fffffffu ? 0.0 : 65535.0;
    if (found != found) return 65535.0;
    if (signbit((double)found) != signbit(exact)) return 65535.0;
    const double rounded = (double)(float)exact;
    if (rounded == (double)found) {
        if (isinf(rounded)) return 0.0;
    } else if (isinf(exact)) {
        return 65535.0;
    }
    // An infinite result of a finite one counts as 2^128.
    const double value = isinf((double)found) ? copysign(scalbn(1.0, 128), exact) : (double)found;
    const int exponent = exact == 0.0 ? -126 : min(max(ilogb(exact), -126), 127);
    return fabs(value - exact) / scalbn(1.0, exponent - 23);
}

// The greatest error in 2^-16 ulp, and in the low bits an input that has it.
extern "C" __global__ void __launch_bounds__(256) compare(unsigned long long* worst)
{
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long mine = 0;
    for (unsigned long long bits = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
         bits < 1ull << 32; bits += stride) {
        const float x = __uint_as_float((unsigned)bits);
        const double ulp = fmin(error(epilogue(x), reference((double)x)), 65535.0);
        const unsigned long long found = (unsigned long long)(ulp * 65536.0) << 32 | bits;
        if (found >> 32 > mine >> 32) mine = found;
    }
    atomicMax(worst, mine);
}
"#;

/// Returns the worst case of the function `epilogue` in a CUDA source. `reference` is a CUDA C
/// expression of a `double x`.
#[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
pub fn worst(gpu: Gpu<'_>, source: &str, reference: &str) -> Result<Worst, Error> {
    let text = format!("{source}{}", COMPARE.replace("REFERENCE", reference));
    let kernel = gpu.load("compare", &text)?;
    let allocated = gpu.stream.alloc_zeros::<u64>(1);
    let mut worst = allocated.map_err(failed("allocating the result"))?;
    let grid = gpu.multiprocessors * 8;
    let config =
        LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let mut launch = gpu.stream.launch_builder(&kernel);
    launch.arg(&mut worst);
    // SAFETY: the argument is the kernel's parameter and has one element.
    let launched = unsafe { launch.launch(config) };
    launched.map_err(failed("launching the comparison"))?;
    let copied = gpu.stream.clone_dtoh(&worst).map_err(failed("copying the result"))?;
    let found = copied.first().copied().unwrap_or(0);
    Ok(Worst { ulp: (found >> 32) as f64 / 65536.0, input: found as u32 })
}
