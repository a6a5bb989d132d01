//! Every operator with every type over an array, in both launch forms, at the limits of threads,
//! blocks, rounds and parts.

use crate::reduce::each::{each, right, same};
use gemm_dsl::spec::{AccType, DataType, LaunchForm, Op, Over, ReduceSpec, ResultType};
use gemm_oracle::random::Random;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Machine, Simulator, run};
use gemm_tests::fold::{Case, Shape, closures};
use gemm_tests::reduction::LENGTHS;
use libtest_mimic::Trial;
use rayon::prelude::*;

fn array(len: usize) -> Shape {
    Shape::Tensor { outer: 1, len, inner: 1 }
}

/// Spec of an operator and a type, accumulated in `f32` if the operator needs floats.
fn of(op: Op, element: DataType) -> ReduceSpec {
    let spec = ReduceSpec::default().op(op).element(element).block(64).items(2).blocks(3);
    match spec.plan() {
        Ok(_) => spec,
        Err(_) if element == DataType::F64 => {
            spec.acc(AccType::F32).map("|x| f32(x)".parse().expect("a map"))
        }
        Err(_) => spec.acc(AccType::F32),
    }
}

/// Case of a spec, which may have the map of [`of`].
fn case(spec: &ReduceSpec, shape: Shape, seed: u64) -> Case {
    let narrow = closures::maps(DataType::F64.elem(), Some(DataType::F32.elem()));
    let map = spec.map.as_ref().and(narrow.first().copied());
    Case::with(spec, (map, None, None), shape, seed)
}

/// The reductions have several rounds per thread and three parts. Partial results are combined in
/// several passes, or in one launch.
fn every_operator_and_type_is_right_in_both_launch_forms() {
    each(|n, op, element| {
        let (passes, once) = (Simulator::default(), Simulator::default());
        let mut random = Random::new(n as u64);
        let spec = of(op, element);
        let in_one = spec.clone().launch(LaunchForm::Once);
        let some = [random.bits() as usize % 3000, random.bits() as usize % 700];
        for &len in LENGTHS.iter().chain(&some) {
            let placement = Placement::random(&mut random);
            let seed = random.bits();
            let ran = run(&passes, &case(&spec, array(len), seed), &placement)?;
            let other = run(&once, &case(&in_one, array(len), seed), &placement)?;
            same(format!("`{in_one}` of {len}"), ran.results, other.results)?;
            same("launches", (ran.variants.len(), other.variants.len()), (2, 1))?;
        }
        Ok(())
    });
}

