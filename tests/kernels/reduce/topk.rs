//! The greatest or smallest elements of rows and arrays, in order.

use crate::reduce::each::right;
use gemm_dsl::spec::{DataType, IndexType, Op, Over, ReduceSpec};
use gemm_oracle::fold::Number;
use gemm_oracle::random::Random;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape, closures};
use libtest_mimic::Trial;
use proptest::prelude::*;
use proptest::sample::select;

/// Numbers of elements around those of one and of two slots of a lane.
const KEPT: [u32; 9] = [1, 2, 7, 31, 32, 33, 40, 63, 64];

const OPS: [Op; 4] = [Op::Max, Op::Min, Op::Argmax, Op::Argmin];

fn rows(outer: usize, len: usize) -> Shape {
    Shape::Tensor { outer, len, inner: 1 }
}

/// Selection that a lane, a warp or several blocks make, with its shape.
fn selection() -> impl Strategy<Value = (ReduceSpec, Shape, u64)> {
    let what = (select(KEPT.to_vec()), select(OPS.to_vec()), select(DataType::ALL.to_vec()));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let geometry = (5..=8u32, select(vec![1u32, 2, 4]), select(vec![None, Some(2u32), Some(5)]));
    let shape = (0..4usize, 0..700usize, any::<bool>());
    (what, flags, geometry, shape, any::<u64>()).prop_map(|(what, flags, geometry, shape, seed)| {
        let ((k, op, element), (float4, wide, by_block, all)) = (what, flags);
        let ((block, items, blocks), (outer, more, exact)) = (geometry, shape);
        let mut spec = ReduceSpec::default().op(op).element(element).topk(k);
        spec = spec.block(1 << block).items(items).float4(float4).with_value(op.is_index() && wide);
        spec.index = if wide && op.is_index() { IndexType::U64 } else { IndexType::U32 };
        spec.blocks = blocks;
        let len = if exact { k as usize } else { k as usize + more };
        if all {
            return (spec, rows(1, len), seed);
        }
        spec = spec.over(Over::Rows).pitched(wide);
        spec.group = by_block.then_some(spec.block);
        if !by_block && spec.block > 32 {
            spec.blocks = None;
        }
        (spec, rows(outer, len), seed)
    })
}

proptest! {
    #![proptest_config(gemm_cases::cases(250))]

    fn any_selection_is_right_anywhere((spec, shape, seed) in selection()) {
        let mut random = Random::new(seed);
        let maps = closures::maps(spec.element.elem(), Some(spec.acc_elem()));
        let map = maps.get(seed as usize % (2 * maps.len() + 1)).copied();
        let case = Case::with(&spec, (map, None, None), shape, seed);
        prop_assert!(case.spec.plan().is_ok(), "`{}`: {:?}", case.spec, case.spec.plan().err());
        let placement = Placement::random(&mut random);
        let ran = run(&Simulator::default(), &case, &placement).map_err(TestCaseError::fail)?;
        // Neither the threads nor the blocks change a bit, except those of NaNs.
        let mut other = case.clone();
        other.spec.blocks = None;
        other.spec.block = if spec.block == 64 { 128 } else { 64 };
        other.spec.group = spec.group.is_none().then_some(other.spec.block);
        if spec.over == Over::All {
            other.spec.group = None;
        }
        let elsewhere = run(&Simulator::default(), &other, &placement);
        let elsewhere = elsewhere.map_err(TestCaseError::fail)?;
        if values_of(&case, &ran.results).iter().all(|value| !value.float().is_nan()) {
            prop_assert_eq!(&elsewhere.results, &ran.results, "`{}`", case.spec);
        }
    }
}

/// Numbers of all results.
fn values_of(case: &Case, results: &[Vec<u64>]) -> Vec<Number> {
    let each = case.spec.results().into_iter().zip(results);
    each.flat_map(|((_, elem), bits)| bits.iter().map(move |bits| Number::of_bits(elem, *bits)))
        .collect()
}

/// Element of a row at an index.
type Element = fn(usize) -> f32;

/// Ascending rows are the worst input: every element is a candidate. Constant rows have none after
/// the first, and NaNs come first.
fn orders_of_the_elements_do_not_matter() {
    let of = |x: f32| u64::from(x.to_bits());
    let len = 1500;
    let inputs: [(&str, Element); 6] = [
        ("ascending", |i| i as f32),
        ("descending", |i| -(i as f32)),
        ("constant", |_| 2.5),
        ("identity", |_| f32::NEG_INFINITY),
        ("zeros", |i| if i % 3 == 0 { 0.0 } else { -0.0 }),
        ("nan", |i| if i % 20 == 19 { f32::NAN } else { f32::INFINITY }),
    ];
    for op in OPS {
        for k in [5, 64] {
            for line in ["over: rows", "over: rows, group: 128, block: 128, blocks: 3, items: 2"] {
                let spec: ReduceSpec = line.parse().expect("a line");
                let spec = spec.op(op).topk(k).with_value(op.is_index()).float4(true);
                for (what, element) in &inputs {
                    let mut case = Case::new(&spec, rows(2, len), 1);
                    let bits = (0..2 * len).map(|i| of(element(i % len)));
                    case.inputs = vec![bits.collect()];
                    println!("{what}: `{spec}`");
                    right(&Simulator::default(), &case, &Placement::PACKED);
                }
            }
        }
    }
}

/// A selection of one element has the bits of the operator without the key, except those of NaNs.
fn one_element_is_the_extremum() {
    for op in OPS {
        for seed in 0..12 {
            let spec = ReduceSpec::default().op(op).over(Over::Rows).with_value(op.is_index());
            let case = Case::new(&spec, rows(3, 100), seed);
            let ran = right(&Simulator::default(), &case, &Placement::PACKED);
            let top = Case { spec: spec.topk(1), ..case.clone() };
            let top = right(&Simulator::default(), &top, &Placement::PACKED);
            let [of_one, of_top] = [&ran, &top].map(|ran| values_of(&case, &ran.results));
            let same = |(a, b): (&Number, &Number)| a == b || a.float().is_nan();
            assert!(of_one.iter().zip(&of_top).all(same), "{op} {seed}: {of_one:?} {of_top:?}");
        }
    }
}

pub fn trials() -> Vec<Trial> {
    simulated![
        any_selection_is_right_anywhere,
        orders_of_the_elements_do_not_matter,
        one_element_is_the_extremum,
    ]
}
