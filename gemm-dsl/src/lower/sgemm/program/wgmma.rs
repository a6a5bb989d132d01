//! The launches of such a product: planes of A and B, the product of these, and, where an arithmetic stands for `f32`, a
//! kernel in `f32` that computes it if planes do not hold all numbers. Without terms there is nothing to make planes of,
//! and that kernel alone is launched.

use super::super::{Given, has_planes_to_give, head, kernel, product};
use crate::ir::contract::{Contract, Parameter};
use crate::ir::program::{Fill, KernelId, Launch, Program, Slot, Step};
use crate::ir::{
    Elem, Expr, Extent, IrError, KernelBuilder, Operand, Requirement, Source, VerifiedKernel,
    VerifiedProgram,
};
use crate::lower::sgemm::shared::problem::{Problem, Takes};
use crate::lower::sgemm::shared::schedule::Origin;
use crate::lower::sgemm::shared::tile::Frame;
use crate::lower::sgemm::shared::unrepresentable;
use crate::lower::sgemm::shared::unrepresentable::StandsIn;
use crate::lower::sgemm::shared::{schedule, workspace};
use crate::lower::sgemm::wgmma::row_scale;
use crate::lower::sgemm::wgmma::row_scale::Greatest;
use crate::lower::sgemm::wgmma::splits;
use crate::plan::{SgemmPlan, Shape, TensorPlan};

/// What a plan breaks that takes no planes of the caller's.
pub(crate) const GIVEN: &str = "only single products of warpgroups are given planes";

/// The steps of a product that is given so much.
pub(crate) fn steps(
    program: &mut Program,
    (plan, t): (&SgemmPlan, &TensorPlan),
    Given { mut bind, mut extents, size: [m, n, depth], distinct, terms, kept }: Given,
) -> Result<Vec<Step>, IrError> {
    extents.push((Extent::PITCH, splits::pitch(&depth)));
    let counts = [0, 1].map(|nth| distinct.as_ref().map(|of| &of[nth]));
    let planes = splits::slots(program, t, ([&m, &n], &depth), counts, kept);
    bind.extend(workspace::PLANES.into_iter().zip(planes));
    if t.arith().is_emulation() {
        bind.extend(unrepresentable::slots(program));
    }
    let mut product = vec![program.kernel(kernel(plan)?)];
    if let Some(scalar) = plan.scalar_variant() {
        product.push(program.kernel(kernel(&scalar)?));
    }
    let stand_in = program.kernel(in_f32(plan, t, kept)?);
    if t.arith().is_scaled() {
        let slots = row_scale::slots(program, [&m, &n], counts, kept);
        bind.extend(workspace::GREATEST.into_iter().zip(slots));
    }
    let before = match kept {
        [true, true] => Vec::new(),
        _ => makers(program, plan, t)?,
    };
    // Whoever makes planes of one side finds no line of the other.
    let one_side = kept.iter().position(|is_kept| *is_kept).filter(|_| !before.is_empty());
    let own = one_side.map(|nth| {
        let (mut bind, mut extents) = (bind.clone(), extents.clone());
        let nothing = without_lines(program, t, nth, &depth);
        bind.retain(|(of, _)| nothing.iter().all(|(other, _)| other != of));
        bind.extend(nothing);
        let lines = [Extent::M, Extent::N][nth];
        extents.iter_mut().filter(|(of, _)| *of == lines).for_each(|(_, n)| *n = 0u64.into());
        (bind, extents)
    });
    let (own_bind, own_extents) = own.as_ref().map_or((&bind, &extents), |(b, e)| (b, e));
    let making = |id: &KernelId| launch(program, vec![*id], own_bind, own_extents);
    let mut then: Vec<Step> = before.iter().map(making).collect();
    let launch = |choose| launch(program, choose, &bind, &extents);
    then.push(launch(product));
    // Where all planes are given they hold all numbers.
    if t.arith().is_emulation() && kept != [true, true] {
        then.push(launch(vec![stand_in]));
    }
    // Of a matrix without elements no plane is made, nor is one of the other needed.
    let cond = terms.gt(0u64).and(m.gt(0u64)).and(n.gt(0u64));
    Ok(vec![Step::If { cond, then, otherwise: vec![launch(vec![stand_in])] }])
}

/// The program that makes the planes of B, for products of the same arithmetic: it is given B and gives its planes; where
/// they stand for `f32` also a word, which is given as 0 and is not where they do not hold all numbers, and where columns are
/// scaled the greatest magnitude of each, which are given as zeros.
///
/// # Errors
/// A plan of no warpgroups, or of a batch; a kernel that breaks a rule of the IR: a mistake of this module.
pub fn planes_of_b(plan: &SgemmPlan) -> Result<VerifiedProgram, IrError> {
    let Some(t) = plan.shape().tensor().filter(|_| has_planes_to_give(plan)) else {
        return Err(IrError { kernel: plan.kernel_name(), rule: GIVEN.into() });
    };
    let mut program = Program::default();
    let [n, k] = [Extent::N, Extent::K].map(|extent| program.extent(extent));
    let b = program.input("b", Elem::F32, [k.clone(), n.clone()]);
    let planes = program.output("planes", t.elem(), splits::dims(t, &n, &k, None));
    let mut bind = vec![(Operand::Input(1), b), (workspace::PLANES[1], planes)];
    if t.arith().is_emulation() {
        bind.push((workspace::LOST, program.in_out("lost", Elem::U32, [1u64.into()])));
    }
    if t.arith().is_scaled() {
        let greatest = program.in_out("greatest", Elem::U32, [n.clone()]);
        bind.push((workspace::GREATEST[1], greatest));
    }
    bind.extend(without_lines(&mut program, t, 0, &k));
    let pitch = splits::pitch(&k);
    let extents =
        [(Extent::M, 0u64.into()), (Extent::N, n), (Extent::K, k), (Extent::PITCH, pitch)];
    let makers = makers(&mut program, plan, t)?;
    let steps = makers.iter().map(|id| launch(&program, vec![*id], &bind, &extents)).collect();
    program.steps = steps;
    VerifiedProgram::new(program)
}

