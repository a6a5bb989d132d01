//! Kernels, operands and comparisons of the programs that measure typed matrices.

use crate::cli::Failure;
use crate::gpu::{Gpu, failed};
use cudarc::driver::CudaSlice;
use gemm_dsl::spec::GemmLayout;
use gemm_dsl::target::element::to_bytes;
use gemm_runtime::fp8::e4m3;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Buffer, Element, Error, Gemm, MatrixRef, SgemmSpec};
use std::fmt::Display;

/// Number of elements after which the values of a matrix repeat: a prime, so that its rows differ.
const PERIOD: usize = 1_048_573;

/// Returns the kernel of a spec without layout, types, `arith` and `mma`.
///
/// # Errors
/// Returns the errors of the spec.
pub fn kernel_of<T: Element, R: Element>(
    spec: &str,
    layout: GemmLayout,
) -> Result<Gemm<T, T, R>, Error> {
    let (elem, result) = (T::ELEM, R::ELEM);
    let types = format!("a: {elem}, b: {elem}, c: {result}, layout: {layout}");
    let line = format!("{types}, mma: wgmma, {spec}");
    Gemm::new(line.parse::<SgemmSpec>()?)
}

/// Converts a small integer. `T` is `bf16`, `f16`, `e4m3` or `i8`.
pub fn rounded<T: Element>(value: f32) -> T {
    T::from_bits(match T::ELEM.name() {
        "bf16" => bf16::from_f32(value).to_bits().into(),
        "e4m3" => e4m3::from_f32(value).to_bits().into(),
        "i8" => (value as i8 as u8).into(),
        _ => f16::from_f32(value).to_bits().into(),
    })
}

/// Uploads small integers. Their sums are exact with 14 bits, too.
///
/// # Errors
/// Returns [`Error::Driver`] if a copy fails.
pub fn integers<T: Element>(gpu: Gpu<'_>, len: usize, seed: u32) -> Result<CudaSlice<u8>, Error> {
    let (kinds, least) = if T::ELEM.size() == 1 { (3.0, 1.0) } else { (5.0, 2.0) };
    let value = |i: u32| ((i.wrapping_mul(2_654_435_761) ^ seed) >> 20) as f32 % kinds - least;
    let period: Vec<T> = (0..PERIOD.min(len) as u32).map(|i| rounded(value(i))).collect();
    let mut bytes = to_bytes(&period).repeat(len.div_ceil(period.len().max(1)));
    bytes.truncate(len * T::ELEM.size() as usize);
    gpu.stream.clone_htod(&bytes).map_err(failed("copying"))
}

/// Returns the view of a packed matrix in its layout.
///
/// # Errors
/// Returns the errors of [`MatrixRef::new`].
pub fn viewed<T: Element>(
    buffer: &Buffer<T>,
    (rows, cols): (usize, usize),
    by_column: bool,
) -> Result<MatrixRef<'_, T>, Error> {
    match by_column {
        false => MatrixRef::new(buffer, rows, cols),
        true => Ok(MatrixRef::new(buffer, cols, rows)?.t()),
    }
}

/// Compares the results of specs with that of a peer, and prints those that differ.
///
/// # Errors
/// Returns [`Error::Driver`] if a copy fails.
pub fn are_equal(
    gpu: Gpu<'_>,
    peer: &CudaSlice<u8>,
    own: &[CudaSlice<u8>],
    specs: &[impl Display],
    size: impl Display,
) -> Result<bool, Failure> {
    let expected = gpu.stream.clone_dtoh(peer).map_err(failed("copying"))?;
    let mut equal = true;
    for (slice, spec) in own.iter().zip(specs) {
        let found = gpu.stream.clone_dtoh(slice).map_err(failed("copying"))?;
        if found != expected {
            eprintln!("error: {spec} at {size} differs from cuBLAS");
            equal = false;
        }
    }
    Ok(equal)
}
