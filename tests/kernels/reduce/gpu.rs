//! Reductions of arrays on the GPU.

use crate::{same_bits, trial};
use gemm_dsl::spec::{Op, Over, ReduceSpec};
use gemm_dsl::stages::{self, Stage};
use gemm_runtime::Device;
use gemm_tests::arbitrary;
use gemm_tests::reduction::{CLASSIC, LENGTHS, check, elements, run};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

/// Additional lengths that the simulator can run.
const SIMULATED: [usize; 3] = [12_345, 1 << 15, 1 << 16];
/// Lengths that are too slow for the simulator.
const LARGE: [usize; 3] = [1 << 20, (1 << 24) + 7, 1 << 28];

/// Stages that reduce a whole array.
fn whole_arrays() -> impl Iterator<Item = Stage<ReduceSpec>> {
    stages::reduce().into_iter().filter(|stage| stage.spec.over == Over::All)
}

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for stage in whole_arrays() {
        for op in CLASSIC {
            let (name, spec) = (format!("{}::{op}", stage.stem()), stage.spec.clone().op(op));
            let small = [spec.clone(), spec.clone().float4(true)];
            trials.push(trial(format!("reduce::small::{name}"), move |gpu| {
                small.iter().try_for_each(|spec| small_arrays(gpu, spec))
            }));
            let large = [spec.clone(), spec.float4(true).items(4)];
            trials.push(trial(format!("reduce::large::{name}"), move |gpu| {
                large.iter().try_for_each(|spec| large_arrays(gpu, spec))
            }));
        }
    }
    for (i, spec) in arbitrary::sample(arbitrary::classic(), 60).into_iter().enumerate() {
        trials.push(trial(format!("reduce::random::{i:02}"), move |gpu| {
            [33, 1000, 5000].iter().try_for_each(|&len| like_the_simulator(gpu, &spec, len, i % 4))
        }));
    }
    trials.push(trial("reduce::special_values".to_owned(), special_values));
    trials
}

fn small_arrays(gpu: &Device, spec: &ReduceSpec) -> Result<(), Failed> {
    for &len in LENGTHS.iter().chain(&SIMULATED) {
        like_the_simulator(gpu, spec, len, 0)?;
    }
    like_the_simulator(gpu, spec, 3001, 1)
}

/// Checks that results are correct and have the simulator's bits.
fn like_the_simulator(
    gpu: &Device,
    spec: &ReduceSpec,
    len: usize,
    offset: usize,
) -> Result<(), Failed> {
    let elements = elements(spec.op, len as u64, len);
    let (result, launched) = run(gpu, spec, &elements, offset)?;
    check(spec, &elements, result)?;
    let (simulated, by_simulator) = run(&simulator(), spec, &elements, offset)?;
    if launched.variant() != by_simulator.variant() {
        return Err(format!("`{spec}` ran as {}", launched.variant()).into());
    }
    same_bits(&format!("`{spec}` at {len}"), &[result], &[simulated])
}

fn large_arrays(gpu: &Device, spec: &ReduceSpec) -> Result<(), Failed> {
    for len in LARGE {
        // The elements repeat with an odd period, so that no two blocks get the same values.
        let mut elements = elements(spec.op, 1, len.min((1 << 16) + 1));
        if spec.op == Op::Prod {
            // The factors are so close to 1 that the product of 2^28 elements stays in range. Few
            // factors differ from 1, so that the error bound is small.
            elements.iter_mut().for_each(|x| *x = 1.0 + (*x - 1.0) / 4096.0);
            let ones = elements.iter_mut().enumerate().filter(|(i, _)| i % 1021 != 0);
            ones.for_each(|(_, x)| *x = 1.0);
        }
        let elements: Vec<f32> = elements.iter().copied().cycle().take(len).collect();
        let (result, _) = run(gpu, spec, &elements, 0)?;
        check(spec, &elements, result)?;
    }
    Ok(())
}

fn special_values(gpu: &Device) -> Result<(), Failed> {
    let (inf, nan) = (f32::INFINITY, f32::from_bits(0xffc0_0001));
    let tiny = f32::from_bits(1);
    let arrays: [&[f32]; 9] = [
        &[],
        &[-0.0],
        &[0.0, -0.0],
        &[-0.0, -0.0],
        &[nan, 1.0],
        &[inf, -inf],
        &[inf, 0.0],
        &[tiny, tiny],
        &[f32::MAX, f32::MAX],
    ];
    for stage in whole_arrays() {
        for op in CLASSIC {
            let spec = stage.spec.clone().op(op);
            for array in arrays {
                let (result, _) = run(gpu, &spec, array, 0)?;
                let (simulated, _) = run(&simulator(), &spec, array, 0)?;
                same_bits(&format!("`{spec}` of {array:?}"), &[result], &[simulated])?;
            }
        }
    }
    Ok(())
}