/// Plain sums use tiles by default. With explicit passes they have the bits of a single launch. The
/// cases have more parts than a tile block reduces, more rounds than 1024 blocks have, or vectors.
fn plain_sums_have_the_same_bits_by_passes_and_in_one_launch() {
    let of_each = |(n, line): (usize, &str)| {
        let spec: ReduceSpec = line.parse().expect("a line");
        assert_eq!(spec.launch_form(), LaunchForm::Tiles, "{line}");
        let len = array((1 << 18) + 5);
        let [passes, once] = [LaunchForm::Passes, LaunchForm::Once].map(|form| {
            let case = Case::new(&spec.clone().launch(form), len.clone(), 70 + n as u64);
            run(&Simulator::default(), &case, &Placement::PACKED)
        });
        let (passes, once) = (passes?, once?);
        same(format!("`{line}`"), &passes.results, &once.results)?;
        same("launches", (passes.variants.len(), once.variants.len()), (2, 1))
    };
    let lines =
        ["items: 2, shuffle", "items: 2, shuffle, float4", "block: 32", "block: 32, float4"];
    let faults: Vec<String> =
        lines.into_par_iter().enumerate().map(of_each).filter_map(Result::err).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The alignment of the array determines if loads are vector or scalar loads. The choice does not
/// affect the bits.
fn access_variants_and_places_do_not_change_a_bit() {
    each(|n, op, element| {
        let machine = Simulator::default();
        let spec = of(op, element).float4(true).items(1);
        let seed = n as u64 + 77;
        let lens = [0, 1, 15, 16, 33, 1000, 3001 + n];
        for len in [lens[n % 7], lens[5], lens[6]] {
            let case = case(&spec, array(len), seed);
            let first = run(&machine, &case, &Placement::PACKED)?.results;
            for offset in [1, 3, 16] {
                let ran = run(&machine, &case, &Placement { offset, ..Placement::PACKED })?;
                same(format!("`{spec}` of {len}"), &ran.results, &first)?;
            }
        }
        Ok(())
    });
}

fn compensated_sums_are_right_to_the_last_digits() {
    for element in [DataType::F32, DataType::F64, DataType::F16, DataType::Bf16, DataType::I32] {
        let acc = if element == DataType::F64 { AccType::F64 } else { AccType::F32 };
        let base = ReduceSpec::default().element(element).compensated(true).block(64).acc(acc);
        for spec in
            [base.clone(), base.clone().launch(LaunchForm::Once).items(3), base.over(Over::Rows)]
        {
            let machine = Simulator::default();
            for (n, &len) in LENGTHS.iter().enumerate() {
                for seed in 0..4 {
                    let case = Case::new(&spec, array(len), seed * 100 + n as u64);
                    right(&machine, &case, &Placement::PACKED);
                }
            }
        }
    }
}

/// If a sum is infinite, no compensation is applied. Near the largest number, a compensation that
/// would overflow is dropped.
fn compensated_sums_of_the_greatest_numbers_are_plain_ones() {
    let spec: ReduceSpec = "over: rows, group: 1, compensated".parse().expect("a line");
    let (most, inf) = (f32::MAX, f32::INFINITY);
    // The sum is rounded up, and the difference between it and the first operand exceeds the
    // largest number.
    let near = -1.5 * 2.0_f32.powi(104);
    let rows = [
        ([near, most], most - 2.0_f32.powi(104)),
        ([most, near], most - 2.0_f32.powi(104)),
        ([most, most], inf),
        ([-most, -most], -inf),
        ([inf, 1.0], inf),
        ([1.0, -inf], -inf),
        ([most, -most], 0.0),
    ];
    let mut case = Case::new(&spec, Shape::Tensor { outer: rows.len(), len: 2, inner: 1 }, 1);
    let bits = |x: f32| u64::from(x.to_bits());
    case.inputs[0] = rows.iter().flat_map(|(row, _)| row.map(bits)).collect();
    let ran = right(&Simulator::default(), &case, &Placement::PACKED);
    let expected: Vec<u64> = rows.iter().map(|(_, sum)| bits(*sum)).collect();
    assert_eq!(ran.results, [expected]);
}

/// Mean and variance of an array of `f32`.
fn moments(line: &str, elements: &[f32]) -> [f32; 2] {
    let spec: ReduceSpec = line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"));
    let mut case = Case::new(&spec.op(Op::MeanVar), array(elements.len()), 1);
    case.inputs[0] = elements.iter().map(|x| x.to_bits().into()).collect();
    let mut images = case.images(&Placement::PACKED);
    let ran = Simulator::default().launch(&case, &mut images);
    ran.unwrap_or_else(|wrong| panic!("{wrong}"));
    let results = images.results().unwrap_or_else(|wrong| panic!("{wrong}"));
    [0, 1].map(|n| f32::from_bits(results[n][0] as u32))
}

fn the_mean_of_zeros_is_plus_zero() {
    for line in ["", "items: 2", "items: 4, float4", "blocks: 2", "blocks: 2, launch: once"] {
        for len in [1, 7, 600] {
            let found = moments(line, &vec![-0.0; len]).map(f32::to_bits);
            assert_eq!(found, [0; 2], "{len} times -0 by `{line}`");
        }
    }
}

/// Sums, differences and squares overflow on the way to a mean and a variance in range.
fn mean_and_variance_are_right_up_to_the_end_of_the_range() {
    let (most, half) = (f32::MAX, f32::MAX / 2.0);
    for line in ["", "items: 4, float4", "over: rows, group: 1, items: 2", "blocks: 2"] {
        for (element, len) in [(most, 2), (most, 600), (-most, 77), (half, 3)] {
            let found = moments(line, &vec![element; len]);
            assert_eq!(found, [element, 0.0], "{len} times {element} by `{line}`");
        }
        assert_eq!(moments(line, &[0.0, 2.0_f32.powi(64)]), [2.0_f32.powi(63), 2.0_f32.powi(126)]);
        let alternating: Vec<f32> =
            (0..1000).map(|n| if n % 2 == 0 { 1e19 } else { -1e19 }).collect();
        let [mean, var] = moments(line, &alternating);
        assert!(mean.abs() < 1e13 && (var - 1e38).abs() < 1e33, "{mean} {var} by `{line}`");
        let [mean, var] = moments(line, &[vec![most; 128], vec![-most; 128]].concat());
        assert!(mean.abs() < 1e32 && var == f32::INFINITY, "{mean} {var} by `{line}`");
        for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let found = moments(line, &[most, special, -most, 1.0]);
            assert!(found.iter().all(|x| x.is_nan()), "{special} by `{line}`: {found:?}");
        }
    }
}

