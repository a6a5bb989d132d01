//! Launches of hand-built kernels in the simulator.

mod kept;
mod programs;

use super::launch;
use crate::backend::Place;
use crate::backend::gpu::GpuAddress;
use crate::backend::simulator::Simulator;
use crate::device::{DeviceBackend, On};
use crate::error::Error;
use crate::error::Result;
use crate::kernel_arg::Address;
use crate::program::CachedProgram;
use crate::shape::Shape;
use crate::{Buffer, Device, LaunchReport};
use gemm_dsl::Plan;
use gemm_dsl::ir::contract::meet;
use gemm_dsl::ir::contract::{Need, Subject};
use gemm_dsl::ir::program::Step;
use gemm_dsl::ir::{Elem, Extent, Operand, Requirement, Ty, Variant, VerifiedProgram};
use gemm_dsl::spec::SgemmSpec;
use programs::{extents_only, fold, high_word, rows_of_three};
use std::sync::Arc;

type BoundArray = super::BoundArray<'static, Simulator>;

fn one(address: gemm_sim::Buffer, len: u64) -> Place<'static, Simulator> {
    Place::One { address, len }
}

fn on(device: &Device) -> On<'_, Simulator> {
    match device.backend() {
        DeviceBackend::Simulator(backend) => On { device, backend },
        DeviceBackend::Gpu(_) => panic!("the device is a simulator"),
    }
}

fn address(buffer: &Buffer, start: usize, len: usize) -> Option<gemm_sim::Buffer> {
    buffer.address::<Simulator>()?.part(start as u64, len as u64)
}

fn run(
    device: &Device,
    program: VerifiedProgram,
    input: BoundArray,
    extent: u64,
) -> Result<(LaunchReport, Buffer)> {
    let output = device.alloc(1)?;
    let name = format!("{program:?}");
    let program = device.programs().get_or("test", &name, || Ok(program))?;
    let bound = BoundArray::vector("output", one(address(&output, 0, 1).expect("inside"), 1), 1);
    let launched = launch_on(device, &program, [input], bound, &[extent])?;
    Ok((launched, output))
}

/// Launches a program with one output; arrays and extents are in the program's order.
fn launch_on<const N: usize>(
    device: &Device,
    program: &Arc<CachedProgram>,
    inputs: [BoundArray; N],
    output: BoundArray,
    extents: &[u64],
) -> Result<LaunchReport> {
    let extents = program.program().extents.iter().copied().zip(extents.iter().copied());
    let values = program.program().bind(&extents.collect::<Vec<_>>(), &[])?;
    let inputs = inputs.into_iter().enumerate().map(|(n, array)| (Operand::Input(n), array));
    let arrays: Vec<_> = inputs.chain([(Operand::Output(0), output)]).collect();
    launch(on(device), program, &values, &arrays)
}

/// Violation of the contract for which a launch was rejected.
fn unmet(outcome: Result<(LaunchReport, Buffer)>) -> (Subject, Need, i128) {
    match outcome {
        Err(Error::Unmet(unmet)) => (unmet.subject, unmet.need, unmet.value),
        other => panic!("an unmet requirement was expected: {other:?}"),
    }
}

fn vector(buffer: &Buffer, start: usize) -> BoundArray {
    let len = buffer.len() - start;
    let place = address(buffer, start, len).expect("inside");
    BoundArray::vector("input", one(place, len as u64), len as u64)
}

#[test]
fn a_fold_takes_as_many_passes_as_it_needs() {
    let device = Device::simulator();
    for (n, passes) in [(0, 1), (1, 1), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3)] {
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let input = device.upload(&values).expect("room");
        let program = fold(&[Variant::Only]);
        let (launched, output) =
            run(&device, program, vector(&input, 0), n).expect("a sound launch");
        assert_eq!(launched.passes(), passes, "{n} elements");
        let grids: Vec<_> = launched.steps().map(|step| step.grid()[0]).collect();
        let expected = [4, 16, 64].map(|per| (n as u32).div_ceil(per).max(1));
        assert_eq!(grids, expected[..passes], "{n} elements");
        assert!(launched.steps().all(|s| s.kernel() == "sums" && s.counters().is_some()));
        let total: f32 = values.iter().sum();
        assert_eq!(device.download(&output).expect("one value"), [total], "{n} elements");
    }
}

