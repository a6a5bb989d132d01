//! Launches of a GEMM with `mma: wgmma`. One launch splits A and B, and the next multiplies the
//! splits. For FP32 emulation, an `f32` fallback follows, which computes C if the splits cannot
//! represent all values. For K = 0 nothing is split, and only the fallback runs.

use super::steps::{fallback, launch, makers, plain_fallback, products, tile, without_terms};
use super::{Bindings, accepts_splits};
use crate::ir::program::{KernelId, Program, Slot, Step, TempFill};
use crate::ir::{Elem, Expr, Extent, IrError, Operand, VerifiedKernel, VerifiedProgram};
use crate::lower::sgemm::common::splits;
use crate::lower::sgemm::common::unrepresentable::{self, Fallback};
use crate::lower::sgemm::common::workspace;
use crate::lower::sgemm::splitting::row_scale::{self, RowMax};
use crate::plan::{SgemmPlan, WgmmaPlan};
use crate::spec::Factor;

/// Rule that a plan violates if it does not accept splits from the caller.
pub(crate) const GIVEN: &str = "only single GEMMs with `mma: wgmma` take splits";

/// Builds the steps of a GEMM from its bindings.
pub(crate) fn steps(
    program: &mut Program,
    plan: &SgemmPlan,
    t: &WgmmaPlan,
    bindings: Bindings,
) -> Result<Vec<Step>, IrError> {
    if t.splits().are_matrices() {
        return of_matrices(program, plan, bindings);
    }
    let Bindings { mut bind, mut extents, size: [m, n, depth], distinct, terms, given } = bindings;
    extents.push((Extent::PITCH, splits::pitch(&t.splits(), &depth)));
    let counts = Factor::BOTH.map(|factor| distinct.as_ref().map(|of| &of[factor.index()]));
    let splits = splits::slots(
        program,
        &t.splits(),
        splits::Lines { counts: [&m, &n], terms: &depth },
        counts,
        given,
    );
    bind.extend(splits);
    if t.arith().is_emulation() {
        bind.extend(unrepresentable::slots(program));
    }
    let product = products(program, plan)?;
    let fallback = program.kernel(in_f32(plan, t, given)?);
    if t.arith().is_scaled() {
        let slots = row_scale::slots(program, [&m, &n], counts, given);
        bind.extend(slots);
    }
    let before = match given {
        [true, true] => Vec::new(),
        _ => makers(program, plan, &t.splits())?,
    };
    // A kernel that splits only one operand takes an empty matrix for the other operand.
    let one_side = Factor::BOTH.into_iter().find(|factor| given[factor.index()]);
    let own = one_side.filter(|_| !before.is_empty()).map(|factor| {
        let (mut bind, mut extents) = (bind.clone(), extents.clone());
        let nothing = without_lines(program, plan, t, factor, &depth);
        bind.retain(|(of, _)| nothing.iter().all(|(other, _)| other != of));
        bind.extend(nothing);
        let lines = [Extent::M, Extent::N][factor.index()];
        extents.iter_mut().filter(|(of, _)| *of == lines).for_each(|(_, n)| *n = 0u64.into());
        (bind, extents)
    });
    let (own_bind, own_extents) = own.as_ref().map_or((&bind, &extents), |(b, e)| (b, e));
    let making = |id: &KernelId| launch(program, vec![*id], own_bind, own_extents);
    let mut then: Vec<Step> = before.iter().map(making).collect();
    let launch = |choose| launch(program, choose, &bind, &extents);
    then.push(launch(product));
    // The splits that a caller passes represent all values.
    if t.arith().is_emulation() && given != [true, true] {
        then.push(launch(vec![fallback]));
    }
    // If A or B is empty, it has no splits, and the splits of the other operand are not needed.
    let cond = terms.gt(0u64).and(m.gt(0u64)).and(n.gt(0u64));
    Ok(vec![Step::either(cond, then, vec![launch(vec![fallback])])])
}

/// Builds the step of a GEMM whose kernel reads A and B themselves. A kernel on CUDA cores takes
/// matrices that no tensor map describes, and K = 0.
fn of_matrices(
    program: &mut Program,
    plan: &SgemmPlan,
    bindings: Bindings,
) -> Result<Vec<Step>, IrError> {
    const TITLE: &str = "For matrices that no tensor map describes and for K = 0, without tensor \
                         cores.";
    let Bindings { bind, extents, size: [m, n, _], terms, .. } = bindings;
    let mut choose = products(program, plan)?;
    let other = program.kernel(plain_fallback(plan, TITLE)?);
    choose.push(other);
    let launch = |choose| launch(program, choose, &bind, &extents);
    let cond = terms.gt(0u64).and(m.gt(0u64)).and(n.gt(0u64));
    Ok(vec![Step::either(cond, vec![launch(choose)], vec![launch(vec![other])])])
}

