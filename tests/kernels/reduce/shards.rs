//! Reductions in which each block reduces a run of fixed length (key `run`). An array that is
//! sharded between runs has the bits of the whole array.

use crate::reduce::each::{each, same};
use crate::reduce::index::bound;
use gemm_dsl::ir::contract::{Need, Subject};
use gemm_dsl::ir::{Extent, Variant};
use gemm_dsl::spec::{AccType, DataType, LaunchForm, Op, Over, ReduceSpec};
use gemm_dsl::{Plan, SpecErrors};
use gemm_oracle::random::Random;
use gemm_tests::arbitrary;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::shards::{Shards, cut};
use gemm_tests::fold::simulate::{Simulator, run};
use gemm_tests::fold::{Case, Shape, sample};
use libtest_mimic::Trial;
use proptest::prelude::*;

/// Random length: zero, or close to a multiple of the run length.
fn length(run: usize, random: &mut Random) -> usize {
    let mut below = |n: usize| (random.bits() % n as u64) as usize;
    // Bounds the number of elements independently of the run length.
    let most = (6000 / run).clamp(2, 40);
    match below(8) {
        0 => below(2),
        1 | 2 => below(most) * run,
        3 => below(most) * run + 1,
        4 => (below(most) * run).saturating_sub(1),
        _ => below(most * run),
    }
}

fn spec(line: &str) -> ReduceSpec {
    line.parse().unwrap_or_else(|faults| panic!("{line}: {faults}"))
}

/// Random reduction whose blocks reduce runs, with the number of elements per run.
fn of_runs() -> impl Strategy<Value = (ReduceSpec, usize)> {
    let drawn = (arbitrary::plain_reduce(), 1..6u32);
    drawn.prop_filter_map("its blocks fold no runs, or long ones", |(spec, rounds)| {
        let spec = arbitrary::with_runs(&spec, rounds)?;
        let elements = spec.run.filter(|run| *run <= 4096)?;
        Some((spec, elements as usize))
    })
}

proptest! {
    #![proptest_config(gemm_cases::cases(500))]

    /// A reduction of any shape has the same bits as a whole, in both launch forms, and from any
    /// shards in any layout.
    fn any_cut_gives_the_bits_of_the_whole((spec, elements) in of_runs(), seed: u64) {
        let mut random = Random::new(seed);
        let case = sample::case_of(&spec, &mut random, |random| {
            let len = length(elements, random);
            sample::shape_of(spec.over, len, random)
        });
        let Some(case) = case else { return Ok(()) };
        let machine = Simulator::default();
        let whole = run(&machine, &case, &Placement::random(&mut random));
        let whole = whole.map_err(TestCaseError::fail)?.results;
        let forms = sample::in_both_forms(&case);
        let forms = forms.ok_or_else(|| TestCaseError::fail(format!("`{spec}` has both forms")))?;
        for form in forms {
            let ran = run(&machine, &form, &Placement::random(&mut random));
            prop_assert_eq!(&ran.map_err(TestCaseError::fail)?.results, &whole, "`{}`", form.spec);
        }
        let shards = Shards::new(&case.spec).map_err(TestCaseError::fail)?;
        let Shape::Tensor { len, .. } = case.shape else { unreachable!("segments have no runs") };
        let mut partials = None;
        for count in [1, 2 + seed as usize % 5] {
            let ranges = cut(len, elements, count, &mut random);
            let folded = shards.fold(&case, &ranges, || Placement::random(&mut random));
            let folded = folded.map_err(|wrong| {
                TestCaseError::fail(format!("`{}` {:?}: {wrong}", case.spec, case.shape))
            })?;
            prop_assert_eq!(&folded.results, &whole, "`{}` of {:?}", case.spec, ranges);
            let partials = partials.get_or_insert_with(|| folded.partials.clone());
            prop_assert_eq!(&folded.partials, partials, "`{}` of {:?}", case.spec, ranges);
        }
    }
}

/// Spec of an operator and a type without a `map`. None if there is no such spec: `f64` has no
/// `logsumexp`.
fn of(over: Over, op: Op, element: DataType) -> Option<ReduceSpec> {
    let spec = ReduceSpec::default().over(over).op(op).element(element).block(64);
    let float = spec.clone().acc(AccType::F32);
    [spec, float].into_iter().find(|spec| spec.plan().is_ok())
}

