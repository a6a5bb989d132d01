//! Errors of a function over all inputs, measured on a GPU.

use super::{Worst, pair};
use cudarc::driver::{LaunchConfig, PushKernelArg};
use gemm_bench::gpu::{Gpu, failed};
use gemm_runtime::Error;

/// Kernel that compares `epilogue(ARGUMENTS)` with the reference. The source of `epilogue` precedes
/// it.
const COMPARE: &str = r#"
__device__ double sigmoid(double x)
{
    return x < 0.0 ? exp(x) / (1.0 + exp(x)) : 1.0 / (1.0 + exp(-x));
}

__device__ double softplus(double x)
{
    return (x < 0.0 ? 0.0 : x) + log1p(exp(-fabs(x)));
}

// The limit where x is -infinity.
__device__ double at_minus_zero(double x, double value)
{
    return x < -1e300 ? -0.0 : value;
}

__device__ double reference(double x, double y)
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

__device__ unsigned mix(unsigned v)
{
    v = (v ^ (v >> 16)) * 0x7feb352du;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 16);
}

// The arguments with this number, as the host computes them. A function of one number has all.
__device__ float2 arguments(unsigned n)
{
    if (OPERANDS == 1) return make_float2(__uint_as_float(n), 0.0f);
    const unsigned x = mix(n), y = mix(n ^ 0x9e3779b9u);
    if (n % 4 == 0) return make_float2(__uint_as_float(x), __uint_as_float(y));
    if (n % 4 == 1) return make_float2(__uint_as_float(x), (float)(y % 64) * 0.5f - 16.0f);
    const unsigned positive = x & 0x7fffffffu;
    const float log = (float)((int)positive - 0x3f800000) / 8388608.0f;
    const float t = ((float)y / 4294967296.0f - 0.5f) * 310.0f;
    return make_float2(__uint_as_float(positive), t / log);
}

// The greatest error in 2^-16 ulp, and in the low bits an input that has it.
extern "C" __global__ void __launch_bounds__(256) compare(unsigned long long* worst)
{
    const unsigned long long stride = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long mine = 0;
    for (unsigned long long bits = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
         bits < 1ull << 32; bits += stride) {
        const float2 pair = arguments((unsigned)bits);
        const float x = pair.x, y = pair.y;
        const double exact = reference((double)x, (double)y);
        const double ulp = fmin(error(epilogue(ARGUMENTS), exact), 65535.0);
        const unsigned long long found = (unsigned long long)(ulp * 65536.0) << 32 | bits;
        if (found >> 32 > mine >> 32) mine = found;
    }
    atomicMax(worst, mine);
}
"#;

/// Returns the worst case of the function `epilogue` of one or two operands in a CUDA source.
/// `reference` is a CUDA C expression of a `double x` and a `double y`.
#[allow(unsafe_code, reason = "the driver checks neither number nor types of arguments")]
pub fn worst(gpu: Gpu<'_>, source: &str, operands: usize, reference: &str) -> Result<Worst, Error> {
    let arguments = if operands == 1 { "x" } else { "x, y" };
    let compare = COMPARE.replace("REFERENCE", reference).replace("ARGUMENTS", arguments);
    let text = format!("{source}{}", compare.replace("OPERANDS", &operands.to_string()));
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
    let number = found as u32;
    let arguments = if operands == 1 { [f32::from_bits(number), 0.0] } else { pair(number) };
    Ok(Worst { ulp: (found >> 32) as f64 / 65536.0, arguments })
}
