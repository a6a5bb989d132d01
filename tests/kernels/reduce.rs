//! Reductions compared with f64.

mod any_gpu;
mod axes;
mod device;
mod each;
mod faults;
mod gpu;
mod index;
mod large_gpu;
mod ops;
mod random;
mod segments;
mod semantics;
mod shards;
mod shipped_tables;
mod tickets_gpu;
mod topk;
mod types;
mod views;
use gemm_dsl::spec::{Op, Over, ReduceSpec};
use gemm_dsl::stages;
use gemm_oracle::depth::passes;
use gemm_oracle::random::Random;
use gemm_runtime::{Device, Variant};
use gemm_tests::arbitrary;
use gemm_tests::reduction::{CLASSIC, LENGTHS, check, elements, run};
use gemm_tests::simulator;
use libtest_mimic::Trial;
use proptest::prelude::*;

/// Stages of the ladder with every operator.
fn specs() -> impl Iterator<Item = ReduceSpec> {
    stages::reduce()
        .into_iter()
        .filter(|stage| stage.spec.over == Over::All)
        .flat_map(|stage| CLASSIC.into_iter().map(move |op| stage.spec.clone().op(op)))
}

fn right(spec: &ReduceSpec, len: usize, seed: u64) {
    let device = Device::simulator();
    let elements = elements(spec.op, seed, len);
    let (result, launched) =
        run(&device, spec, &elements, 0).unwrap_or_else(|e| panic!("`{spec}` at {len}: {e}"));
    check(spec, &elements, result).unwrap_or_else(|e| panic!("{e}"));
    let expected = passes(&spec.plan().expect("a sound spec"), len);
    assert_eq!(launched.passes(), expected, "`{spec}` at {len}");
}

fn every_stage_and_operator_is_right_at_the_edges() {
    for spec in specs() {
        for &len in LENGTHS {
            right(&spec, len, len as u64);
            right(&spec.clone().float4(true), len, len as u64);
        }
    }
}

fn every_stage_and_operator_is_right_at_random_lengths() {
    let mut random = Random::new(1);
    for spec in specs() {
        let len = random.bits() as usize % 20_000;
        right(&spec, len, random.bits());
    }
}

fn an_array_of_three_passes_is_right() {
    // The passes have 2^16 + 1 elements, then 2049 values, then 65, then 3, then one.
    let spec = ReduceSpec::default().block(32).shuffle(true);
    right(&spec, (1 << 16) + 1, 3);
    right(&spec.op(Op::Max), (1 << 16) + 1, 3);
}

fn both_access_variants_give_the_same_bits() {
    let device = Device::simulator();
    for spec in specs().map(|spec| spec.float4(true)) {
        let elements = elements(spec.op, 5, 3001);
        let results: Vec<(u32, Variant)> = (0..4)
            .map(|offset| match run(&device, &spec, &elements, offset) {
                Ok((result, launched)) => (result.to_bits(), launched.variant()),
                Err(error) => panic!("`{spec}` from {offset} on: {error}"),
            })
            .collect();
        let bits = results[0].0;
        let expected =
            [Variant::Vector, Variant::Scalar, Variant::Scalar, Variant::Scalar].map(|v| (bits, v));
        assert_eq!(results, expected, "{spec}");
    }
}

fn a_result_depends_on_the_elements_alone() {
    let device = Device::simulator();
    let spec = ReduceSpec::default().items(3).shuffle(true);
    let elements = elements(Op::Sum, 9, 50_000);
    let bits = || run(&device, &spec, &elements, 0).map(|(result, _)| result.to_bits());
    let first = bits().expect("a sum");
    assert!((0..5).all(|_| bits().is_ok_and(|bits| bits == first)));
}

proptest! {
    #![proptest_config(gemm_cases::cases(256))]

    fn any_spec_is_right_at_any_length(
        spec in arbitrary::classic(),
        len in 0..5000usize,
        offset in 0..4usize,
        seed: u64,
    ) {
        let elements = elements(spec.op, seed, len);
        let run = run(&simulator(), &spec, &elements, offset);
        let (result, launched) = run.map_err(|e| TestCaseError::fail(e.to_string()))?;
        check(&spec, &elements, result).map_err(TestCaseError::fail)?;
        let variant = match (spec.float4, offset) {
            (false, _) => Variant::Only,
            (true, 0) => Variant::Vector,
            (true, _) => Variant::Scalar,
        };
        prop_assert_eq!(launched.variant(), variant);
    }
}

pub fn trials() -> Vec<Trial> {
    let trials = [
        simulated![
            every_stage_and_operator_is_right_at_the_edges,
            every_stage_and_operator_is_right_at_random_lengths,
            an_array_of_three_passes_is_right,
            both_access_variants_give_the_same_bits,
            a_result_depends_on_the_elements_alone,
            any_spec_is_right_at_any_length,
        ],
        any_gpu::trials(),
        axes::trials(),
        device::trials(),
        faults::trials(),
        gpu::trials(),
        index::trials(),
        large_gpu::trials(),
        ops::trials(),
        random::trials(),
        segments::trials(),
        semantics::trials(),
        shards::trials(),
        shipped_tables::trials(),
        tickets_gpu::trials(),
        topk::trials(),
        types::trials(),
        views::trials(),
    ];
    trials.into_iter().flatten().collect()
}