/// Elements after the end of an array count as the identity, and nothing is combined before its
/// first element. The arrays repeat one value, including extreme values.
fn arrays_of_one_value_are_right() {
    let machine = Simulator::default();
    let values = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 65504.0, 6e-8];
    for &op in Op::ALL {
        for element in [DataType::F32, DataType::F16, DataType::F64] {
            let spec = of(op, element);
            for value in values {
                for len in [1, 2, 127, 128, 129, 400] {
                    let mut case = case(&spec, array(len), 1);
                    let bits = gemm_oracle::fold::Number::Float(value).bits(element.elem());
                    case.inputs[0].fill(bits);
                    right(&machine, &case, &Placement::PACKED);
                }
            }
        }
    }
}

fn results_may_overflow_a_narrow_type() {
    let machine = Simulator::default();
    for result in [ResultType::F16, ResultType::Bf16] {
        for (op, value) in
            [(Op::Sum, 60000.0), (Op::Max, 65504.0), (Op::Prod, 300.0), (Op::Sum, 1e-8f32)]
        {
            let spec = of(op, DataType::F32).result(result);
            for len in [0, 1, 2, 3] {
                let mut case = case(&spec, array(len), 1);
                case.inputs[0].fill(value.to_bits().into());
                right(&machine, &case, &Placement::PACKED);
            }
        }
    }
}

fn folds_maps_and_finishes_are_what_they_say() {
    let machine = Simulator::default();
    let mut seen = 0;
    for &op in Op::ALL {
        for (n, &element) in DataType::ALL.iter().enumerate() {
            let base = ReduceSpec::default().op(op).element(element).block(32).blocks(2);
            let truth = [Op::Any, Op::All].contains(&op);
            for &acc in AccType::ALL {
                let spec = if truth { base.clone() } else { base.clone().acc(acc) };
                let folded = if truth { None } else { Some(acc.elem()) };
                for map in closures::maps(element.elem(), folded) {
                    let with = spec.clone().map(map.text.parse().expect("a map"));
                    if with.plan().is_err() {
                        continue;
                    }
                    for len in [0, 1, 70, 200] {
                        let case = Case::with(
                            &spec,
                            (Some(map), None, None),
                            array(len),
                            (n + len) as u64,
                        );
                        right(&machine, &case, &Placement::PACKED);
                        seen += 1;
                    }
                }
                if truth {
                    break;
                }
            }
            let acc = base.acc_elem();
            for &result in ResultType::ALL {
                let values = if op == Op::MeanVar { 2 } else { 1 };
                let spec = base.clone().result(result);
                for finish in closures::finishes(acc, result.elem(), values) {
                    let with = spec.clone().finish(finish.text.parse().expect("a finish"));
                    if with.plan().is_err() {
                        continue;
                    }
                    for len in [1, 33, 150] {
                        let given = (None, Some(finish), None);
                        let case = Case::with(&spec, given, array(len), (n + len) as u64);
                        right(&machine, &case, &Placement::PACKED);
                        seen += 1;
                    }
                }
            }
            for fold in closures::folds(acc) {
                for len in [0, 1, 33, 150] {
                    let case = Case::with(&base, (None, None, Some(fold)), array(len), len as u64);
                    if case.spec.plan().is_ok() {
                        right(&machine, &case, &Placement::PACKED);
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 1000, "{seen}");
}

/// Most random cases are conditioned well enough to be checked.
fn most_random_cases_are_judged() {
    use gemm_oracle::fold::{Folded, folded};
    each(|n, op, element| {
        let spec = of(op, element);
        let mut unjudged = 0;
        for seed in 0..40 {
            let case = case(&spec, array(300), seed * 1000 + n as u64);
            let all = folded(case.kind, &case.plan(), &case.values(0));
            unjudged += usize::from(all.contains(&Folded::Unjudged));
        }
        // Products of integers as floats overflow, and the squares of the largest values exceed
        // `f32`.
        let few = match op {
            Op::MeanVar if element.elem().size() == 8 => 36,
            Op::Prod | Op::MeanVar => 20,
            _ => 8,
        };
        if unjudged > few { Err(format!("`{spec}`: {unjudged} of 40")) } else { Ok(()) }
    });
}

pub fn trials() -> Vec<Trial> {
    simulated![
        every_operator_and_type_is_right_in_both_launch_forms,
        plain_sums_have_the_same_bits_by_passes_and_in_one_launch,
        access_variants_and_places_do_not_change_a_bit,
        compensated_sums_are_right_to_the_last_digits,
        compensated_sums_of_the_greatest_numbers_are_plain_ones,
        the_mean_of_zeros_is_plus_zero,
        mean_and_variance_are_right_up_to_the_end_of_the_range,
        arrays_of_one_value_are_right,
        results_may_overflow_a_narrow_type,
        folds_maps_and_finishes_are_what_they_say,
        most_random_cases_are_judged,
    ]
}