/// Tests every operator of every type over each axis that can be sharded. Kernels read aligned
/// shards in 16-byte vectors and other shards in single elements. Both have the bits of the whole.
fn shards_of_vectors_and_of_elements_leave_the_same() {
    each(|n, op, element| {
        for over in [Over::All, Over::Rows, Over::Columns, Over::Middle] {
            let Some(spec) = of(over, op, element) else { return Ok(()) };
            let mut random = Random::new(n as u64 + 7000);
            let mut spec = spec.float4(true);
            spec.group = match over {
                Over::All => None,
                Over::Rows => Some(64),
                _ => Some([1, 4, 32][n % 3]),
            };
            let Some(spec) = arbitrary::with_runs(&spec, 1 + n as u32 % 2) else {
                return Err(format!("`{spec}` has no runs"));
            };
            let form = [LaunchForm::Passes, LaunchForm::Once][n % 2];
            let spec = spec.launch(form);
            let elements = spec.run.unwrap_or(1) as usize;
            // Rows and columns of whole vectors.
            let (outer, inner) = match over {
                Over::All => (1, 1),
                Over::Rows => (2, 1),
                Over::Columns => (1, 32),
                _ => (2, 16),
            };
            let shape = Shape::Tensor { outer, len: 2 * elements + elements / 2, inner };
            let Shape::Tensor { len, .. } = shape else { continue };
            let case = Case::new(&spec, shape, random.bits());
            let whole = run(&Simulator::default(), &case, &Placement::PACKED)?.results;
            let shards = Shards::new(&spec)?;
            let ranges = [0..elements, elements..elements, elements..len, len..len];
            let aligned = shards.fold(&case, &ranges, || Placement::PACKED)?;
            let unaligned =
                shards.fold(&case, &ranges, || Placement { offset: 1, ..Placement::PACKED })?;
            same(format!("`{spec}`, by vectors"), &aligned.results, &whole)?;
            same(format!("`{spec}`, by elements"), &unaligned.results, &whole)?;
            same(format!("`{spec}`, partials"), &aligned.partials, &unaligned.partials)?;
            same(&spec, &aligned.variants[..], &[Variant::Vector; 4][..])?;
            same(&spec, &unaligned.variants[..], &[Variant::Scalar; 4][..])?;
        }
        Ok(())
    });
}

/// An empty array has no runs. If a declared identity changes other values, all forms still combine
/// it the same number of times.
fn forms_and_shards_fold_what_is_missing_alike() {
    let lines = [
        "fold: |a, b| a + b, identity: 1.0, block: 64, run: 128",
        "fold: |a, b| a * 2.0 + b, identity: 3.0, over: rows, block: 32, run: 32",
        "fold: |a, b| a - b, identity: 1.0, over: columns, block: 32, group: 4, run: 8",
        "fold: |a, b| a * b, identity: 0.5, over: middle, block: 32, group: 1, run: 3, items: 3",
    ];
    for line in lines {
        let [passes, once] = ["", ", launch: once"].map(|form| spec(&format!("{line}{form}")));
        for len in [0, 1, 3, 128, 300] {
            let outer = if matches!(passes.over, Over::Rows | Over::Middle) { 3 } else { 1 };
            let inner = if matches!(passes.over, Over::Columns | Over::Middle) { 5 } else { 1 };
            let shape = Shape::Tensor { outer, len, inner };
            let elements: Vec<u64> = (0..outer * len * inner)
                .map(|n| f32::to_bits(n as f32 * 0.37 - 20.0).into())
                .collect();
            let case = |spec: &ReduceSpec| Case {
                spec: spec.clone(),
                kind: gemm_oracle::fold::Kind::Sum,
                map: None,
                finish: None,
                shape: shape.clone(),
                inputs: vec![elements.clone()],
            };
            let bits = |spec: &ReduceSpec| {
                let mut images = case(spec).images(&Placement::PACKED);
                let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
                gemm_tests::fold::simulate::simulate(&program, &mut images).expect("it runs");
                images.results().expect("nothing beside them")
            };
            let whole = bits(&passes);
            assert_eq!(bits(&once), whole, "`{once}` of {len}");
            for spec in [&passes, &once] {
                let shards = Shards::new(spec).expect("it has runs");
                let run = spec.run.expect("it has runs") as usize;
                let ranges = cut(len, run, 3, &mut Random::new(len as u64));
                let folded = shards.fold(&case(spec), &ranges, || Placement::PACKED);
                let folded = folded.unwrap_or_else(|wrong| panic!("`{spec}`: {wrong}"));
                assert_eq!(folded.results, whole, "`{spec}` of {len}");
                assert_eq!(folded.partials[0].is_empty(), len == 0, "`{spec}` of {len}");
            }
        }
    }
}

