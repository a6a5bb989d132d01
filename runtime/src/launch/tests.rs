//! The launch on hand-built kernels, in the simulator.

use super::{Bound, Extents, launch};
use crate::error::Error;
use crate::operand::Place;
use crate::{Buffer, Device, Launched, Result};
use gemm_dsl::ir::{
    Access, Expr, Extent, Fill, Geometry, KernelBuilder, Operand, Passes, Program, Requirement,
    Scratch, Source, Special, Step, Ty, Unroll, VerifiedKernel,
};

const PER_BLOCK: u64 = 4;

/// The sum of each four elements, by one thread.
fn sums(variant: &str) -> VerifiedKernel {
    let mut k = KernelBuilder::new("sums");
    k.variant(variant);
    let input = k.global("in", Operand::Input(0));
    let output = k.global("out", Operand::Output(0));
    let n = k.extent("n", Ty::U64, Extent::Length);
    let blocks = Expr::from(n).gt(0u64).select(Expr::from(n).div_ceil(PER_BLOCK), 1u64);
    k.shape(input, [n.into()], []);
    k.shape(output, [blocks.clone()], []);
    k.geometry(Geometry { block: (32, 1), grid: [blocks, 1u64.into()], blocks_per_sm: 1 });
    if variant == "vector" {
        k.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
    }
    k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
        let first = k.let_("first", Expr::from(Special::BlockX).wide() * PER_BLOCK);
        let sum = k.mut_("sum", 0.0);
        let in_range = |i| Expr::from(i).lt(Expr::from(first) + PER_BLOCK).and(Expr::from(i).lt(n));
        k.loop_("i", first, in_range, Step::Add(1u64.into()), Unroll::Auto, |k, i| {
            k.assign(sum, Expr::from(sum) + Access::new(input, [i.into()]).load());
        });
        k.store(Access::new(output, [Special::BlockX.into()]), sum);
    });
    k.finish().expect("a sound kernel")
}

fn fold(kernel: VerifiedKernel, fallback: Option<VerifiedKernel>) -> Program {
    let n = gemm_dsl::ir::Scalar { param: 2, ty: Ty::U64 };
    let first = Expr::from(n).div_ceil(PER_BLOCK);
    let second = first.clone().div_ceil(PER_BLOCK);
    let scratch = [first, second].map(|len| Scratch { len, fill: Fill::Uninitialised });
    let passes = Passes::Fold { per_block: PER_BLOCK };
    Program { kernel, fallback, scratch: scratch.into(), passes }
}

/// A kernel of one thread that checks its extents and does nothing.
fn extents_only(
    ty: Ty,
    requires: impl FnOnce(&mut KernelBuilder, gemm_dsl::ir::Scalar),
) -> Program {
    let mut k = KernelBuilder::new("extents_only");
    let a = k.global("A", Operand::Input(0));
    let m = k.extent("M", ty, Extent::M);
    k.shape(a, [m.into()], []);
    let grid = [Expr::from(m).wide(), 1u64.into()];
    k.geometry(Geometry { block: (32, 1), grid, blocks_per_sm: 1 });
    requires(&mut k, m);
    let kernel = k.finish().expect("a sound kernel");
    Program { kernel, fallback: None, scratch: Vec::new(), passes: Passes::Once }
}

fn run(
    device: &Device,
    program: Program,
    input: Bound,
    extents: Extents,
) -> Result<(Launched, Buffer)> {
    let output = device.alloc(1)?;
    let name = format!("{program:?}");
    let program = device.programs().get_or("test", &name, || Ok(program))?;
    let bound = Bound::packed("output", output.place(0, 1)?, 1);
    let launched = launch(device, &program, &[input], &[bound], extents)?;
    Ok((launched, output))
}

fn vector(buffer: &Buffer, start: usize) -> Bound {
    let len = buffer.len() - start;
    let place = buffer.place(start, len).expect("inside");
    Bound::packed("input", place, len as u64)
}

fn product(m: u64) -> Extents {
    Extents::Product { m, n: 1, k: 1 }
}

#[test]
fn a_fold_takes_as_many_passes_as_it_needs() {
    let device = Device::simulator();
    for (n, passes) in [(0, 1), (1, 1), (4, 1), (5, 2), (16, 2), (17, 3), (257, 5), (1000, 5)] {
        let values: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let input = device.upload(&values).expect("room");
        let program = fold(sums(""), None);
        let (launched, output) =
            run(&device, program, vector(&input, 0), Extents::Length(n)).expect("a sound launch");
        assert_eq!(launched.passes(), passes, "{n} elements");
        let total: f32 = values.iter().sum();
        assert_eq!(device.download(&output).expect("one value"), [total], "{n} elements");
    }
}

