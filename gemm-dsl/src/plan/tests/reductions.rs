//! Properties of every plan of a reduction.

use crate::Plan;
use crate::ir::program::Array;
use crate::ir::{Elem, Extent, HostExpr, Kernel, VerifiedProgram};
use crate::plan::{Blocks, ReducePlan, Share};
use crate::spec::{Datum, KeyKind, LaunchForm, Over, ReduceSpec, Spec, Table};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::HashMap;

/// Keys that must match each other, so they are generated together.
const GEOMETRY: [&str; 4] = ["block", "group", "blocks", "run"];

/// Random valid reduction without expressions. For every other key it generates any flag or word,
/// or rarely a number. This includes keys that are added to the table later.
fn plausible() -> impl Strategy<Value = ReduceSpec> {
    let mut data = Vec::new();
    for key in ReduceSpec::KEYS.iter().filter(|key| !GEOMETRY.contains(&key.name)) {
        let (often, datum) = match key.kind {
            KeyKind::Flag => (0.5, Just(Datum::Flag).boxed()),
            KeyKind::Word(words) => {
                (0.6, select(words).prop_map(|word| Datum::Word(word.into())).boxed())
            }
            KeyKind::Number => (0.4, (2..5u32).prop_map(Datum::Number).boxed()),
            KeyKind::NumberOr(word) => {
                let number = (2..5u32).prop_map(Datum::Number);
                (0.4, prop_oneof![number, Just(Datum::Word(word.into()))].boxed())
            }
            // Names and the text of expressions do not affect decisions.
            KeyKind::Name | KeyKind::Size { .. } | KeyKind::Closure(_) => continue,
        };
        let datum = weighted(often, datum);
        data.push(datum.prop_map(|datum| datum.map(|datum| (key.name, datum))).boxed());
    }
    let group = weighted(0.6, select(vec![1, 2, 8, 32, 64, 128]));
    let blocks = weighted(0.5, select(vec![1, 2, 3, 64]));
    let rounds = weighted(0.3, select(vec![1, 2, 5]));
    let drawn = (5..=8u32, group, (blocks, rounds), any::<bool>(), data);
    drawn.prop_filter_map("the spec cannot be repaired", |(block, group, several, whole, data)| {
        let (blocks, rounds) = several;
        let mut spec = ReduceSpec::default().block(1 << block);
        spec.group = if whole { Some(spec.block) } else { group };
        spec.blocks = blocks;
        for (key, datum) in data.into_iter().flatten() {
            assert!(spec.set(key, &datum), "{key}");
        }
        let spec = sound(spec)?;
        Some(rounds.and_then(|rounds| with_runs(&spec, rounds)).unwrap_or(spec))
    })
}

/// Spec with runs of `rounds` rounds instead of `blocks`, if this is valid.
fn with_runs(spec: &ReduceSpec, rounds: u32) -> Option<ReduceSpec> {
    let mut spec = spec.clone();
    spec.blocks = None;
    // The rounds of another launch form may be longer.
    spec.launch = spec.launch.filter(|form| *form != LaunchForm::Tiles);
    let round = u32::try_from(spec.plan().ok()?.elements_per_round()).ok()?;
    let spec = spec.run(rounds.checked_mul(round)?);
    spec.plan().is_ok().then_some(spec)
}

/// Spec without the keys that its faults concern.
fn sound(mut spec: ReduceSpec) -> Option<ReduceSpec> {
    for _ in 0..8 {
        let Err(errors) = spec.plan() else { return Some(spec) };
        errors.iter().filter_map(|error| error.key()).for_each(|key| spec.reset(key));
    }
    None
}

/// Kernels of a plan without their names and head comments, which contain the spec.
fn kernels(plan: &ReducePlan) -> Vec<Kernel> {
    let spec = plan.spec();
    let mut programs = vec![plan.program()];
    if spec.run.is_some() {
        programs.extend([plan.program_of_shard(), plan.program_of_partials()]);
    }
    let unnamed = |kernel: &crate::ir::VerifiedKernel| {
        let mut kernel = kernel.clone().into_inner();
        (kernel.name, kernel.title) = (String::new(), Vec::new());
        kernel
    };
    let sound = |program: Result<VerifiedProgram, _>| {
        program.unwrap_or_else(|error| panic!("`{spec}`: {error}"))
    };
    let programs = programs.into_iter().map(sound);
    programs.flat_map(|p| p.kernels().iter().map(unnamed).collect::<Vec<_>>()).collect()
}

proptest! {
    #![proptest_config(gemm_cases::cases(600))]

    #[test]
    fn a_sound_reduction_has_a_program_of_what_its_plan_says(spec in plausible()) {
        let plan = spec.plan().expect("it was repaired");
        prop_assert!(plan.block().is_power_of_two() && plan.group() <= plan.block());
        prop_assert_eq!(plan.block() % plan.group(), 0);
        let vector = if plan.width() == 1 { plan.vector() } else { 1 };
        let round = u64::from(plan.group()) * u64::from(plan.items()) * u64::from(vector);
        prop_assert_eq!(plan.elements_per_round(), round);
        prop_assert!(plan.types().acc.computes());
        let several = plan.share() != Share::Tiles && plan.blocks() != Blocks::One;
        prop_assert_eq!(plan.has_partials(), several);
        if let Some(run) = spec.run {
            prop_assert_eq!(plan.blocks(), Blocks::Runs(run));
            prop_assert!(u64::from(run) % round == 0 && several);
        }
        let program = plan.program().map_err(|e| TestCaseError::fail(format!("`{spec}`: {e}")))?;
        for kernel in program.kernels() {
            prop_assert_eq!(kernel.geometry.threads(), plan.block(), "`{}`", spec);
        }
        // The partial results of blocks are those that the plan lists.
        if plan.has_partials() {
            let parts: Vec<_> = plan.parts().iter().map(|part| part.elem).collect();
            let temps: Vec<_> = program.temps.iter().map(|temp| temp.elem).collect();
            prop_assert_eq!(&temps[..parts.len()], &parts[..], "`{}`", spec);
        }
        // Each input is bound by its name, then the offsets, and each result by its name.
        let inputs: Vec<&str> = program.inputs.iter().map(|input| &*input.name).collect();
        let mut expected = spec.inputs();
        expected.extend((spec.over == Over::Segments).then_some("offsets"));
        prop_assert_eq!(inputs, expected);
        let results: Vec<_> =
            program.outputs.iter().map(|output| (&*output.name, output.elem)).collect();
        prop_assert_eq!(results, spec.results());
        pieces(&spec, &plan, &program)?;
        // The printed line parses to the spec, and the kernel's name is an identifier.
        prop_assert_eq!(spec.to_string().parse::<ReduceSpec>().ok(), Some(spec));
    }
}