/// The last pass loops over many partial results.
fn many_runs_are_right() {
    let lines = [
        "over: columns, block: 32, group: 1, run: 1, op: argmax",
        "block: 32, run: 32, op: mean_var",
        "over: rows, block: 32, run: 32, op: sum, type: i32, launch: once",
    ];
    for line in lines {
        let spec = spec(line);
        let len = 2500 * spec.run.expect("runs") as usize + 1;
        let case = Case::new(&spec, Shape::Tensor { outer: 1, len, inner: 1 }, 3);
        let whole = run(&Simulator::default(), &case, &Placement::PACKED);
        let whole = whole.unwrap_or_else(|wrong| panic!("{wrong}")).results;
        let ranges = cut(len, spec.run.expect("runs") as usize, 7, &mut Random::new(4));
        let folded = Shards::new(&spec).and_then(|s| s.fold(&case, &ranges, || Placement::PACKED));
        let folded = folded.unwrap_or_else(|wrong| panic!("`{spec}`: {wrong}"));
        assert_eq!(folded.results, whole, "`{spec}`");
    }
}

/// Shards must start and end between runs, and be inside the whole array.
fn a_shard_that_is_cut_elsewhere_is_refused() {
    for line in ["block: 64, run: 256", "over: middle, group: 2, run: 256", "float4, run: 1024"] {
        let spec = spec(line);
        let run = u64::from(spec.run.expect("runs"));
        let program = spec.plan().and_then(|plan| plan.program_of_shard()).expect("it has runs");
        let told = |first: u64, len: u64, total: u64| {
            let shard = bound(&program, |extent| match *extent {
                Extent::FIRST => first,
                Extent::LENGTH => len,
                Extent::TOTAL => total,
                _ => 16,
            });
            shard.map_err(|unmet| (unmet.subject.clone(), unmet.need.clone(), unmet.value))
        };
        let fault =
            |extent, need, value: u64| Err((Subject::Extent(extent), need, i128::from(value)));
        let total = 10 * run + 7;
        for (first, len) in [(0, run), (0, total), (3 * run, 2 * run), (10 * run, 7), (run, 0)] {
            assert_eq!(told(first, len, total), Ok(()), "{line}: {first} {len}");
        }
        // An empty shard may be anywhere inside.
        assert_eq!(told(total, 0, total), Ok(()), "{line}");
        assert_eq!(told(3, 0, total), Ok(()), "{line}");
        let cut = Need::Cut { of: run };
        assert_eq!(told(run + 1, run, total), fault(Extent::FIRST, cut.clone(), run + 1));
        assert_eq!(told(1, total - 1, total), fault(Extent::FIRST, cut.clone(), 1));
        assert_eq!(told(run, run - 1, total), fault(Extent::LENGTH, cut.clone(), run - 1));
        assert_eq!(told(0, total - 1, total), fault(Extent::LENGTH, cut, total - 1));
        let least = Need::AtLeast(total + run);
        assert_eq!(told(total, run, total), fault(Extent::TOTAL, least, total));
        let all = Need::AtLeast(u64::MAX);
        assert_eq!(told(u64::MAX - 5, run, total), fault(Extent::TOTAL, all, total));
    }
}

