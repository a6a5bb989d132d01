//! Launches of a GEMM with `convert: matrix`. One launch splits A and B, and the next multiplies
//! the splits. For K = 0 nothing is split, and an `f32` kernel runs instead.

use super::Bindings;
use super::steps::{launch, makers, products, without_terms};
use crate::ir::program::{Program, Step};
use crate::ir::{Extent, IrError};
use crate::lower::sgemm::common::{splits, unrepresentable};
use crate::plan::{SgemmPlan, SplitsPlan};
use crate::spec::Factor;

/// Builds the steps of a GEMM from its bindings.
pub(crate) fn steps(
    program: &mut Program,
    plan: &SgemmPlan,
    of: &SplitsPlan,
    bindings: Bindings,
) -> Result<Vec<Step>, IrError> {
    let Bindings { mut bind, mut extents, size: [m, n, depth], distinct, terms, given } = bindings;
    extents.push((Extent::PITCH, splits::pitch(of, &depth)));
    let counts = Factor::BOTH.map(|factor| distinct.as_ref().map(|of| &of[factor.index()]));
    let lines = splits::Lines { counts: [&m, &n], terms: &depth };
    bind.extend(splits::slots(program, of, lines, counts, given));
    if of.arith().is_emulation() {
        bind.extend(unrepresentable::tile_flags(program, of, [&m, &n], &depth, counts));
    }
    let product = products(program, plan)?;
    let makers = makers(program, plan, of)?;
    let empty = without_terms(plan)?;
    let empty = program.kernel(empty);
    let launch = |choose| launch(program, choose, &bind, &extents);
    let then = makers.into_iter().map(|id| vec![id]).chain([product]).map(launch).collect();
    // If A or B is empty, it has no splits.
    let cond = terms.gt(0u64).and(m.gt(0u64)).and(n.gt(0u64));
    Ok(vec![Step::either(cond, then, vec![launch(vec![empty])])])
}
