//! Operators follow IEEE 754 for NaN, infinities and signed zeros, in every stage and for any
//! position of the value in the array.

use gemm_dsl::spec::{Op, Over, ReduceSpec};
use gemm_dsl::stages;
use gemm_dsl::target::intrinsic::CANONICAL_NAN;
use gemm_runtime::Device;
use gemm_tests::reduction::{CLASSIC, run};
use libtest_mimic::Trial;

const INF: f32 = f32::INFINITY;

/// Every stage, with and without vectors.
fn stages(op: Op) -> Vec<ReduceSpec> {
    let whole = stages::reduce().into_iter().filter(|stage| stage.spec.over == Over::All);
    let specs = whole.map(|stage| stage.spec.op(op));
    specs.flat_map(|spec| [spec.clone(), spec.float4(true)]).collect()
}

/// Reduces an array of `fill` that contains the given values, first at its start, then in the
/// middle, then at the end.
fn reduced(op: Op, fill: f32, values: &[f32]) -> Vec<u32> {
    let device = Device::simulator();
    let len = 600;
    let mut results = Vec::new();
    for spec in stages(op) {
        for at in [0, 290, len - values.len()] {
            let mut elements = vec![fill; len];
            elements[at..at + values.len()].copy_from_slice(values);
            let (result, _) = run(&device, &spec, &elements, 0).expect("a launch");
            results.push(result.to_bits());
        }
    }
    results
}

#[track_caller]
fn gives(op: Op, fill: f32, values: &[f32], expected: f32) {
    for bits in reduced(op, fill, values) {
        let result = f32::from_bits(bits);
        assert_eq!(bits, expected.to_bits(), "{op} of {fill} and {values:?} is {result:?}");
    }
}

/// Neutral element of an operator.
fn identity(op: Op) -> f32 {
    match op {
        Op::Sum => -0.0,
        Op::Prod => 1.0,
        Op::Max => -INF,
        Op::Min => INF,
        other => panic!("{other} is none of the classic operators"),
    }
}

fn the_empty_array_gives_the_identity() {
    let device = Device::simulator();
    for op in CLASSIC {
        let identity = identity(op);
        for spec in stages(op) {
            let (result, launched) = run(&device, &spec, &[], 0).expect("a launch");
            assert_eq!(result.to_bits(), identity.to_bits(), "{spec}");
            assert_eq!(launched.passes(), 1);
        }
    }
}

fn the_identity_changes_no_value() {
    let values = [0.0, -0.0, 1.5, -1.5, INF, -INF, f32::MIN_POSITIVE / 2.0, f32::MAX];
    for op in CLASSIC {
        for value in values {
            gives(op, identity(op), &[value], value);
        }
    }
}

fn a_nan_anywhere_makes_the_result_the_canonical_nan() {
    let canonical = f32::from_bits(CANONICAL_NAN);
    for op in CLASSIC {
        for nan in [0x7fc0_0000, 0xffc0_0001, 0x7f80_0001] {
            gives(op, 1.0, &[f32::from_bits(nan)], canonical);
        }
        gives(op, f32::NAN, &[0.0], canonical);
    }
}

fn minus_zero_is_below_plus_zero() {
    gives(Op::Max, -0.0, &[0.0], 0.0);
    gives(Op::Max, -0.0, &[-0.0], -0.0);
    gives(Op::Min, 0.0, &[-0.0], -0.0);
    gives(Op::Min, 0.0, &[0.0], 0.0);
}

fn zeros_are_summed_and_multiplied_as_ieee_says() {
    gives(Op::Sum, -0.0, &[-0.0, -0.0], -0.0);
    gives(Op::Sum, -0.0, &[0.0], 0.0);
    gives(Op::Sum, 0.0, &[-0.0], 0.0);
    gives(Op::Prod, 1.0, &[-0.0], -0.0);
    gives(Op::Prod, 1.0, &[-0.0, -1.0], 0.0);
}

fn infinities_stay_or_become_nan() {
    let nan = f32::from_bits(CANONICAL_NAN);
    gives(Op::Sum, 1.0, &[INF], INF);
    gives(Op::Sum, 1.0, &[INF, -INF], nan);
    gives(Op::Prod, 1.0, &[INF, -2.0], -INF);
    gives(Op::Prod, 1.0, &[INF, 0.0], nan);
    gives(Op::Max, 1.0, &[INF, -INF], INF);
    gives(Op::Min, 1.0, &[INF, -INF], -INF);
    gives(Op::Max, -INF, &[-INF], -INF);
}

pub fn trials() -> Vec<Trial> {
    simulated![
        the_empty_array_gives_the_identity,
        the_identity_changes_no_value,
        a_nan_anywhere_makes_the_result_the_canonical_nan,
        minus_zero_is_below_plus_zero,
        zeros_are_summed_and_multiplied_as_ieee_says,
        infinities_stay_or_become_nan,
    ]
}
