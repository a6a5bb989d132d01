//! GEMMs on matrices of any types. Elements are small integers, so that sums are exact in any
//! order, and each element of C is the exact sum rounded to its type.

use gemm_dsl::spec::{MatrixType, SgemmSpec};
use gemm_oracle::product::Size;
use gemm_oracle::random::Random;
use gemm_runtime::half::{bf16, f16};
use gemm_runtime::{Device, Element, Error, Gemm};
use gemm_tests::product::accepted;
use gemm_tests::{arbitrary, simulator};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;

/// Element type with the rounding of exact numbers.
trait Rounded: Element + PartialEq {
    fn rounded(exact: f64) -> Self;
}

impl Rounded for f64 {
    fn rounded(exact: f64) -> Self {
        exact
    }
}

impl Rounded for f32 {
    fn rounded(exact: f64) -> Self {
        exact as f32
    }
}

impl Rounded for f16 {
    fn rounded(exact: f64) -> Self {
        f16::from_f64(exact)
    }
}

impl Rounded for bf16 {
    fn rounded(exact: f64) -> Self {
        bf16::from_f64(exact)
    }
}

fn check(device: &Device, spec: &SgemmSpec, size: Size, seed: u64) -> Result<(), String> {
    match spec.a {
        MatrixType::F64 => of::<f64>(device, spec, size, seed),
        MatrixType::F16 => of::<f16>(device, spec, size, seed),
        MatrixType::Bf16 => of::<bf16>(device, spec, size, seed),
        _ => of::<f32>(device, spec, size, seed),
    }
    .map_err(|error| format!("`{spec}` at {size}: {error}"))
}

fn of<T: Rounded>(device: &Device, spec: &SgemmSpec, size: Size, seed: u64) -> Result<(), String> {
    match spec.c {
        MatrixType::F64 => product::<T, f64>(device, spec, size, seed),
        MatrixType::F16 => product::<T, f16>(device, spec, size, seed),
        MatrixType::Bf16 => product::<T, bf16>(device, spec, size, seed),
        _ => product::<T, f32>(device, spec, size, seed),
    }
}

fn product<T: Rounded, R: Rounded>(
    device: &Device,
    spec: &SgemmSpec,
    size: Size,
    seed: u64,
) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let kernel = Gemm::<T, T, R>::new(spec.clone()).map_err(text)?;
    let (size, mut random) = (accepted(spec, size), Random::new(seed));
    let Size { m, n, k } = size;
    let mut integers = |len: usize| -> Vec<f64> {
        (0..len).map(|_| f64::from(random.bits() as u32 % 17) - 8.0).collect()
    };
    let (a, b) = (integers(m * k), integers(k * n));
    let stored = |of: &[f64], rows: usize, cols: usize, by_column: bool| -> Vec<T> {
        let place = |i: usize| if by_column { i % rows * cols + i / rows } else { i };
        (0..rows * cols).map(|i| T::rounded(of[place(i)])).collect()
    };
    let of_a = stored(&a, m, k, spec.layout.transposes_a());
    let of_b = stored(&b, k, n, spec.layout.transposes_b());
    let c = kernel.run(device, &of_a, &of_b, (m, n, k)).map_err(text)?;
    for (at, found) in c.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let exact: f64 = (0..k).map(|i| a[row * k + i] * b[i * n + col]).sum();
        if *found != R::rounded(exact) {
            return Err(format!("{size}: C[{row}][{col}] is {found:?}, not {exact}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(gemm_cases::cases(400))]

    fn sums_are_exact(
        spec in arbitrary::typed(256),
        (m, n) in (0..40usize, 0..40usize),
        k in prop_oneof![0..90usize, (0..12usize).prop_map(|k| 8 * k)],
        seed in any::<u64>(),
    ) {
        check(&simulator(), &spec, Size::new(m, n, k), seed).map_err(TestCaseError::fail)?;
    }
}

/// Random specs at a few sizes on a GPU.
fn on_gpu(device: &Device, spec: &SgemmSpec) -> Result<(), Failed> {
    for (seed, (m, n, k)) in (1..).zip([(7, 5, 3), (130, 70, 64), (33, 257, 104), (64, 64, 0)]) {
        check(device, spec, Size::new(m, n, k), seed)?;
    }
    Ok(())
}

pub fn trials() -> Vec<Trial> {
    let specs = arbitrary::sample(arbitrary::typed(1024), gemm_cases::scaled(96));
    let on_gpus = specs.into_iter().enumerate().map(|(nth, spec)| {
        crate::trial(format!("typed::{nth:02}"), move |device| on_gpu(device, &spec))
    });
    simulated![sums_are_exact].into_iter().chain(on_gpus).collect()
}
