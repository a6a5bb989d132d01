//! Arguments, grids and requirements of launches.

use super::*;
use gemm_dsl::ir::{Elem, Extent, HostError, Requirement, Ty};

/// Copies `n` elements with a fixed number of threads per block; surplus threads do nothing.
fn copy_kernel(requires: &[Requirement]) -> VerifiedKernel {
    let mut b = KernelBuilder::new("copy");
    let input = b.global("in", Elem::F32, Operand::Input(0));
    let output = b.global("out", Elem::F32, Operand::Output(0));
    let n = b.extent("n", Ty::I32, Extent::LENGTH);
    for buffer in [input, output] {
        b.shape(buffer, [n.into()], [1.into()]);
    }
    b.geometry(Geometry {
        block: (32, 2),
        grid: [Expr::from(n).div_ceil(64).wide(), Expr::U64(1), Expr::U64(1)],
        blocks_per_sm: Some(1),
    });
    let index = Expr::from(Special::BlockX) * 64 + Expr::from(Special::ThreadY) * 32 + tid();
    let i = b.let_("i", index);
    b.if_(Expr::from(i).lt(n), |b| b.store(at(output, i), load(input, i)));
    requires.iter().for_each(|r| b.require(r.clone()));
    b.finish().expect("valid")
}

fn scalar_n() -> gemm_dsl::ir::Scalar {
    gemm_dsl::ir::Scalar { param: 2, ty: Ty::I32 }
}

#[test]
fn every_length_works() {
    let kernel = copy_kernel(&[]);
    for n in [0, 1, 31, 32, 33, 64, 65, 1000] {
        let input: Vec<f32> = (0..n).map(|i| i as f32 + 0.5).collect();
        let buffers = [Buffer::from_f32(&input), Buffer::zeros(n)];
        let counters = launch(&kernel, &buffers, &[n as u64]).expect("the kernel is right");
        assert_eq!(buffers[1].to_vec(), input);
        assert_eq!(counters.blocks, n.div_ceil(64) as u64);
        assert_eq!(n == 0, counters == Counters::default());
    }
}

#[test]
fn wrong_arguments() {
    let kernel = copy_kernel(&[]);
    let two = || [Buffer::zeros(4), Buffer::zeros(4)];
    let run = |buffers: &[Buffer], scalars: &[u64]| launch(&kernel, buffers, scalars);
    assert!(matches!(
        run(&two()[..1], &[4]),
        Err(SimError::BufferCount { expected: 2, given: 1, .. })
    ));
    assert!(matches!(run(&two(), &[]), Err(SimError::ScalarCount { expected: 1, given: 0, .. })));
    let beyond = unmet(run(&two(), &[1 << 31]));
    assert_eq!(beyond.subject, Subject::Extent(Extent::LENGTH));
    assert_eq!((beyond.need, beyond.value), (Need::AtMost(i32::MAX as u64), 1 << 31));
    let memory = Buffer::zeros(8);
    let overlapping = |offset| [memory.clone(), memory.view(offset, 4).expect("inside")];
    let part = |offset| {
        let [_, out] = overlapping(offset);
        [memory.view(0, 4).expect("inside"), out]
    };
    assert!(matches!(run(&part(3), &[4]), Err(SimError::Overlap { .. })));
    assert!(run(&part(4), &[4]).is_ok());
    // Read-only arguments may be the same buffer.
    let mut t = team(1, 1);
    let shared = Buffer::from_slice(&[1, 2]);
    let [one, other] = ["one", "other"].map(|name| t.bound(name, shared.clone()));
    let out = t.array("out", &[0]);
    t.k.store(at(out, 0), load(one, 0) + load(other, 1));
    assert_eq!(t.run(), Ok(vec![3]));
}

