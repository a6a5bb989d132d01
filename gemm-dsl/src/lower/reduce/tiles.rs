//! Reductions with `launch: tiles`. Each block folds one tile of the array. The same kernel then
//! folds the blocks' results, until one value is left.
//!
//! The variants follow M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), with the warp
//! barriers and shuffles that GPUs with independent thread scheduling need.

mod load;

use super::expressions::{Expressions, Needs};
use super::fold::Fold;
use super::shape::rounds;
use super::team::{Team, store};
use crate::ir::program::{Program, Step};
use crate::ir::{
    BufferId, Const, Elem, Expr, Extent, Geometry, IrError, KernelBuilder, KernelFamily, Operand,
    Requirement, Scalar, Special, Ty, Var, Variant, VerifiedKernel, VerifiedProgram,
};
use crate::plan::ReducePlan;
use crate::target::arch::GRID_BLOCKS;

/// Maximum number of blocks of a launch. It limits the number of elements of the first pass.
const MAX_BLOCKS: u128 = GRID_BLOCKS[0] as u128;

/// Builds the program of a reduction. One kernel is launched again on its own results until one
/// value is left. Each pass stores its results in a separate temporary.
///
/// # Errors
/// Returns an error if a kernel breaks a rule of the IR, which is a bug of this module.
pub(super) fn program(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let length = program.extent(Extent::LENGTH);
    let (_, input) = program.input(Operand::Input(0), "input", Elem::F32, [length.clone()]);
    let (_, output) = program.output(Operand::Output(0), "output", Elem::F32, [1u64.into()]);
    let wide = plan.vector() == 4;
    let mut choose = vec![program.kernel(kernel(plan, wide)?)];
    if wide {
        choose.push(program.kernel(kernel(plan, false)?));
    }
    let fold = |from, to, length| {
        let bind = vec![(Operand::Input(0), from), (Operand::Output(0), to)];
        let extents = vec![(Extent::LENGTH, length)];
        Step::launch(choose.clone(), bind, extents)
    };
    // Pass p reads ceil(length / per_block^p) elements.
    let per_block = plan.elements_per_block();
    let longest = MAX_BLOCKS * u128::from(per_block);
    let mut passes = vec![(input, length.clone())];
    let mut divisor = u128::from(per_block);
    while longest.div_ceil(divisor) > 1
        && let Ok(taken) = u64::try_from(divisor)
    {
        let left = length.clone().div_ceil(taken);
        passes.push((program.temp("partials", Elem::F32, [left.clone()]), left));
        divisor = divisor.saturating_mul(per_block.into());
    }
    // The passes are built from the last possible one to the first. A pass is followed by another
    // if it leaves more than one value.
    let mut steps = Vec::new();
    let mut next = None;
    for (from, left) in passes.into_iter().rev() {
        let last = fold(from, output, left.clone());
        steps = match next {
            None => vec![last],
            Some(to) => {
                let mut more = vec![fold(from, to, left.clone())];
                more.append(&mut steps);
                vec![Step::either(left.le(per_block), vec![last], more)]
            }
        };
        next = Some(from);
    }
    program.steps = steps;
    VerifiedProgram::new(program)
}

/// Builds the kernel. `wide` is true to load a vector of four by one 16-byte access.
fn kernel(plan: &ReducePlan, wide: bool) -> Result<VerifiedKernel, IrError> {
    let mut b = KernelBuilder::new(plan.kernel_name());
    b.family(KernelFamily::Reduction);
    let noun = super::noun(plan);
    b.title(format!(
        "{noun} of n floats, in several launches: block b reduces its part of `in` to out[b]."
    ));
    b.title(format!("Generated from reduce_kernel!({})", plan.spec()));
    if plan.vector() == 4 {
        b.variant(if wide { Variant::Vector } else { Variant::Scalar });
        if !wide {
            b.title("Scalar variant for an input that is not aligned to 16 bytes.");
        }
    }

    let input = b.global("in", Elem::F32, Operand::Input(0));
    let output = b.global("out", Elem::F32, Operand::Output(0));
    let n = b.extent("n", Ty::U64, Extent::LENGTH);
    let per_block = plan.elements_per_block();
    let blocks = rounds(n.into(), per_block.into());
    b.shape(input, [n.into()], [1.into()]);
    b.shape(output, [blocks.clone()], [1.into()]);

    let block = b.constant("BLOCK", plan.block() as i32, "threads per block");
    b.launch_bounds(block);
    b.geometry(Geometry {
        block: (plan.block(), 1),
        grid: [blocks, 1u64.into(), 1u64.into()],
        blocks_per_sm: plan.spec().blocks_per_sm,
    });
    if wide {
        b.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
    }

    let tid: Expr = b.let_("tid", Special::ThreadX).into();
    let needs = Needs { map: false, finish: false };
    let expressions = Expressions::new(&mut b, plan, needs);
    let fold = Fold::new(&mut b, plan, &expressions);
    fold.identity_comment(&mut b);
    let identity = b.let_("identity", fold.missing());
    let kept = {
        let (tid, fold) = (tid.clone(), &fold);
        let loader = Loader { plan, b: &mut b, fold, input, n, block, tid, identity };
        if plan.vector() == 1 { loader.items() } else { loader.vectors(wide) }
    };
    let identity = vec![identity.into()];
    let mut team =
        Team { plan, fold: &fold, identity, block, tid, folds_twice: false, shared: None };
    team.by_block(&mut b, vec![kept], &mut |b, value| {
        store(b, &[output], &[Special::BlockX.into()], value);
    });
    b.finish()
}

/// Loads the elements of a thread.
struct Loader<'l> {
    plan: &'l ReducePlan,
    b: &'l mut KernelBuilder,
    fold: &'l Fold,
    input: BufferId,
    n: Scalar,
    block: Const,
    /// Index of the thread in its block.
    tid: Expr,
    identity: Var,
}