/// 32-bit indices must suffice for the whole.
fn a_shard_of_a_whole_with_too_many_indices_is_refused() {
    const MOST: u64 = (1 << 32) - 2;
    for op in [Op::Argmax, Op::MeanVar] {
        let spec = spec("block: 64, run: 1048576").op(op);
        let program = spec.plan().and_then(|plan| plan.program_of_shard()).expect("it has runs");
        let told = |total: u64| {
            bound(&program, |extent| match *extent {
                Extent::TOTAL => total,
                Extent::FIRST => 0,
                _ => 1 << 20,
            })
        };
        assert_eq!(told(MOST), Ok(()));
        let unmet = told(MOST + 1).expect_err("too many");
        assert_eq!(unmet.subject, Subject::Extent(Extent::TOTAL));
        assert_eq!((unmet.need, unmet.value), (Need::AtMost(MOST), i128::from(MOST) + 1));
    }
}

/// A launch has one block per run. The maximum number of blocks in a grid is accepted, and one more
/// run is refused.
fn a_launch_has_no_more_runs_than_a_grid_has_blocks() {
    let lines = [
        ("block: 32, run: 64", 0, i32::MAX as u64),
        ("block: 32, run: 64, launch: once", 0, i32::MAX as u64),
        ("over: rows, block: 32, run: 64", 1, 65_535),
        ("over: columns, group: 4, run: 64, launch: once", 1, 65_535),
        ("over: middle, group: 4, run: 64", 1, 65_535),
    ];
    for (line, axis, most) in lines {
        let spec = spec(line);
        let program = spec.plan().and_then(|plan| plan.program()).expect("a sound spec");
        let shard = spec.plan().and_then(|plan| plan.program_of_shard()).expect("it has runs");
        let of = |len: u64| {
            move |extent: &Extent| match *extent {
                Extent::LENGTH => len,
                Extent::FIRST => 0,
                // The shard belongs to a larger array.
                Extent::TOTAL => 1 << 50,
                _ => 1,
            }
        };
        for program in [&program, &shard] {
            assert_eq!(bound(program, of(most * 64)), Ok(()), "{line}");
            let unmet = bound(program, of((most + 1) * 64)).expect_err("too many");
            assert_eq!(unmet.subject, Subject::Blocks { axis }, "{line}: {unmet}");
            assert_eq!(unmet.need, Need::AtMost(most), "{line}");
            assert!(unmet.to_string().contains("longer runs"), "{unmet}");
        }
        // The number of partial results of shards has no limit.
        let last = spec.plan().and_then(|plan| plan.program_of_partials()).expect("it has runs");
        assert_eq!(bound(&last, of(most * 640)), Ok(()), "{line}");
    }
}

fn a_spec_without_runs_says_what_would_have_them() {
    let told = |line: &str| {
        let plan = spec(line).plan().expect("a sound spec");
        let faults: [Option<SpecErrors>; 3] = [
            plan.program_of_shard().err(),
            plan.program_of_partials().err(),
            plan.partials().err(),
        ];
        let [shard, last, partials] = faults.map(|faults| faults.map(|faults| faults.to_string()));
        assert_eq!(shard, last);
        assert_eq!(shard, partials);
        shard.unwrap_or_else(|| panic!("{line} has runs"))
    };
    let why = "shards give the same bits only if each shard has whole runs, but ";
    for line in ["", "blocks: 3, type: f64", "over: rows, group: 8, items: 3", "over: columns"] {
        let text = told(line);
        let rest = text.strip_prefix(why).unwrap_or_else(|| panic!("{text}"));
        let (_, example) = rest.split_once("such as `run: ").unwrap_or_else(|| panic!("{text}"));
        let run: u32 = example.trim_end_matches('`').parse().expect("a number");
        let round = spec(line).plan().expect("a sound spec").elements_per_round();
        assert!(run > 0 && u64::from(run) % round == 0, "{text}");
    }
    let text = told("over: segments");
    assert!(
        text.starts_with(why) && text.ends_with("cut the array between segments instead"),
        "{text}"
    );
}

pub fn trials() -> Vec<Trial> {
    simulated![
        any_cut_gives_the_bits_of_the_whole,
        shards_of_vectors_and_of_elements_leave_the_same,
        forms_and_shards_fold_what_is_missing_alike,
        many_runs_are_right,
        a_shard_that_is_cut_elsewhere_is_refused,
        a_shard_of_a_whole_with_too_many_indices_is_refused,
        a_launch_has_no_more_runs_than_a_grid_has_blocks,
        a_spec_without_runs_says_what_would_have_them,
    ]
}
