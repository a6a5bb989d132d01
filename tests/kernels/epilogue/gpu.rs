//! Kernels with the key `epilogue` compute the simulator's bits on the GPU, for every expression
//! and every kind of store.

use crate::{same_bits, trial};
use gemm_dsl::spec::SgemmSpec;
use gemm_oracle::product::Size;
use gemm_oracle::random::Hard;
use gemm_runtime::Device;
use gemm_tests::product::{Placement, Problem};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

/// One spec for each kind of store to C.
const SPECS: [&str; 6] = [
    "block: 8x8, coarsen: 3",
    "tile: 16x16x8",
    "tile: 32x32x8, thread: 4x4, float4",
    "tile: 32x32x8, thread: 4x4, float4, pitched",
    "tile: 32x64x8, thread: 4x8, fragment: split, float4, transpose, double_buffer",
    "tile: 32x32x8, thread: 4x4, float4, stages: 3, warp: 16x32",
];

/// Every function and every operator of the language.
const EXPRESSIONS: [&str; 31] = [
    "|acc| abs(acc)",
    "|acc| sqrt(acc)",
    "|acc| rsqrt(acc)",
    "|acc| floor(acc * 8.0)",
    "|acc| round(acc * 8.0)",
    "|acc| ceil(acc * 8.0)",
    "|acc| trunc(acc * 8.0)",
    "|acc| sign(acc)",
    "|acc| if isnan(acc) { 1.0 } else { -acc }",
    "|acc| pow(acc, 0.7) + pow(acc, 3.0)",
    "|acc| expm1(acc)",
    "|acc| log1p(acc)",
    "|acc| sin(acc)",
    "|acc| sin(acc * 1e6) + cos(acc * 1e20)",
    "|acc| cos(acc)",
    "|acc| erfc(acc)",
    "|acc| softplus(acc)",
    "|acc| mish(acc)",
    "|acc| exp(acc)",
    "|acc| exp2(acc)",
    "|acc| log(acc)",
    "|acc| log2(acc)",
    "|acc| tanh(acc)",
    "|acc| erf(acc)",
    "|acc| sigmoid(acc)",
    "|acc| relu(acc)",
    "|acc| silu(acc)",
    "|acc| gelu(acc)",
    "|acc| gelu_tanh(acc)",
    "|acc| clamp(fma(acc, 3.0, -acc / 0.7), -2.5, 2.5)",
    "|acc| { let t = 0.5 * acc; if col > row && !(acc < 0.0) { max(t, 0.25) } else \
     { min(t * f32(row - col), f32(m * n + k)) } }",
];

pub fn trials() -> Vec<Trial> {
    let lines = EXPRESSIONS.iter().enumerate().map(|(i, expression)| {
        let line = format!("{}, epilogue: {expression}", SPECS[i % SPECS.len()]);
        trial(format!("epilogue::{i:02}"), move |gpu| like_the_simulator(gpu, &line))
    });
    lines.collect()
}

fn like_the_simulator(gpu: &Device, line: &str) -> Result<(), Failed> {
    let spec: SgemmSpec = line.parse()?;
    for size in [Size::new(1, 1, 1), Size::new(33, 36, 9), Size::new(70, 35, 41)] {
        let hard = Hard::ALL.into_iter().map(|hard| Problem::hard(size, 3, hard));
        for problem in hard.chain([Problem::new(size, 17)]) {
            for placement in [
                Placement::aligned_rows(spec.layout, size),
                Placement { padding: [1, 0, 2], ..Default::default() },
            ] {
                let (c, _) = problem.multiply(gpu, &spec, placement)?;
                let (simulated, _) = problem.multiply(&simulator(), &spec, placement)?;
                same_bits(&format!("`{spec}` at {size}"), &c, &simulated)?;
            }
        }
    }
    Ok(())
}
