//! The launches of such a product: planes of A and B, the product of these, and, where an arithmetic stands for `f32`, a
//! kernel in `f32` that computes it if planes do not hold all numbers. Without terms there is nothing to make planes of,
//! and that kernel alone is launched.

use super::super::lost::{self, StandsIn};
use super::super::problem::{Problem, Takes};
use super::super::scale::{self, Greatest};
use super::super::tile::Frame;
use super::super::{Given, head, kernel, planes, product, schedule};
use crate::ir::contract::Parameter;
use crate::ir::program::{KernelId, Launch, Program, Step};
use crate::ir::{
    Elem, Expr, Extent, IrError, KernelBuilder, Requirement, Source, Special, VerifiedKernel,
};
use crate::plan::{SgemmPlan, Shape, TensorPlan};

/// The steps of a product that is given so much.
pub(in crate::lower::sgemm) fn steps(
    program: &mut Program,
    (plan, t): (&SgemmPlan, &TensorPlan),
    Given { mut bind, extents, size: [m, n, depth], batch, terms }: Given,
) -> Result<Vec<Step>, IrError> {
    bind.extend(planes::slots(program, t, ([&m, &n], &depth), batch.as_ref()));
    if t.arith().is_emulation() {
        bind.extend(lost::slots(program));
    }
    let mut product = vec![program.kernel(kernel(plan)?)];
    let [planes, stand_in] =
        [planes::kernel(plan, t)?, in_f32(plan, t)?].map(|k| program.kernel(k));
    let greatest = match t.arith().is_scaled() {
        true => {
            bind.extend(scale::slots(program, [&m, &n], batch.as_ref()));
            Some(program.kernel(scale::kernel(plan)?))
        }
        false => None,
    };
    if let Some(scalar) = plan.scalar_variant() {
        product.push(program.kernel(kernel(&scalar)?));
    }
    let launch = |choose: Vec<KernelId>| {
        let kernel = &program.kernels[choose[0].0];
        let takes = |of: &Extent| {
            kernel.contract().params().iter().any(|param| {
                matches!(param, Parameter::Scalar { source: Source::Extent(e), .. } if e == of)
            })
        };
        let bound = |of| kernel.contract().arrays().any(|array| array.operand == of);
        Step::Launch(Launch {
            bind: bind.iter().filter(|(of, _)| bound(*of)).copied().collect(),
            extents: extents.iter().filter(|(of, _)| takes(of)).cloned().collect(),
            choose,
        })
    };
    let before = greatest.into_iter().chain([planes]).map(|id| vec![id]);
    let mut then: Vec<Step> = before.chain([product]).map(launch).collect();
    if t.arith().is_emulation() {
        then.push(launch(vec![stand_in]));
    }
    // Of a matrix without elements no plane is made, nor is one of the other needed.
    let cond = terms.gt(0u64).and(m.gt(0u64)).and(n.gt(0u64));
    Ok(vec![Step::If { cond, then, otherwise: vec![launch(vec![stand_in])] }])
}

/// The kernel in `f32`, for whatever shapes and addresses.
fn in_f32(plan: &SgemmPlan, t: &TensorPlan) -> Result<VerifiedKernel, IrError> {
    let name = format!("{}_f32", plan.kernel_name());
    let own = plan.in_f32().map_err(|faults| IrError {
        kernel: name.clone(),
        rule: format!("the line that stands in for it has no plan: {faults}"),
    })?;
    let mut k = KernelBuilder::new(name.clone());
    head(&mut k, &own);
    let problem = Problem::declare(&mut k, &own, Takes::All);
    if !plan.guarded() {
        // Whether M and N are accepted does not depend on whether there are terms.
        let (rows, cols) = plan.cluster_tile();
        for (scalar, of) in [(problem.m, rows), (problem.n, cols)] {
            k.require(Requirement::Multiple { scalar, of: of.into() });
        }
    }
    let Shape::Tiled(shape) = own.shape() else {
        return Err(IrError { kernel: name, rule: "the line that stands in has a tile".into() });
    };
    let frame = Frame::declare(&mut k, &own, shape, problem);
    let tile = |k: &mut KernelBuilder| {
        let (tiled, parts) = frame.own_tile(k);
        product(k, &tiled, parts, None);
    };
    match t.arith().is_emulation() {
        false => tile(&mut k),
        true => {
            k.title("Stands in for tensor cores where planes do not hold all numbers.");
            let blocks = schedule::tiles_of(&own, &problem);
            let stands_in = StandsIn::parameters(&mut k);
            let greatest = t.arith().is_scaled().then(|| Greatest::parameters(&mut k, &problem));
            stands_in.run(&mut k, (problem.k.into(), blocks.clone()), tile);
            if let Some(greatest) = greatest {
                let threads = Expr::I32(own.threads() as i32);
                let thread = schedule::block() * threads.clone() + Special::ThreadX;
                let all = blocks.cast(Elem::I32) * threads;
                greatest.reset(&mut k, &problem, (thread, all));
            }
        }
    }
    k.finish()
}
