//! Classic reduction passes, and the check of their results.

use gemm_dsl::spec::{Op, ReduceSpec};
use gemm_oracle::reduction::Truth;
use gemm_runtime::{Device, Error, LaunchReport, ReduceKernel};

/// Lengths at the limits of warps, blocks and passes.
pub const LENGTHS: &[usize] = &[0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097];

/// Operators of the classic passes, which reduce `f32` values to an `f32` result.
pub const CLASSIC: [Op; 4] = [Op::Sum, Op::Prod, Op::Max, Op::Min];

/// Random elements for the operator. Their product stays in range.
pub fn elements(op: Op, seed: u64, len: usize) -> Vec<f32> {
    match op {
        Op::Prod => gemm_oracle::random::near_one(seed, len),
        _ => gemm_oracle::random::values(seed, len),
    }
}

/// Reduces elements that start `offset` elements after an aligned address.
///
/// # Errors
/// Returns an error of the runtime.
pub fn run(
    device: &Device,
    spec: &ReduceSpec,
    elements: &[f32],
    offset: usize,
) -> Result<(f32, LaunchReport), Error> {
    let mut padded = vec![f32::NAN; offset];
    padded.extend(elements);
    let input = device.upload(&padded)?;
    let mut output = device.upload(&[f32::NAN])?;
    let kernel = ReduceKernel::new(spec.clone())?;
    let launched = kernel.launch(device, &input.slice(offset..)?, &mut output)?;
    let value = device.download(&output)?;
    Ok((value.first().copied().unwrap_or(f32::NAN), launched))
}

/// Checks a result against f64 with [`Truth::judge`].
///
/// # Errors
/// Returns a description of the mismatch.
pub fn check(spec: &ReduceSpec, elements: &[f32], result: f32) -> Result<(), String> {
    let plan = spec.plan().map_err(|faults| faults.to_string())?;
    let truth = Truth::of(spec.op, elements).map_err(|error| error.to_string())?;
    let verdict = truth.judge(&plan, result);
    if verdict.ok {
        return Ok(());
    }
    Err(format!(
        "`{spec}` of {} elements is {result}, not {}: off by {:e} of its scale, allowed {:e}",
        elements.len(),
        truth.value,
        verdict.error,
        verdict.allowed
    ))
}