#[test]
fn the_first_variant_whose_requirements_are_met_runs() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 24]).expect("room");
    for (start, variant) in
        [(0, Variant::Vector), (1, Variant::Scalar), (3, Variant::Scalar), (4, Variant::Vector)]
    {
        let program = fold(&[Variant::Vector, Variant::Scalar]);
        let length = 24 - start as u64;
        let (launched, output) =
            run(&device, program, vector(&input, start), length).expect("sound");
        assert_eq!(launched.variant(), variant, "from element {start}");
        // Partial results of a pass are aligned for the next one.
        let later: Vec<_> = launched.steps().skip(1).map(|step| step.variant()).collect();
        assert_eq!(later, [Variant::Vector; 2]);
        assert_eq!(device.download(&output).expect("one value"), [length as f32]);
    }
}

#[test]
fn unaligned_input_without_a_fallback_is_refused() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program = fold(&[Variant::Vector]);
    let error = run(&device, program, vector(&input, 1), 7).expect_err("unmet");
    assert!(matches!(error, Error::Unmet { .. }), "{error}");
    assert!(error.to_string().contains("`input` aligned to 16 bytes"), "{error}");
}

/// The last kernel has the weakest requirements, so arguments that meet these can be launched.
#[test]
fn unmet_requirements_of_the_last_kernel_are_reported() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let at_least = |min| {
        let program = extents_only(Ty::I32, |k, scalar| {
            k.require(Requirement::Range { scalar, min, max: 100 });
        });
        program.into_inner()
    };
    let of = |m| {
        let mut program = at_least(8);
        let last = program.kernel(at_least(4).kernels.remove(0));
        let Step::Launch(launch) = &mut program.steps[0] else { panic!("one launch") };
        launch.choose.to_mut().push(last);
        let program = VerifiedProgram::new(program).expect("a sound program");
        run(&device, program, vector(&input, 0), m)
    };
    assert!(of(4).is_ok() && of(8).is_ok());
    assert_eq!(unmet(of(3)), (Subject::Extent(Extent::M), Need::AtLeast(4), 3));
}

#[test]
fn a_multiple_is_demanded_with_its_arithmetic() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program =
        || extents_only(Ty::I32, |k, m| k.require(Requirement::Multiple { scalar: m, of: 4 }));
    run(&device, program(), vector(&input, 0), 8).expect("a multiple");
    run(&device, program(), vector(&input, 0), 0).expect("zero is a multiple");
    let error = run(&device, program(), vector(&input, 0), 7).expect_err("unmet");
    assert!(error.to_string().contains("it is 7 = 1·4 + 3. Pad the operands"), "{error}");
}

#[test]
fn a_range_is_demanded() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program = || {
        extents_only(Ty::I32, |k, m| k.require(Requirement::Range { scalar: m, min: 2, max: 4 }))
    };
    let of = |m| run(&device, program(), vector(&input, 0), m);
    let subject = || Subject::Extent(Extent::M);
    assert!(of(2).is_ok() && of(4).is_ok());
    assert_eq!(unmet(of(1)), (subject(), Need::AtLeast(2), 1));
    assert_eq!(unmet(of(5)), (subject(), Need::AtMost(4), 5));
    let words = |m| of(m).expect_err("unmet").to_string();
    assert!(words(5).contains("m to be at most 4, but it is 5. Split"), "{}", words(5));
    assert!(!words(1).contains("Split"), "{}", words(1));
}

#[test]
fn extents_beyond_their_type_and_grids_beyond_the_limit_are_refused() {
    let device = Device::simulator();
    let input = device.upload(&[1.0]).expect("room");
    // The elements do not matter: the sizes are checked before any element is accessed.
    let long = || {
        let place = one(address(&input, 0, 1).expect("inside"), u64::MAX);
        BoundArray::vector("input", place, u64::MAX)
    };
    let narrow = extents_only(Ty::I32, |_, _| ());
    let limit = Need::AtMost(i32::MAX as u64);
    let found = unmet(run(&device, narrow, long(), 1 << 31));
    assert_eq!(found, (Subject::Extent(Extent::M), limit.clone(), 1 << 31));
    let wide = extents_only(Ty::U64, |_, _| ());
    let outcome = run(&device, wide, long(), 1 << 31);
    let text = outcome.as_ref().expect_err("too large").to_string();
    assert!(text.contains("these extents need 2147483648. Use larger tiles"), "{text}");
    assert_eq!(unmet(outcome), (Subject::Blocks { axis: 0 }, limit, 1 << 31));
}

#[test]
fn an_extent_of_64_bits_reaches_the_kernel_whole() {
    let device = Device::simulator();
    let input = device.upload(&[]).expect("room");
    // There may be any number of rows without elements.
    for (m, high) in [(7, 0.0), ((5 << 32) + 7, 5.0)] {
        let shape = Shape { start: 0, rows: m, cols: 0, row_stride: 0, col_stride: 1, batch: None };
        let none = BoundArray::matrix("a", one(address(&input, 0, 0).expect("inside"), 0), shape);
        let (_, output) = run(&device, high_word(), none, m as u64).expect("sound");
        assert_eq!(device.download(&output).expect("one value"), [high]);
    }
}

