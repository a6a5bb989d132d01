//! Reductions of every kind on the GPU. Results are correct, have the simulator's bits, and have
//! the same bits in both launch forms: several passes, or a single launch.

use crate::{on_gpu, own_gpu, trial};
use gemm_dsl::ir::Elem;
use gemm_dsl::spec::{AccType, DataType, LaunchForm, Op, Over, ReduceSpec};
use gemm_oracle::fold::Number;
use gemm_oracle::random::Random;
use gemm_runtime::Device;
use gemm_tests::fold::device::OnDevice;
use gemm_tests::fold::placement::Placement;
use gemm_tests::fold::sample::{cases, has_bits_of_both, in_both_forms};
use gemm_tests::fold::simulate::{Machine, Ran, run};
use gemm_tests::fold::{Case, Shape};
use gemm_tests::simulator;
use libtest_mimic::{Failed, Trial};

/// Cases of each operator over each kind of axis.
const CASES: usize = 6;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for &op in Op::ALL {
        trials.extend(Over::ALL.iter().map(|&over| {
            trial(format!("reduce_any::{op}::{over}"), move |gpu| like_the_simulator(gpu, op, over))
        }));
        trials.push(trial(format!("reduce_any::forms::{op}"), move |gpu| forms(gpu, op)));
    }
    trials.push(on_gpu("reduce_any::tickets_begin_at_zero", tickets_begin_at_zero));
    trials
}

/// Random cases are correct, write only the results, and have the simulator's bits in both launch
/// forms.
fn like_the_simulator(gpu: &Device, op: Op, over: Over) -> Result<(), Failed> {
    let simulator = Device::simulator();
    for (case, placement) in cases(op, over, CASES) {
        let ran = run(&OnDevice(gpu), &case, &placement)?;
        let simulated = run(&OnDevice(&simulator), &case, &placement)?;
        if ran.variants != simulated.variants {
            let what = (&ran.variants, &simulated.variants);
            return Err(format!("`{}` ran as {what:?}", case.spec).into());
        }
        same(&case, ("on the GPU", &ran), ("on the simulator", &simulated))?;
        if let Some([passes, once]) = in_both_forms(&case) {
            let by_passes = run(&OnDevice(gpu), &passes, &placement)?;
            let at_once = run(&OnDevice(gpu), &once, &placement)?;
            same(&once, ("", &at_once), ("by passes", &by_passes))?;
            if has_bits_of_both(&case) {
                same(&case, ("as it is", &ran), ("by passes", &by_passes))?;
            }
        }
    }
    Ok(())
}

/// Fails unless both runs have the same bits. Each has a description for the message. The payload
/// of a NaN that is converted from `f64` is ignored, because it is unspecified.
fn same(
    case: &Case,
    (here, found): (&str, &Ran),
    (there, expected): (&str, &Ran),
) -> Result<(), Failed> {
    let spec = &case.spec;
    let is_open = [case.elem(), spec.acc_elem()].contains(&Elem::F64);
    for (n, (name, elem)) in spec.results().into_iter().enumerate() {
        let (found, expected) = (&found.results[n], &expected.results[n]);
        let is_nan = |bits: u64| Number::of_bits(elem, bits).float().is_nan();
        let agree = |(found, expected): (&u64, &u64)| {
            found == expected || (is_open && is_nan(*found) && is_nan(*expected))
        };
        let differs = found.iter().zip(expected).position(|pair| !agree(pair));
        if let Some(at) = differs {
            let shape = &case.shape;
            let (found, expected) = (found[at], expected[at]);
            return Err(format!(
                "`{spec}` of {shape:?}: {name} {at} is {found:#x} {here}, {expected:#x} {there}"
            )
            .into());
        }
        if found.len() != expected.len() {
            return Err(format!("`{spec}`: {} and {} results", found.len(), expected.len()).into());
        }
    }
    Ok(())
}

/// Spec of an operator and a type without a `map`. It accumulates in `f32` if the operator requires
/// floats. None if there is no such spec: `f64` has no logarithm.
fn plain(op: Op, element: DataType) -> Option<ReduceSpec> {
    let spec = ReduceSpec::default().op(op).element(element);
    [spec.clone(), spec.acc(AccType::F32)].into_iter().find(|spec| spec.plan().is_ok())
}

