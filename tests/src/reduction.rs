//! Reductions, and what their results are compared with.

use gemm_dsl::spec::{Op, ReduceSpec};
use gemm_runtime::{Device, Error, Launched, ReduceKernel};

/// Lengths at which warps, blocks and passes begin and end.
pub const LENGTHS: &[usize] = &[0, 1, 2, 31, 32, 33, 255, 256, 257, 1000, 4097];

/// Elements that suit the operator: of a product, such as keep it in range.
pub fn elements(op: Op, seed: u64, len: usize) -> Vec<f32> {
    match op {
        Op::Prod => crate::random::near_one(seed, len),
        Op::Sum | Op::Max | Op::Min => crate::random::values(seed, len),
    }
}

/// The value that changes no other.
pub fn identity(op: Op) -> f32 {
    match op {
        Op::Sum => -0.0,
        Op::Prod => 1.0,
        Op::Max => f32::NEG_INFINITY,
        Op::Min => f32::INFINITY,
    }
}

/// Reduces elements that start `offset` elements after an aligned address.
///
/// # Errors
/// The runtime's.
pub fn run(
    device: &Device,
    spec: &ReduceSpec,
    elements: &[f32],
    offset: usize,
) -> Result<(f32, Launched), Error> {
    let mut padded = vec![f32::NAN; offset];
    padded.extend(elements);
    let input = device.upload(&padded)?;
    let mut output = device.upload(&[f32::NAN])?;
    let kernel = ReduceKernel::new(spec.clone())?;
    let launched = kernel.launch(device, &input.slice(offset..)?, &mut output)?;
    let value = device.download(&output)?;
    Ok((value.first().copied().unwrap_or(f32::NAN), launched))
}

/// Checks a result against f64.
///
/// An element passes through at most so many roundings: for each pass one for each of its thread's
/// items, two in a vector, and one for each halving of the block. In a product the errors of all
/// n factors add up: as a random walk, of which eight times the square root is allowed.
///
/// # Errors
/// What is wrong.
pub fn check(spec: &ReduceSpec, elements: &[f32], result: f32) -> Result<(), String> {
    let wide = elements.iter().map(|&x| f64::from(x));
    let epsilon = f64::from(f32::EPSILON) / 2.0;
    let (reference, bound) = match spec.op {
        Op::Sum => {
            let magnitude: f64 = wide.clone().map(f64::abs).sum();
            let passes = (elements.len().max(2) as f64).log(f64::from(spec.block)).ceil();
            let depth = passes * f64::from(spec.items + 2 + spec.block.ilog2());
            (wide.sum::<f64>(), depth * epsilon * magnitude)
        }
        Op::Prod => {
            // Every factor but 1 may cost half a unit in the last place. Near 1 these do not cancel:
            // of (1 + a)(1 + b) it is always a·b that is lost.
            let factors = elements.iter().filter(|&&x| x != 1.0).count() as f64;
            let product: f64 = wide.product();
            (product, product.abs() * epsilon * factors)
        }
        Op::Max => (wide.fold(f64::NEG_INFINITY, f64::max), 0.0),
        Op::Min => (wide.fold(f64::INFINITY, f64::min), 0.0),
    };
    let error = (f64::from(result) - reference).abs();
    if f64::from(result) == reference || error <= bound {
        return Ok(());
    }
    Err(format!(
        "`{spec}` of {} elements is {result}, not {reference}: off by {error:e}, allowed {bound:e}",
        elements.len()
    ))
}
