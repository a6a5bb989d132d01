//! Every operator of every type, folded over an array in both launch forms, at lengths where threads, blocks,
//! rounds and parts begin and end.

use crate::reduce_each::{each, right, same};
use gemm_dsl::spec::{DataType, LaunchForm, Op, Over, ReduceSpec};
use gemm_tests::fold::lying::Lying;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape, closures};
use gemm_tests::random::Random;
use gemm_tests::reduction::LENGTHS;

/// An array of so many elements.
fn array(len: usize) -> Shape {
    Shape::Tensor { outer: 1, len, inner: 1 }
}

/// A spec of an operator and a type that is sound: in `f32` where only floats will do.
fn of(op: Op, element: DataType) -> ReduceSpec {
    let spec = ReduceSpec::default().op(op).element(element).block(64).items(2).blocks(3);
    match spec.plan() {
        Ok(_) => spec,
        Err(_) if element == DataType::F64 => {
            spec.acc(DataType::F32).map("|x| f32(x)".parse().expect("a map"))
        }
        Err(_) => spec.acc(DataType::F32),
    }
}

/// The case of a spec that may have the map of [`of`].
fn case(spec: &ReduceSpec, shape: Shape, seed: u64) -> Case {
    let narrow = closures::maps(DataType::F64.elem(), Some(DataType::F32.elem()));
    let map = spec.map.as_ref().and(narrow.first().copied());
    Case::with(spec, (map, None, None), shape, seed)
}

/// Several rounds of a thread, three parts, partials in sequence; and the same in one launch.
#[test]
fn every_operator_and_type_is_right_in_both_launch_forms() {
    each(|n, op, element| {
        let (passes, once) = (Simulator::default(), Simulator::default());
        let mut random = Random::new(n as u64);
        let spec = of(op, element);
        let in_one = spec.clone().launch(LaunchForm::Once);
        let some = [random.bits() as usize % 3000, random.bits() as usize % 700];
        for &len in LENGTHS.iter().chain(&some) {
            let lying = Lying::random(&mut random);
            let seed = random.bits();
            let ran = run(&passes, &case(&spec, array(len), seed), &lying)?;
            let other = run(&once, &case(&in_one, array(len), seed), &lying)?;
            same(format!("`{in_one}` of {len}"), ran.results, other.results)?;
            same("launches", (ran.variants.len(), other.variants.len()), (2, 1))?;
        }
        Ok(())
    });
}

/// Whether a vector or an element is loaded is for the place of the array to say, and makes no difference.
#[test]
fn access_variants_and_places_do_not_change_a_bit() {
    each(|n, op, element| {
        let machine = Simulator::default();
        let spec = of(op, element).float4(true).items(1);
        let seed = n as u64 + 77;
        let lens = [0, 1, 15, 16, 33, 1000, 3001 + n];
        for len in [lens[n % 7], lens[5], lens[6]] {
            let case = case(&spec, array(len), seed);
            let first = run(&machine, &case, &Lying::PACKED)?.results;
            for offset in [1, 3, 16] {
                let ran = run(&machine, &case, &Lying { offset, ..Lying::PACKED })?;
                same(format!("`{spec}` of {len}"), &ran.results, &first)?;
            }
        }
        Ok(())
    });
}

#[test]
fn compensated_sums_are_right_to_the_last_digits() {
    for element in [DataType::F32, DataType::F64, DataType::F16, DataType::Bf16, DataType::I32] {
        let acc = if element == DataType::F64 { DataType::F64 } else { DataType::F32 };
        let base = ReduceSpec::default().element(element).compensated(true).block(64).acc(acc);
        for spec in
            [base.clone(), base.clone().launch(LaunchForm::Once).items(3), base.over(Over::Rows)]
        {
            let machine = Simulator::default();
            for (n, &len) in LENGTHS.iter().enumerate() {
                for seed in 0..4 {
                    let case = Case::new(&spec, array(len), seed * 100 + n as u64);
                    right(&machine, &case, &Lying::PACKED);
                }
            }
        }
    }
}

/// Behind the end of an array the identity stands, before the first element nothing: arrays that are all
/// as small as can be, or of one value.
#[test]
fn arrays_of_one_value_are_right() {
    let machine = Simulator::default();
    let values = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 65504.0, 6e-8];
    for &op in Op::ALL {
        for element in [DataType::F32, DataType::F16, DataType::F64] {
            let spec = of(op, element);
            for value in values {
                for len in [1, 2, 127, 128, 129, 400] {
                    let mut case = case(&spec, array(len), 1);
                    let bits = gemm_reference::fold::Number::Float(value).bits(element.elem());
                    case.inputs[0].fill(bits);
                    right(&machine, &case, &Lying::PACKED);
                }
            }
        }
    }
}

#[test]
fn results_may_overflow_a_narrow_type() {
    let machine = Simulator::default();
    for result in [DataType::F16, DataType::Bf16] {
        for (op, value) in
            [(Op::Sum, 60000.0), (Op::Max, 65504.0), (Op::Prod, 300.0), (Op::Sum, 1e-8f32)]
        {
            let spec = of(op, DataType::F32).result(result);
            for len in [0, 1, 2, 3] {
                let mut case = case(&spec, array(len), 1);
                case.inputs[0].fill(value.to_bits().into());
                right(&machine, &case, &Lying::PACKED);
            }
        }
    }
}

#[test]
fn folds_maps_and_finishes_are_what_they_say() {
    let machine = Simulator::default();
    let mut seen = 0;
    for &op in Op::ALL {
        for (n, &element) in DataType::ALL.iter().enumerate() {
            let base = ReduceSpec::default().op(op).element(element).block(32).blocks(2);
            let truth = [Op::Any, Op::All].contains(&op);
            for &acc in DataType::ALL {
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
                        right(&machine, &case, &Lying::PACKED);
                        seen += 1;
                    }
                }
                if truth {
                    break;
                }
            }
            let acc = base.acc_elem();
            for &result in DataType::ALL {
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
                        right(&machine, &case, &Lying::PACKED);
                        seen += 1;
                    }
                }
            }
            for fold in closures::folds(acc) {
                for len in [0, 1, 33, 150] {
                    let case = Case::with(&base, (None, None, Some(fold)), array(len), len as u64);
                    if case.spec.plan().is_ok() {
                        right(&machine, &case, &Lying::PACKED);
                        seen += 1;
                    }
                }
            }
        }
    }
    assert!(seen > 1000, "{seen}");
}

/// A case that cannot be judged shows nothing: there are few.
#[test]
fn most_random_cases_are_judged() {
    use gemm_reference::fold::{Folded, folded};
    each(|n, op, element| {
        let spec = of(op, element);
        let mut unjudged = 0;
        for seed in 0..40 {
            let case = case(&spec, array(300), seed * 1000 + n as u64);
            let all = folded(case.kind, &case.plan(), &case.values(0));
            unjudged += usize::from(all.contains(&Folded::Unjudged));
        }
        // Products of integers as floats grow without end, and the squares of the largest are beyond `f32`.
        let few = match op {
            Op::MeanVar if element.elem().size() == 8 => 36,
            Op::Prod | Op::MeanVar => 20,
            _ => 8,
        };
        if unjudged > few { Err(format!("`{spec}`: {unjudged} of 40")) } else { Ok(()) }
    });
}