/// Tests arrays, rows and columns that many blocks reduce together, in both launch forms. Each
/// operator is tested with a third of the types.
fn forms(gpu: &Device, op: Op) -> Result<(), Failed> {
    let nth = Op::ALL.iter().position(|other| *other == op).unwrap_or_default();
    for (n, &element) in DataType::ALL.iter().enumerate().skip(nth % 3).step_by(3) {
        let Some(spec) = plain(op, element) else { continue };
        let spec = spec.block(128).items(2);
        let shapes = [
            (
                spec.clone().blocks(100).float4(true),
                Shape::Tensor { outer: 1, len: 100_003, inner: 1 },
            ),
            (
                spec.clone().over(Over::Rows).group(128).blocks(9).shuffle(true),
                Shape::Tensor { outer: 5, len: 20_001, inner: 1 },
            ),
            (
                spec.over(Over::Columns).group(8).blocks(7),
                Shape::Tensor { outer: 1, len: 3_001, inner: 37 },
            ),
        ];
        for (spec, shape) in shapes {
            let mut random = Random::new((nth * 100 + n) as u64);
            let placement = Placement::random(&mut random);
            let passes = Case::new(&spec, shape.clone(), random.bits());
            let mut once = passes.clone();
            once.spec.launch = Some(LaunchForm::Once);
            let by_passes = run(&OnDevice(gpu), &passes, &placement)?;
            let at_once = run(&OnDevice(gpu), &once, &placement)?;
            same(&once, ("", &at_once), ("by passes", &by_passes))?;
            let launches = (by_passes.variants.len(), at_once.variants.len());
            if launches != (2, 1) {
                return Err(format!("`{}` took {launches:?} launches", once.spec).into());
            }
        }
    }
    Ok(())
}

/// Kernels with 1 to 600 tickets, and kernels with several passes, whose partial results use the
/// same memory.
const LINES: [(&str, Shape); 6] = [
    ("blocks: 40, block: 64, launch: once", Shape::Tensor { outer: 1, len: 10_000, inner: 1 }),
    (
        "op: argmax, index: u64, over: rows, block: 64, group: 64, blocks: 3, launch: once",
        Shape::Tensor { outer: 600, len: 200, inner: 1 },
    ),
    (
        "op: mean_var, over: columns, group: 4, blocks: 5, launch: once",
        Shape::Tensor { outer: 1, len: 400, inner: 70 },
    ),
    (
        "op: logsumexp, over: middle, group: 8, blocks: 2, launch: once",
        Shape::Tensor { outer: 3, len: 150, inner: 33 },
    ),
    (
        "type: i8, acc: i64, blocks: 64, block: 32, items: 3",
        Shape::Tensor { outer: 1, len: 9_999, inner: 1 },
    ),
    ("block: 32", Shape::Tensor { outer: 1, len: 4_000, inner: 1 }),
];

/// Each kernel runs twice in a row, and after every other kernel. Its tickets are always in the
/// initial state.
fn tickets_begin_at_zero() -> Result<(), Failed> {
    // The stream and the scratch memory are separate, so that no other launch uses them in between.
    let gpu = own_gpu()?;
    let machine = OnDevice(&gpu);
    let mut all = Vec::new();
    for (n, (line, shape)) in LINES.into_iter().enumerate() {
        let case = Case::new(&line.parse()?, shape, n as u64);
        let expected = run(&OnDevice(&simulator()), &case, &Placement::PACKED)?;
        all.push((case, expected));
    }
    let again = |machine: &dyn Machine, (case, expected): &(Case, Ran)| -> Result<(), Failed> {
        let mut images = case.images(&Placement::PACKED);
        let variants = machine.launch(case, &mut images)?;
        let ran = Ran { results: images.results()?, variants };
        same(case, ("on the GPU", &ran), ("on the simulator", expected))
    };
    for before in &all {
        for after in &all {
            for case in [before, after, after] {
                again(&machine, case)?;
            }
        }
    }
    Ok(())
}