#[test]
fn nothing_is_launched_where_the_grid_is_empty() {
    let device = Device::simulator();
    let input = device.upload(&[]).expect("room");
    let program = extents_only(Ty::I32, |_, _| ());
    let (launched, _) = run(&device, program, vector(&input, 0), 0).expect("sound");
    assert_eq!(launched.passes(), 0);
    assert!(launched.counters().is_none());
}

/// Matrix with rows of three elements.
fn matrix(place: gemm_sim::Buffer, len: u64, rows: u64, stride: u64) -> BoundArray {
    let (rows, row_stride) = (rows as usize, stride as usize);
    BoundArray::matrix(
        "a",
        one(place, len),
        Shape { start: 0, rows, cols: 3, row_stride, col_stride: 1, batch: None },
    )
}

#[test]
fn padded_rows_need_a_kernel_that_takes_strides() {
    let device = Device::simulator();
    let values: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let input = device.upload(&values).expect("room");
    let of = |pitched, rows, len: usize, stride| {
        let place = address(&input, 0, len).expect("inside");
        let bound = matrix(place, len as u64, rows, stride);
        run(&device, rows_of_three(pitched), bound, rows)
    };
    let value = |outcome: Result<(LaunchReport, Buffer)>| {
        device.download(&outcome.expect("sound").1).expect("one value")
    };
    let refused = of(false, 2, 8, 4);
    let text = refused.as_ref().expect_err("no stride").to_string();
    assert!(text.contains("but the stride is 4. Add `pitched`"), "{text}");
    let (subject, need, found) = unmet(refused);
    assert!(matches!(subject, Subject::Stride { name, dim: 0, .. } if name == "a"));
    assert_eq!((need, found), (Need::Exactly(3), 4));
    // The row stride of a single row does not matter.
    assert_eq!(value(of(false, 1, 3, 4)), [2.0]);
    assert_eq!(value(of(true, 2, 8, 4)), [6.0]);
}

/// The last element is (rows - 1) * stride + 2. A view that ends there suffices; one element less
/// does not.
#[test]
fn every_element_within_the_extents_lies_in_the_view() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 64]).expect("room");
    for (rows, stride) in [(1, 3), (2, 3), (2, 4), (5, 7), (4, 20)] {
        let span = (rows - 1) * stride + 3;
        let of = |len: u64| {
            let place = address(&input, 0, len as usize).expect("inside");
            let bound = matrix(place, len, rows, stride);
            run(&device, rows_of_three(true), bound, rows)
        };
        assert!(of(span).is_ok(), "{rows} rows {stride} apart");
        let (subject, need, found) = unmet(of(span - 1));
        assert_eq!((need, found), (Need::Elements(span), i128::from(span) - 1));
        assert!(matches!(subject, Subject::Array { name, .. } if name == "a"));
    }
    let none = matrix(address(&input, 0, 0).expect("inside"), 0, 0, 3);
    let (_, need, _) = unmet(run(&device, rows_of_three(true), none, 1));
    assert_eq!(need, Need::Elements(3));
}

#[test]
fn too_little_memory_between_passes_is_noticed() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 60]).expect("room");
    let mut program = fold(&[Variant::Only]).into_inner();
    program.temps[0].dims = vec![14u64.into()].into();
    let program = VerifiedProgram::new(program).expect("sound as far as one can see");
    let (subject, need, found) = unmet(run(&device, program, vector(&input, 0), 60));
    assert!(matches!(subject, Subject::Array { name, .. } if name == "partials"));
    assert_eq!((need, found), (Need::Elements(15), 14));
}

#[test]
fn an_array_shorter_than_the_extents_is_refused() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 4]).expect("room");
    let short = || BoundArray::vector("input", one(address(&input, 0, 2).expect("inside"), 2), 4);
    let (_, need, found) = unmet(run(&device, fold(&[Variant::Only]), short(), 4));
    assert_eq!((need, found), (Need::Elements(4), 2));
}

