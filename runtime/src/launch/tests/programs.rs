//! Programs of hand-built kernels.

use gemm_dsl::ir::program::{Program, Step};
use gemm_dsl::ir::{
    self, Access, Elem, Expr, Extent, For, Geometry, KernelBuilder, Operand, Requirement, Scalar,
    Source, Special, Ty, Variant, VerifiedKernel, VerifiedProgram,
};

const PER_BLOCK: u64 = 4;

/// Sums four elements by one thread of each block.
fn sums(variant: Variant) -> VerifiedKernel {
    let mut k = KernelBuilder::new("sums");
    k.variant(variant);
    let input = k.global("in", Elem::F32, Operand::Input(0));
    let output = k.global("out", Elem::F32, Operand::Output(0));
    let n = k.extent("n", Ty::U64, Extent::LENGTH);
    let blocks = Expr::from(n).gt(0u64).select(Expr::from(n).div_ceil(PER_BLOCK), 1u64);
    k.shape(input, [n.into()], [1.into()]);
    k.shape(output, [blocks.clone()], [1.into()]);
    k.geometry(Geometry {
        block: (32, 1),
        grid: [blocks, 1u64.into(), 1u64.into()],
        blocks_per_sm: Some(1),
    });
    if variant == Variant::Vector {
        k.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
    }
    k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
        let first = k.let_("first", Expr::from(Special::BlockX).wide() * PER_BLOCK);
        let sum = k.mut_("sum", 0.0);
        let in_range = |i| Expr::from(i).lt(Expr::from(first) + PER_BLOCK).and(Expr::from(i).lt(n));
        k.loop_("i", For::new(first, in_range), |k, i| {
            k.assign(sum, Expr::from(sum) + Access::new(input, [i.into()]).load());
        });
        k.store(Access::new(output, [Special::BlockX.into()]), sum);
    });
    k.finish().expect("a sound kernel")
}

/// Sums up to 64 elements in up to three passes.
pub(super) fn fold(variants: &[Variant]) -> VerifiedProgram {
    let mut program = Program::default();
    let n = program.extent(Extent::LENGTH);
    let (_, input) = program.input(Operand::Input(0), "input", Elem::F32, [n.clone()]);
    let (_, output) = program.output(Operand::Output(0), "output", Elem::F32, [1u64.into()]);
    let choose: Vec<_> = variants.iter().map(|v| program.kernel(sums(*v))).collect();
    let [first, second] = [4u64, 16].map(|per| n.clone().div_ceil(per));
    let partials = program.temp("partials", Elem::F32, [first.clone()]);
    let fewer = program.temp("partials of partials", Elem::F32, [second.clone()]);
    let pass = |from, to, length: &Expr| {
        let bind = vec![(Operand::Input(0), from), (Operand::Output(0), to)];
        let extents = vec![(Extent::LENGTH, length.clone())];
        Step::launch(choose.clone(), bind, extents)
    };
    let either = |n: &Expr, then, otherwise| {
        let cond = n.clone().le(PER_BLOCK);
        Step::either(cond, vec![then], otherwise)
    };
    let third = vec![pass(partials, fewer, &first), pass(fewer, output, &second)];
    let second = either(&first, pass(partials, output, &first), third);
    let first = vec![pass(input, partials, &n), second];
    program.steps = vec![either(&n, pass(input, output, &n), first)];
    VerifiedProgram::new(program).expect("a sound program")
}

/// Program of one thread that checks its extents and writes a zero.
pub(super) fn extents_only(
    ty: Ty,
    requires: impl FnOnce(&mut KernelBuilder, Scalar),
) -> VerifiedProgram {
    let mut k = KernelBuilder::new("extents_only");
    let a = k.global("A", Elem::F32, Operand::Input(0));
    let c = k.global("C", Elem::F32, Operand::Output(0));
    let m = k.extent("M", ty, Extent::M);
    k.shape(a, [m.into()], [1.into()]);
    k.shape(c, [1u64.into()], [1.into()]);
    let grid = [Expr::from(m).wide(), 1u64.into(), 1u64.into()];
    k.geometry(Geometry { block: (32, 1), grid, blocks_per_sm: Some(1) });
    k.if_(Expr::from(Special::ThreadX).equals(0).and(Expr::from(Special::BlockX).equals(0)), |k| {
        k.store(Access::new(c, [0.into()]), 0.0);
    });
    requires(&mut k, m);
    once(k.finish().expect("a sound kernel"))
}

/// Program with m rows of no elements that writes the upper 32 bits of m.
pub(super) fn high_word() -> VerifiedProgram {
    let mut k = KernelBuilder::new("high_word");
    let a = k.global("A", Elem::F32, Operand::Input(0));
    let c = k.global("C", Elem::F32, Operand::Output(0));
    let m = k.extent("M", Ty::U64, Extent::M);
    k.shape(a, [m.into(), 0u64.into()], [0u64.into(), 1.into()]);
    k.shape(c, [1u64.into()], [1.into()]);
    k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
        let high = Expr::from(m) / (1u64 << 32);
        k.store(Access::new(c, [0.into()]), high.cast(Elem::F32));
    });
    once(k.finish().expect("a sound kernel"))
}

/// Program of one launch of a kernel with one input, one output and the extent m.
pub(super) fn once(kernel: VerifiedKernel) -> VerifiedProgram {
    let mut program = Program::default();
    let m = program.extent(Extent::M);
    let ranks: Vec<usize> =
        kernel.contract().arrays().map(ir::contract::ArrayParameter::rank).collect();
    let dims = |rank| vec![m.clone(); rank];
    let bind = vec![
        program.input(Operand::Input(0), "input", Elem::F32, dims(ranks[0])),
        program.output(Operand::Output(0), "output", Elem::F32, dims(ranks[1])),
    ];
    let choose = vec![program.kernel(kernel)];
    let extents = vec![(Extent::M, m)];
    program.steps = vec![Step::launch(choose, bind, extents)];
    VerifiedProgram::new(program).expect("a sound program")
}

/// Program that reads the last element of a matrix of m rows of 3.
pub(super) fn rows_of_three(pitched: bool) -> VerifiedProgram {
    let mut k = KernelBuilder::new("rows");
    let a = k.global("A", Elem::F32, Operand::Input(0));
    let c = k.global("C", Elem::F32, Operand::Output(0));
    let m = k.extent("M", Ty::I32, Extent::M);
    let source = Source::Stride { operand: Operand::Input(0), dim: 0 };
    let stride = if pitched { k.scalar("lda", Ty::I32, source).into() } else { 3.into() };
    k.shape(a, [m.into(), 3.into()], [stride, 1.into()]);
    k.shape(c, [1u64.into()], [1.into()]);
    k.if_(Expr::from(Special::ThreadX).equals(0), |k| {
        let last = Access::new(a, [Expr::from(m) - 1, 2.into()]).load();
        k.store(Access::new(c, [0.into()]), last);
    });
    once(k.finish().expect("a sound kernel"))
}
