//! Steps that the launches of `mma: wgmma` and of `convert: matrix` share: kernels that split A and
//! B, `f32` fallbacks, and launches that bind what their kernels need.

use crate::ir::contract::Contract;
use crate::ir::program::{KernelId, Program, Slot, Step};
use crate::ir::{Expr, Extent, IrError, KernelBuilder, Operand, Requirement, VerifiedKernel};
use crate::lower::sgemm::common::frame::Frame;
use crate::lower::sgemm::common::groups;
use crate::lower::sgemm::common::problem::{GemmProblem, TakenMatrices};
use crate::lower::sgemm::common::schedule::Origin;
use crate::lower::sgemm::kernel::{head, kernel};
use crate::lower::sgemm::simt::staged::product;
use crate::lower::sgemm::splitting;
use crate::lower::sgemm::splitting::row_scale;
use crate::plan::{KernelKind, SgemmPlan, SplitsPlan};

/// Builds the kernels that split the operands, in launch order.
pub(super) fn makers(
    program: &mut Program,
    plan: &SgemmPlan,
    of: &SplitsPlan,
) -> Result<Vec<KernelId>, IrError> {
    let row_max = of.arith().is_scaled().then(|| row_scale::kernel(plan)).transpose()?;
    let kernels = row_max.into_iter().chain([splitting::kernel(plan, of)?]);
    Ok(kernels.map(|kernel| program.kernel(kernel)).collect())
}

/// Builds the multiplying kernel and its scalar variant, if it has one.
pub(super) fn products(program: &mut Program, plan: &SgemmPlan) -> Result<Vec<KernelId>, IrError> {
    let mut kernels = vec![program.kernel(kernel(plan)?)];
    if let Some(scalar) = plan.scalar_variant() {
        kernels.push(program.kernel(kernel(&scalar)?));
    }
    Ok(kernels)
}

/// Builds a launch of the first kernel whose contract is met, with the bindings that these kernels
/// need.
pub(super) fn launch(
    program: &Program,
    choose: Vec<KernelId>,
    bind: &[(Operand, Slot)],
    extents: &[(Extent, Expr)],
) -> Step {
    let contracts = || choose.iter().map(|id| program.kernels[id.0].contract());
    let takes = |of: Extent| contracts().any(|contract| contract.takes_extent(of));
    let bound = |of| contracts().flat_map(Contract::arrays).any(|array| array.operand == of);
    let bind = bind.iter().filter(|(of, _)| bound(*of)).copied().collect();
    let extents = extents.iter().filter(|(of, _)| takes(*of)).cloned().collect();
    Step::launch(choose, bind, extents)
}

/// Second title of a fallback: a comment on its code and its name.
const GENERAL: &str =
    "It accepts any K, as all f32 fallbacks do, and is named after the kernel that it replaces.";

/// Builds the `f32` kernel for K = 0, for which nothing is split. It is the same kernel as the
/// fallback for values that the splits cannot represent, without the flag.
pub(super) fn without_terms(plan: &SgemmPlan) -> Result<VerifiedKernel, IrError> {
    const TITLE: &str = "Fallback for K = 0 and for empty matrices, without tensor cores.";
    plain_fallback(plan, TITLE)
}

/// Builds an `f32` kernel that computes each tile, without a condition.
pub(super) fn plain_fallback(
    plan: &SgemmPlan,
    title: &'static str,
) -> Result<VerifiedKernel, IrError> {
    fallback(plan, title, |b, frame, _| {
        let origin = frame.own_origin(b);
        tile(b, frame, origin);
    })
}

fn fallback_name(plan: &SgemmPlan) -> String {
    format!("{}_f32", plan.kernel_name())
}

/// Plan of the `f32` kernels that a GEMM with splits also has.
pub(super) fn f32_plan(plan: &SgemmPlan) -> Result<SgemmPlan, IrError> {
    plan.in_f32().map_err(|faults| IrError {
        kernel: fallback_name(plan),
        rule: format!("the spec of the fallback has no plan: {faults}"),
    })
}

/// Builds an `f32` kernel for the shapes of the plan's kernel.
pub(super) fn fallback(
    plan: &SgemmPlan,
    title: &'static str,
    body: impl FnOnce(&mut KernelBuilder, &Frame<'_>, GemmProblem),
) -> Result<VerifiedKernel, IrError> {
    let name = fallback_name(plan);
    let own = f32_plan(plan)?;
    let mut b = KernelBuilder::new(name.clone());
    head(&mut b, &own);
    let problem = GemmProblem::declare(&mut b, &own, TakenMatrices::All).sharing_folds();
    if !plan.guarded() {
        // The accepted M and N must not depend on K.
        let (rows, cols) = plan.cluster_tile();
        for (scalar, of) in [(problem.m, rows), (problem.n, cols)] {
            b.require(Requirement::Multiple { scalar, of: of.into() });
        }
    }
    let KernelKind::Tiled(shape) = own.kind() else {
        return Err(IrError { kernel: name, rule: "the spec of the fallback has a tile".into() });
    };
    let frame = Frame::declare(&mut b, &own, shape, problem, None);
    b.title(title);
    b.title(GENERAL);
    body(&mut b, &frame, problem);
    b.finish()
}

/// Emits the computation of the tile at `origin`.
pub(super) fn tile(b: &mut KernelBuilder, frame: &Frame<'_>, origin: Origin) {
    let (tiled, parts) = frame.tile_at(b, origin);
    groups::if_exists(b, origin.row, origin.end_of_group, |b| product(b, &tiled, parts, None));
}
