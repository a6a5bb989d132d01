//! Errors of a function over a sample of inputs, measured on the simulator.

use super::{Worst, pair};
use gemm_bench::cli::Failure;
use gemm_dsl::ir::VerifiedKernel;
use gemm_runtime::Error;
use gemm_sim::{Buffer, launch};

pub const SAMPLE: u32 = 1 << 20;

pub fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// Limit at x = −∞.
fn or_limit(x: f64, value: f64) -> f64 {
    if x == f64::NEG_INFINITY { -0.0 } else { value }
}

pub fn softplus(x: f64) -> f64 {
    // `f64::max` would hide a NaN.
    let positive = if x < 0.0 { 0.0 } else { x };
    positive + libm::log1p((-x.abs()).exp())
}

pub fn mish(x: f64) -> f64 {
    or_limit(x, x * softplus(x).tanh())
}

pub fn silu(x: f64) -> f64 {
    or_limit(x, x * sigmoid(x))
}

pub fn gelu(x: f64) -> f64 {
    or_limit(x, 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2))
}

pub fn gelu_tanh(x: f64) -> f64 {
    let v = 2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x);
    or_limit(x, x * sigmoid(v))
}

/// Returns the error in units in the last place of the exact result. It is infinite if NaN, sign or
/// infinity is wrong.
fn error(found: f32, exact: f64) -> f64 {
    if exact.is_nan() {
        return if found.to_bits() == 0x7fff_ffff { 0.0 } else { f64::INFINITY };
    }
    if found.is_nan() || found.is_sign_negative() != exact.is_sign_negative() {
        return f64::INFINITY;
    }
    if exact.is_infinite() {
        return if found.is_infinite() { 0.0 } else { f64::INFINITY };
    }
    if found.is_infinite() && (exact as f32).is_infinite() {
        return 0.0;
    }
    // An infinite result counts as 2^128 if the exact result is finite.
    let value = if found.is_infinite() { 2f64.powi(128).copysign(exact) } else { found.into() };
    let exponent = ((exact.abs().to_bits() >> 52) as i32 - 1023).clamp(-126, 127);
    (value - exact).abs() / 2f64.powi(exponent - 23)
}

/// Returns the worst case of a kernel that computes a function of [`SAMPLE`] inputs.
pub fn worst(
    kernel: &VerifiedKernel,
    operands: usize,
    exact: fn(f64, f64) -> f64,
) -> Result<Worst, Failure> {
    let inputs: Vec<[f32; 2]> =
        if operands == 1 { numbers() } else { (0..SAMPLE).map(pair).collect() };
    let arrays = (0..operands).map(|n| inputs.iter().map(|of| of[n]).collect::<Vec<f32>>());
    let arrays = arrays.map(|array| Buffer::from_f32(&array));
    let buffers: Vec<Buffer> = arrays.chain([Buffer::zeros(inputs.len())]).collect();
    launch(kernel, &buffers, &[]).map_err(Error::from)?;
    let mut worst = Worst { ulp: 0.0, arguments: [0.0; 2] };
    for (arguments, found) in inputs.into_iter().zip(buffers[operands].to_vec()) {
        let [x, y] = arguments.map(f64::from);
        let ulp = error(found, exact(x, y));
        if ulp > worst.ulp {
            worst = Worst { ulp, arguments };
        }
    }
    Ok(worst)
}

/// Arguments of a function of one number.
fn numbers() -> Vec<[f32; 2]> {
    let mut random = fastrand::Rng::with_seed(1);
    let specials = [0, 0x8000_0000, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x7f7f_ffff];
    let some = |i: u32| match specials.get(i as usize) {
        Some(bits) => f32::from_bits(*bits),
        // Half of the inputs have any bits, the other half magnitudes below 16.
        None if i.is_multiple_of(2) => f32::from_bits(random.u32(..)),
        None => (random.f32() - 0.5) * 32.0,
    };
    (0..SAMPLE).map(some).map(|x| [x, 0.0]).collect()
}