/// Builds the program that splits B for later GEMMs in the same arithmetic. Its input is B, and its
/// outputs are the splits.
///
/// For FP32 emulation, a flag is added, which the caller passes as 0. It is nonzero afterwards if
/// the splits cannot represent some value. For scaled arithmetic, the greatest magnitude of each
/// column is added, in an array that the caller passes as zeros.
///
/// # Errors
/// Returns an error if the plan is for a batch or without `mma: wgmma`. Also returns an error if a
/// kernel violates a rule of the IR, which is a bug in this module.
pub fn splits_of_b(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    let Some(t) = plan.kind().wgmma().filter(|_| accepts_splits(plan)) else {
        return Err(IrError { kernel: plan.kernel_name(), rule: GIVEN.into() });
    };
    let mut program = Program::default();
    let [n, k] = [Extent::N, Extent::K].map(|extent| program.extent(extent));
    let of_b = Factor::B.index();
    let b = program.input(Operand::Input(of_b), "b", plan.types().b, [k.clone(), n.clone()]);
    let dims = splits::dims(&t.splits(), Factor::B, &n, &k, None);
    let mut bind = vec![b, program.output(workspace::SPLITS[of_b], "splits", t.elem(), dims)];
    if t.arith().is_emulation() {
        let operand = workspace::UNREPRESENTABLE;
        bind.push(program.in_out(operand, "unrepresentable", Elem::U32, [1u64.into()]));
    }
    if t.arith().is_scaled() {
        bind.push(program.in_out(workspace::ROW_MAX[of_b], "maxima", Elem::U32, [n.clone()]));
    }
    bind.extend(without_lines(&mut program, plan, t, Factor::A, &k));
    let pitch = splits::pitch(&t.splits(), &k);
    let extents =
        [(Extent::M, 0u64.into()), (Extent::N, n), (Extent::K, k), (Extent::PITCH, pitch)];
    let makers = makers(&mut program, plan, &t.splits())?;
    let steps = makers.iter().map(|id| launch(&program, vec![*id], &bind, &extents)).collect();
    program.steps = steps;
    VerifiedProgram::new(program)
}

/// Binds an empty matrix and empty splits for A or B.
fn without_lines(
    program: &mut Program,
    plan: &SgemmPlan,
    t: &WgmmaPlan,
    factor: Factor,
    terms: &Expr,
) -> Vec<(Operand, Slot)> {
    let (nth, elem) = (factor.index(), plan.types().factor(factor));
    let none = || Expr::U64(0);
    let matrix = [[none(), terms.clone()], [terms.clone(), none()]][nth].clone();
    let mut slots = vec![
        (Operand::Input(nth), program.temp_of("no matrix", elem, matrix, TempFill::Kept)),
        (
            workspace::SPLITS[nth],
            program.temp(
                "no splits",
                t.elem(),
                splits::dims(&t.splits(), factor, &none(), terms, None),
            ),
        ),
    ];
    if t.arith().is_scaled() {
        let row_max = program.temp_of("no lines", Elem::U32, [none()], TempFill::Kept);
        slots.push((workspace::ROW_MAX[nth], row_max));
    }
    slots
}

/// Builds the `f32` kernel, which accepts any shape and any address.
fn in_f32(plan: &SgemmPlan, t: &WgmmaPlan, given: [bool; 2]) -> Result<VerifiedKernel, IrError> {
    if !t.arith().is_emulation() {
        return without_terms(plan);
    }
    let found = given.map(|is_given| !is_given && t.arith().is_scaled());
    const TITLE: &str = "f32 fallback for values that the split cannot represent.";
    fallback(plan, TITLE, |b, frame, problem| {
        let blocks = frame.blocks();
        let fallback = Fallback::parameters(b);
        let origin = found.contains(&true).then(|| {
            let problem = problem.with_distinct(b);
            let row_max = RowMax::declare(b, &problem, found);
            let origin = frame.own_origin(b);
            row_max.reset(b, &problem, &origin, [frame.bm, frame.bn], frame.threads);
            origin
        });
        fallback.run(b, problem.k.into(), blocks, |b| {
            let origin = origin.unwrap_or_else(|| frame.own_origin(b));
            tile(b, frame, origin);
        });
    })
}