#[test]
fn the_first_variant_whose_requirements_are_met_runs() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 24]).expect("room");
    for (start, variant) in [(0, "vector"), (1, "scalar"), (3, "scalar"), (4, "vector")] {
        let program = fold(sums("vector"), Some(sums("scalar")));
        let length = 24 - start as u64;
        let (launched, output) =
            run(&device, program, vector(&input, start), Extents::Length(length)).expect("sound");
        assert_eq!(launched.variant(), variant, "from element {start}");
        assert_eq!(device.download(&output).expect("one value"), [length as f32]);
    }
}

#[test]
fn unaligned_input_without_a_fallback_is_refused() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program = fold(sums("vector"), None);
    let error = run(&device, program, vector(&input, 1), Extents::Length(7)).expect_err("unmet");
    assert!(matches!(error, Error::Unmet { .. }), "{error}");
    assert!(error.to_string().contains("`input` aligned to 16 bytes"), "{error}");
}

#[test]
fn a_multiple_is_demanded_with_its_arithmetic() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program =
        || extents_only(Ty::I32, |k, m| k.require(Requirement::Multiple { scalar: m, of: 4 }));
    run(&device, program(), vector(&input, 0), product(8)).expect("a multiple");
    let error = run(&device, program(), vector(&input, 0), product(7)).expect_err("unmet");
    assert!(error.to_string().contains("it is 7 = 1·4 + 3"), "{error}");
}

#[test]
fn a_range_is_demanded() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let program = || {
        extents_only(Ty::I32, |k, m| k.require(Requirement::Range { scalar: m, min: 2, max: 4 }))
    };
    for (m, fits) in [(1, false), (2, true), (4, true), (5, false)] {
        let outcome = run(&device, program(), vector(&input, 0), product(m));
        assert_eq!(outcome.is_ok(), fits, "{m}");
    }
}

#[test]
fn extents_beyond_their_type_and_grids_beyond_the_limit_are_refused() {
    let device = Device::simulator();
    let input = device.upload(&[1.0]).expect("room");
    let narrow = extents_only(Ty::I32, |_, _| ());
    let error = run(&device, narrow, vector(&input, 0), product(1 << 31)).expect_err("too large");
    assert!(error.to_string().contains("m is 2147483648"), "{error}");
    let wide = extents_only(Ty::U64, |_, _| ());
    let error = run(&device, wide, vector(&input, 0), product(1 << 31)).expect_err("too large");
    assert!(error.to_string().contains("2147483648 blocks along x"), "{error}");
}

#[test]
fn nothing_is_launched_where_the_grid_is_empty() {
    let device = Device::simulator();
    let input = device.upload(&[]).expect("room");
    let program = extents_only(Ty::I32, |_, _| ());
    let (launched, _) = run(&device, program, vector(&input, 0), product(0)).expect("sound");
    assert_eq!(launched.passes(), 0);
    assert!(launched.counters().is_none());
}

#[test]
fn padded_rows_need_a_kernel_that_takes_strides() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 8]).expect("room");
    let padded = || Bound::pitched("a", input.place(0, 8).expect("inside"), 3, 4);
    let packed = extents_only(Ty::I32, |_, _| ());
    let error = run(&device, packed, padded(), product(2)).expect_err("no stride");
    assert!(error.to_string().contains("Add `pitched`"), "{error}");
    let pitched = extents_only(Ty::I32, |k, _| {
        k.scalar("lda", Ty::I32, Source::RowStride(Operand::Input(0)));
    });
    run(&device, pitched, padded(), product(2)).expect("a stride");
}

#[test]
fn too_little_scratch_is_noticed() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 100]).expect("room");
    let mut program = fold(sums(""), None);
    program.scratch[0].len = Expr::U64(1);
    let error = run(&device, program, vector(&input, 0), Extents::Length(100)).expect_err("short");
    assert!(matches!(error, Error::Internal(_)), "{error}");
}

#[test]
fn a_fault_of_a_kernel_is_the_simulators_error() {
    let device = Device::simulator();
    let input = device.upload(&[1.0; 4]).expect("room");
    let short = Bound::packed("input", input.place(0, 2).expect("inside"), 4);
    let error = run(&device, fold(sums(""), None), short, Extents::Length(4)).expect_err("short");
    assert!(matches!(error, Error::Simulator(_)), "{error}");
}

#[test]
fn threads_may_launch_at_once() {
    let device = Device::simulator();
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let device = &device;
            scope.spawn(move || {
                for n in (thread..200).step_by(17) {
                    let input = device.upload(&vec![thread as f32; n as usize]).expect("room");
                    let program = fold(sums(""), None);
                    let (_, output) = run(device, program, vector(&input, 0), Extents::Length(n))
                        .expect("a sound launch");
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
    let aligned = |start| buffer.place(start, 1).expect("inside").is_aligned(16);
    assert_eq!([0, 1, 4, 6].map(aligned), [true, false, true, false]);
    assert!(Place::Gpu(0x7000_0010).is_aligned(16) && !Place::Gpu(0x7000_0008).is_aligned(16));
}