#[test]
fn wrong_grids() {
    let with_grid = |grid: [Expr; 3]| {
        let mut kernel = copy_kernel(&[]).into_inner();
        kernel.geometry.grid = grid;
        let kernel = VerifiedKernel::new(kernel).expect("valid");
        launch(&kernel, &[Buffer::zeros(0), Buffer::zeros(0)], &[0])
    };
    let zero = with_grid([Expr::U64(0), Expr::U64(7), Expr::U64(1)]);
    assert_eq!(zero, Ok(Counters::default()));
    let along = |axis, need, value, grid| {
        let ContractError { subject, need: unmet_need, value: unmet_value, .. } =
            unmet(with_grid(grid));
        assert_eq!((subject, unmet_need, unmet_value), (Subject::Blocks { axis }, need, value));
    };
    along(1, Need::AtMost(65535), 65536, [Expr::U64(1), Expr::U64(65536), Expr::U64(1)]);
    let longest = i32::MAX as u64;
    along(0, Need::AtMost(longest), 1 << 31, [Expr::U64(longest + 1), Expr::U64(1), Expr::U64(1)]);
    let many = with_grid([Expr::U64(longest), Expr::U64(65535), Expr::U64(1)]);
    assert!(matches!(many, Err(SimError::ExtentRange { .. })));
    // The product of both is 2^32 - 1, one more than the limit.
    let one_more = with_grid([Expr::U64(65537), Expr::U64(65535), Expr::U64(1)]);
    let limit = u64::from(u32::MAX) - 1;
    assert!(
        matches!(&one_more, Err(SimError::ExtentRange { value, limit: l, .. })
            if (*value, *l) == (i128::from(u32::MAX), limit)),
        "{one_more:?}"
    );
    let by_zero = [Expr::U64(1) / Expr::from(scalar_n()).wide(), Expr::U64(1), Expr::U64(1)];
    along(0, Need::Defined(HostError::Overflow), 0, by_zero);
    let negative = [Expr::from(scalar_n()).wide() - Expr::U64(1), Expr::U64(1), Expr::U64(1)];
    along(0, Need::AtLeast(0), -1, negative);
}

#[test]
fn a_fault_names_its_block_and_its_thread() {
    let (block, grid) = ((5, 3), [2u64, 3, 4]);
    let coordinates = [(0, 0, 0, 0, 0), (1, 2, 3, 4, 2), (0, 1, 2, 3, 1), (1, 0, 3, 0, 2)];
    for at_fault in coordinates {
        let (bx, by, bz, tx, ty) = at_fault;
        let mut b = bench(1, 1, [1, 1]);
        b.k.geometry(Geometry { block, grid: grid.map(Expr::U64), blocks_per_sm: Some(1) });
        let there = [
            (Special::BlockX, bx),
            (Special::BlockY, by),
            (Special::BlockZ, bz),
            (Special::ThreadX, tx),
            (Special::ThreadY, ty),
        ];
        let there = there.map(|(special, at)| Expr::from(special).equals(at));
        let there = there.into_iter().reduce(Expr::and).expect("five coordinates");
        let input = b.input;
        b.k.if_(there, |b| {
            b.let_("value", load(input, 1));
        });
        let fault = b.fault();
        let expected = [bx, by, bz, tx, ty].map(|at| at as u32);
        let (block, thread) = (fault.block, fault.thread);
        assert_eq!([block.0, block.1, block.2, thread.0, thread.1], expected);
    }
}

#[test]
fn requirements() {
    let kernel = copy_kernel(&[
        Requirement::Aligned { operand: Operand::Input(0), bytes: 16 },
        Requirement::Multiple { scalar: scalar_n(), of: 4 },
    ]);
    let memory = Buffer::zeros(64);
    let run = |offset, n: usize| {
        let input = memory.view(offset, n).expect("inside");
        launch(&kernel, &[input, Buffer::zeros(n)], &[n as u64])
    };
    assert!(run(0, 8).is_ok());
    assert!(run(4, 8).is_ok());
    let unaligned = unmet(run(1, 8));
    assert_eq!(
        (unaligned.need, unaligned.value),
        (Need::Aligned { bytes: 16, elem: Elem::F32 }, 4)
    );
    let ragged = unmet(run(0, 6));
    assert_eq!((ragged.need, ragged.value), (Need::Multiple { of: 4 }, 6));
}

/// Element types of the same size are still different types.
#[test]
fn elements() {
    let kernel = copy_kernel(&[]);
    for found in Elem::ALL {
        let run = launch(&kernel, &[Buffer::zeros_of(found, 4), Buffer::zeros(4)], &[4]);
        if found == Elem::F32 {
            run.expect("what the kernel reads");
            continue;
        }
        let unmet = unmet(run);
        let words = format!("elements of type f32 in `in`, but they are of type {found}. Convert");
        assert!(unmet.to_string().contains(&words), "{unmet}");
        assert_eq!(unmet.need, Need::Element { expected: Elem::F32, found });
    }
}

#[test]
fn views() {
    let memory = Buffer::from_f32(&[1.0, 2.0, 3.0, 4.0]);
    let view = memory.view(1, 3).and_then(|v| v.view(1, 2)).expect("inside");
    assert_eq!(view.to_vec(), [3.0, 4.0]);
    assert!(memory.view(2, 3).is_none() && memory.view(usize::MAX, 2).is_none());
    assert!(view.copy_from(&[7.0f32]) && !view.copy_from(&[0.0f32; 3]));
    assert_eq!(memory.to_vec(), [1.0, 2.0, 7.0, 4.0]);
    assert!(memory.view(4, 0).is_some_and(|v| v.is_empty()));
}