/// The kernels that make planes, in their order.
fn makers(
    program: &mut Program,
    plan: &SgemmPlan,
    t: &TensorPlan,
) -> Result<Vec<KernelId>, IrError> {
    let greatest = t.arith().is_scaled().then(|| row_scale::kernel(plan)).transpose()?;
    let kernels = greatest.into_iter().chain([splits::kernel(plan, t)?]);
    Ok(kernels.map(|kernel| program.kernel(kernel)).collect())
}

/// What stands for A, 0, or B, 1, and its planes, where it has no lines.
fn without_lines(
    program: &mut Program,
    t: &TensorPlan,
    nth: usize,
    terms: &Expr,
) -> Vec<(Operand, Slot)> {
    let none = || Expr::U64(0);
    let matrix = [[none(), terms.clone()], [terms.clone(), none()]][nth].clone();
    let mut slots = vec![
        (Operand::Input(nth), program.temp_of("no matrix", Elem::F32, matrix, Fill::Kept)),
        (
            workspace::PLANES[nth],
            program.temp("no planes", t.elem(), splits::dims(t, &none(), terms, None)),
        ),
    ];
    if t.arith().is_scaled() {
        let greatest = program.temp_of("no lines", Elem::U32, [none()], Fill::Kept);
        slots.push((workspace::GREATEST[nth], greatest));
    }
    slots
}

/// A launch of the first of some kernels whose contract is met, given what they take.
fn launch(
    program: &Program,
    choose: Vec<KernelId>,
    bind: &[(Operand, Slot)],
    extents: &[(Extent, Expr)],
) -> Step {
    let contracts = || choose.iter().map(|id| program.kernels[id.0].contract());
    let takes = |of: &Extent| {
        contracts().flat_map(Contract::params).any(
            |param| matches!(param, Parameter::Scalar { source: Source::Extent(e), .. } if e == of),
        )
    };
    let bound = |of| contracts().flat_map(Contract::arrays).any(|array| array.operand == of);
    Step::Launch(Launch {
        bind: bind.iter().filter(|(of, _)| bound(*of)).copied().collect(),
        extents: extents.iter().filter(|(of, _)| takes(of)).cloned().collect(),
        choose,
    })
}

/// The kernel in `f32`, for whatever shapes and addresses.
fn in_f32(plan: &SgemmPlan, t: &TensorPlan, kept: [bool; 2]) -> Result<VerifiedKernel, IrError> {
    let name = format!("{}_f32", plan.kernel_name());
    let own = plan.in_f32().map_err(|faults| IrError {
        kernel: name.clone(),
        rule: format!("the line that stands in for it has no plan: {faults}"),
    })?;
    let mut b = KernelBuilder::new(name.clone());
    head(&mut b, &own);
    let problem = Problem::declare(&mut b, &own, Takes::All);
    if !plan.guarded() {
        // Whether M and N are accepted does not depend on whether there are terms.
        let (rows, cols) = plan.cluster_tile();
        for (scalar, of) in [(problem.m, rows), (problem.n, cols)] {
            b.require(Requirement::Multiple { scalar, of: of.into() });
        }
    }
    let Shape::Tiled(shape) = own.shape() else {
        return Err(IrError { kernel: name, rule: "the line that stands in has a tile".into() });
    };
    let frame = Frame::declare(&mut b, &own, shape, problem);
    let tile = |b: &mut KernelBuilder, origin: Origin| {
        let (tiled, parts) = frame.tile_at(b, origin);
        product(b, &tiled, parts, None);
    };
    if !t.arith().is_emulation() {
        b.title("Stands in for tensor cores where there are no terms.");
        let origin = frame.own_origin(&mut b);
        tile(&mut b, origin);
        return b.finish();
    }
    b.title("Stands in for tensor cores where planes do not hold all numbers.");
    let blocks = schedule::tiles_of(&own, &problem);
    let stands_in = StandsIn::parameters(&mut b);
    let found = kept.map(|is_kept| !is_kept && t.arith().is_scaled());
    let origin = found.contains(&true).then(|| {
        let problem = problem.with_distinct(&mut b);
        let greatest = Greatest::of(&mut b, &problem, found);
        let origin = frame.own_origin(&mut b);
        greatest.reset(&mut b, &problem, &origin, ([frame.bm, frame.bn], frame.threads));
        origin
    });
    stands_in.run(&mut b, (problem.k.into(), blocks), |b| {
        let origin = origin.unwrap_or_else(|| frame.own_origin(b));
        tile(b, origin);
    });
    b.finish()
}