/// Arguments from safe code cannot overlap, but pointers from another library can.
#[test]
fn outputs_may_not_overlap_inputs() {
    let device = Device::simulator();
    let memory = device.upload(&[1.0; 8]).expect("room");
    let program = fold(&[Variant::Only]);
    let program = device.programs().get_or("test", "overlap", || Ok(program)).expect("sound");
    let part = |name, start, len: usize, extent| {
        let place = one(address(&memory, start, len).expect("inside"), len as u64);
        BoundArray::vector(name, place, extent)
    };
    let outcome = |input, output| launch_on(&device, &program, [input], output, &[4]);
    assert!(outcome(part("x", 0, 4, 4), part("y", 4, 1, 1)).is_ok());
    assert!(outcome(part("x", 1, 4, 4), part("y", 0, 1, 1)).is_ok());
    for at in 1..5 {
        let error = outcome(part("x", 1, 4, 4), part("y", at, 1, 1)).expect_err("shared");
        assert!(
            matches!(&error, Error::Overlap { written, other }
            if written == "y" && other == "x"),
            "{error}"
        );
    }
    // All elements of C are compared, not only the first.
    let spec: SgemmSpec = "block: 8x8".parse().expect("sound");
    let program = device.programs().get_or("test", "product", || Ok(spec.plan()?.program()?));
    let program = program.expect("sound");
    let other = device.upload(&[1.0; 8]).expect("room");
    let matrix = |name, memory, at, (rows, cols)| {
        let shape = Shape { start: 0, rows, cols, row_stride: cols, col_stride: 1, batch: None };
        let len = rows * cols;
        let place = one(address(memory, at, len).expect("inside"), len as u64);
        BoundArray::matrix(name, place, shape)
    };
    let product = |a_at, c_at| {
        let inputs = [matrix("a", &memory, a_at, (2, 1)), matrix("b", &other, 0, (1, 2))];
        launch_on(&device, &program, inputs, matrix("c", &memory, c_at, (2, 2)), &[2, 2, 1])
    };
    assert!(product(0, 4).is_ok() && product(6, 2).is_ok());
    for (a_at, c_at) in [(6, 3), (5, 2), (2, 3), (4, 4)] {
        assert!(matches!(product(a_at, c_at), Err(Error::Overlap { .. })), "{a_at} {c_at}");
    }
    // C must not share memory with epilogue operands either.
    let spec: SgemmSpec = "epilogue: |acc, bias[n]| acc + bias".parse().expect("sound");
    let line = spec.to_string();
    let biased =
        device.programs().get_or("test", &line, || Ok(spec.plan()?.program()?)).expect("sound");
    let of_bias = |at| {
        let inputs = [
            matrix("a", &other, 0, (2, 1)),
            matrix("b", &other, 2, (1, 2)),
            part("bias", at, 2, 2),
        ];
        launch_on(&device, &biased, inputs, matrix("c", &memory, 2, (2, 2)), &[2, 2, 1])
    };
    assert!(of_bias(0).is_ok() && of_bias(6).is_ok());
    for at in 1..6 {
        let error = of_bias(at).expect_err("shared");
        assert!(matches!(&error, Error::Overlap { other, .. } if other == "bias"), "{error}");
    }
    // B is protected in the same way as A.
    let product = |b_at, c_at| {
        let inputs = [matrix("a", &other, 0, (2, 1)), matrix("b", &memory, b_at, (1, 2))];
        launch_on(&device, &program, inputs, matrix("c", &memory, c_at, (2, 2)), &[2, 2, 1])
    };
    assert!(product(0, 4).is_ok() && product(6, 2).is_ok());
    for (b_at, c_at) in [(6, 3), (5, 2), (2, 3), (4, 4)] {
        let error = product(b_at, c_at).expect_err("shared");
        assert!(matches!(&error, Error::Overlap { other, .. } if other == "b"), "{error}");
    }
    let gpu = |at: u64| GpuAddress { at: 0x1000 + 4 * at, elem: Elem::F32 };
    let overlap =
        |(at, len), (other, other_len)| meet(&[gpu(at).range(len)], &[gpu(other).range(other_len)]);
    assert!(overlap((0, 4), (3, 1)) && overlap((3, 1), (0, 4)));
    assert!(!overlap((0, 4), (4, 1)) && !overlap((4, 1), (0, 4)));
    assert!(!overlap((0, 0), (0, 4)));
}

#[test]
fn threads_may_launch_at_once() {
    let device = Device::simulator();
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let device = &device;
            scope.spawn(move || {
                for n in (thread..64).step_by(7) {
                    let input = device.upload(&vec![thread as f32; n as usize]).expect("room");
                    let program = fold(&[Variant::Only]);
                    let (_, output) =
                        run(device, program, vector(&input, 0), n).expect("a sound launch");
                    let sum = device.download(&output).expect("one value");
                    assert_eq!(sum, [(thread * n) as f32]);
                }
            });
        }
    });
}

#[test]
fn alignment_counts_from_the_allocation() {
    let device = Device::simulator();
    let buffer = device.upload(&[0.0; 8]).expect("room");
    let bytes = |start| address(&buffer, start, 1).expect("inside").bytes();
    assert_eq!([0, 1, 4, 6].map(bytes), [0, 4, 16, 24]);
}