/// Shards are folded into partial results, and these into results, exactly if the spec has runs.
fn pieces(
    spec: &ReduceSpec,
    plan: &ReducePlan,
    program: &VerifiedProgram,
) -> Result<(), TestCaseError> {
    let (Ok(shard), Ok(last), Ok(partials)) =
        (plan.program_of_shard(), plan.program_of_partials(), plan.partials())
    else {
        let faults = plan.program_of_shard().expect_err("none of the three is there").to_string();
        prop_assert!(spec.run.is_none() && faults.contains("whole runs"), "`{}`: {}", spec, faults);
        return Ok(());
    };
    prop_assert!(spec.run.is_some());
    let named = |arrays: &[Array<HostExpr>]| -> Vec<(String, Elem)> {
        arrays.iter().map(|array| (array.name.to_string(), array.elem)).collect()
    };
    let parts: Vec<Elem> = plan.parts().iter().map(|part| part.elem).collect();
    prop_assert_eq!(partials.iter().map(|(_, elem)| *elem).collect::<Vec<_>>(), parts);
    prop_assert_eq!(named(&shard.outputs), partials.clone());
    prop_assert_eq!(named(&last.inputs), partials);
    prop_assert_eq!(&shard.inputs, &program.inputs);
    prop_assert_eq!(&last.outputs, &program.outputs);
    prop_assert_eq!(&last.extents, &program.extents);
    let more = [Extent::FIRST, Extent::TOTAL];
    prop_assert_eq!(&shard.extents[..], &[&program.extents[..], &more].concat());
    Ok(())
}

/// A user's array may have the same name as an array of partial results.
#[test]
fn what_is_left_has_no_name_of_a_users() {
    let names = ["partials", "values", "indices", "counts", "means", "squared", "sums", "first"];
    for name in names {
        for line in ["op: argmax", "op: mean_var", "op: sum, compensated", "op: max"] {
            let line = format!("{line}, run: 256, map: |{name}, n_total| {name} + n_total");
            let plan: ReducePlan = line.parse().expect("a line");
            for program in [plan.program(), plan.program_of_shard(), plan.program_of_partials()] {
                assert!(program.is_ok(), "{line}: {program:?}");
            }
        }
    }
}

#[test]
fn an_array_has_as_many_runs_as_it_takes() {
    let spec = ReduceSpec::default().run(512);
    let runs = [0, 1, 511, 512, 513, 5120, u64::MAX].map(|len| spec.runs(len));
    assert_eq!(runs, [0, 1, 1, 1, 2, 10, 1 << 55].map(Some));
    assert_eq!(ReduceSpec::default().runs(7), None);
    assert_eq!(ReduceSpec::default().run(0).runs(7), None);
}

/// Lists of decisions are complete: plans with equal lists have equal kernels.
#[test]
fn what_is_said_of_a_reduction_determines_it() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let random = std::iter::repeat_with(|| plausible().new_tree(&mut runner));
    let random = random
        .take(gemm_cases::scaled(2500))
        .filter_map(|tree| tree.ok().map(|tree| tree.current()));
    let stages = crate::stages::reduce().into_iter().map(|stage| stage.spec);
    let mut seen = HashMap::new();
    let mut faults = Vec::new();
    // A spec without one of its keys is similar enough to have the same decisions.
    let with_near = |spec: ReduceSpec| {
        let near = ReduceSpec::KEYS.iter().map({
            let spec = spec.clone();
            move |key| {
                let mut near = spec.clone();
                near.reset(key.name);
                near
            }
        });
        near.chain([spec]).filter(|spec| spec.plan().is_ok()).collect::<Vec<_>>()
    };
    for spec in random.chain(stages).flat_map(with_near) {
        let plan = spec.plan().expect("filtered");
        let decisions = plan.decisions();
        for (i, decision) in decisions.iter().enumerate() {
            assert!(!decision.value.is_empty(), "{decision:?}");
            assert!(decisions[..i].iter().all(|other| other.name != decision.name), "{decision:?}");
        }
        // Compared as text, because NaN is not equal to itself.
        let own = format!("{:?}", kernels(&plan));
        let (other, kernels) = seen.entry(decisions).or_insert_with(|| (spec.clone(), own.clone()));
        if *kernels != own {
            faults.push(format!("the same is said of `{other}` and of `{spec}`"));
        }
    }
    assert!(seen.len() > gemm_cases::scaled(300), "{}", seen.len());
    faults.dedup();
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        seen.len(),
        faults[..faults.len().min(12)].join("\n")
    );
}
