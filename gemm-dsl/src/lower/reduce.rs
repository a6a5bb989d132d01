//! Reductions: every block folds its part of the input into one value. The axes are how a thread
//! loads (`load`) and how the block folds what its threads hold (`tree`, `shuffle`).
//!
//! The ladder follows M. Harris, "Optimizing Parallel Reduction in CUDA" (2007), with the warp
//! barriers and shuffles that GPUs with independent thread scheduling need.

mod load;
mod operator;
mod shuffle;
mod tree;

use crate::ir::{
    BufferId, Const, Expr, Extent, Fill, Geometry, IrError, KernelBuilder, Operand, Passes,
    Program, Requirement, Scalar, Scratch, Special, Step, Ty, VerifiedKernel,
};
use crate::plan::{Finish, ReducePlan};
use operator::{identity, noun};

/// Threads of a warp.
const WARP: i32 = 32;

/// The program of a reduction: one kernel, launched on its own results until one value is left.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn reduce(plan: &ReducePlan) -> Result<Program, IrError> {
    let vector = plan.vector() == 4;
    let kernel = kernel(plan, vector)?;
    let fallback = if vector { Some(self::kernel(plan, false)?) } else { None };
    let per_block = plan.elements_per_block();
    let length = Expr::Param(Scalar { param: 2, ty: Ty::U64 });
    let first = length.div_ceil(per_block);
    let second = first.clone().div_ceil(per_block);
    let scratch =
        [first, second].map(|len| Scratch { len, fill: Fill::Uninitialised }).into_iter().collect();
    Ok(Program { kernel, fallback, scratch, passes: Passes::Fold { per_block } })
}

/// One kernel; `wide` where a vector of four is one 16-byte load.
fn kernel(plan: &ReducePlan, wide: bool) -> Result<VerifiedKernel, IrError> {
    let mut k = KernelBuilder::new(plan.kernel_name());
    let op = plan.op();
    k.title(format!("{} of n floats: each block folds its part of `in` into one value.", noun(op)));
    k.title(format!("reduce_kernel!({})", plan.spec()));
    if plan.vector() == 4 {
        k.variant(if wide { "vector" } else { "scalar" });
        if !wide {
            k.title("Access variant for an input that is not aligned to 16 bytes.");
        }
    }

    let input = k.global("in", Operand::Input(0));
    let output = k.global("out", Operand::Output(0));
    let n = k.extent("n", Ty::U64, Extent::Length);
    let per_block = plan.elements_per_block();
    let blocks = Expr::from(n).gt(0u64).select(Expr::from(n).div_ceil(per_block), 1u64);
    k.shape(input, [n.into()], []);
    k.shape(output, [blocks.clone()], []);

    let block = k.constant("BLOCK", plan.block() as i32, "threads per block");
    k.launch_bounds(block);
    k.geometry(Geometry {
        block: (plan.block(), 1),
        grid: [blocks, 1u64.into()],
        blocks_per_sm: 1,
    });
    if wide {
        k.require(Requirement::Aligned { operand: Operand::Input(0), bytes: 16 });
    }

    let tid = k.let_("tid", Special::ThreadX).into();
    let mut reducer = Reducer { plan, k, input, output, n, block, tid };
    reducer.build(wide);
    reducer.k.finish()
}

struct Reducer<'p> {
    plan: &'p ReducePlan,
    k: KernelBuilder,
    input: BufferId,
    output: BufferId,
    n: Scalar,
    /// Threads of the block.
    block: Const,
    /// The index of the thread in its block.
    tid: Expr,
}

impl Reducer<'_> {
    fn build(&mut self, wide: bool) {
        let op = self.plan.op();
        let identity = self.k.let_("identity", identity(op));
        let sum = if self.plan.vector() == 4 {
            self.load_vectors(identity, wide)
        } else {
            self.load_items(identity)
        };
        match self.plan.finish() {
            Finish::Shuffle => self.fold_by_shuffles(sum, identity),
            Finish::Tree => _ = self.fold_by_tree(sum, 1),
            Finish::UnrolledWarp => {
                let x = self.fold_by_tree(sum, 2 * WARP);
                self.unrolled_warp(x, identity);
            }
        }
    }
}

fn halve() -> Step {
    Step::Div(2.into())
}

fn double() -> Step {
    Step::Mul(2.into())
}
