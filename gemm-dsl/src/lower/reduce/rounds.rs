//! Reductions in rounds. In each round, the threads of a result read a fixed number of elements,
//! until none are left. If several blocks fold a result, each stores a partial result. A fixed tree
//! over the block numbers folds the partial results.

use super::accumulators::{FoldAccumulators, Folding};
use super::expressions::{Expressions, Needs};
use super::finish::Finish;
use super::fold::Fold;
use super::long::LongSegments;
use super::params::{Params, geometry, params, requirements};
use super::place::{FoldPlace, Folds};
use super::reader::ElementReader;
use super::role::Role;
use super::shape::{ReduceShape, add_numbers};
use super::team::Team;
use super::topk::Selection;
use crate::ir::program::{Argument, KernelId, Program, Slot, Step};
use crate::ir::{
    Const, Expr, IrError, KernelBuilder, KernelFamily, Operand, Variant, VerifiedKernel,
    VerifiedProgram,
};
use crate::lower::tickets;
use crate::plan::{Blocks, ReducePlan};
use crate::spec::Over;

/// Name of the array of partial results if a partial result is one number.
const PARTIALS: &str = "partials";

/// Program of a reduction in rounds.
pub(super) fn program(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let (spec, over) = (plan.spec(), plan.spec().over);
    let mut program = Program::default();
    let role = match (plan.has_partials(), plan.is_once()) {
        (false, _) => Role::Whole,
        (true, false) => Role::First,
        (true, true) => Role::Once,
    };
    let (shape, extents) = ReduceShape::of_program(&mut program, plan, role);
    let mut bind = Vec::new();
    let dims = shape.elements();
    for (n, name) in spec.inputs().into_iter().enumerate() {
        let (elem, dims) = (plan.types().element, dims.clone());
        bind.push(program.input(Operand::Input(n), name.to_owned(), elem, dims));
    }
    if let (Over::Segments, Some(segments)) = (over, &shape.outer) {
        let (operand, dims) = (Operand::Input(bind.len()), [segments.clone() + 1u64]);
        bind.push(program.input(operand, "offsets", plan.types().index, dims));
    }
    add_numbers(&mut program, plan, [true, true]);
    let results = shape.results();
    for (n, (name, elem)) in spec.results().into_iter().enumerate() {
        bind.push(program.output(Operand::Output(n), name, elem, results.clone()));
    }
    let launch = |choose, bind| Step::launch(choose, bind, extents.clone());
    if role == Role::Whole {
        let choose = variants(&mut program, plan, role)?;
        program.steps = vec![launch(choose, bind)];
        return VerifiedProgram::new(program);
    }

    let dims = shape.partials();
    let is_one = plan.parts().len() == 1;
    let temps = plan.parts().iter().enumerate().map(|(n, part)| {
        let name = if is_one { PARTIALS } else { part.plural };
        (Operand::Temp(n), program.temp(name, part.elem, dims.clone()))
    });
    let temps: Vec<(Operand, Slot)> = temps.collect();
    let is_output = |(operand, _): &&(Operand, Slot)| matches!(operand, Operand::Output(_));
    if role == Role::Once {
        let tickets = (Operand::Temp(temps.len()), tickets::slot(&mut program, shape.tiles()));
        bind.extend(temps);
        bind.push(tickets);
        let choose = variants(&mut program, plan, role)?;
        program.steps = vec![launch(choose, bind)];
    } else {
        let first = variants(&mut program, plan, role)?;
        let last = kernel(plan, Role::Last, false, &program.arguments)?;
        let last = vec![program.kernel(last)];
        let outputs: Vec<_> = bind.iter().filter(is_output).chain(&temps).copied().collect();
        bind.retain(|bound| !is_output(&bound));
        bind.extend(temps);
        program.steps = vec![launch(first, bind), launch(last, outputs)];
    }
    VerifiedProgram::new(program)
}

/// Builds the kernels that fold elements: one with vector loads if the plan has vectors, and then
/// one with scalar loads.
pub(super) fn variants(
    program: &mut Program,
    plan: &ReducePlan,
    role: Role,
) -> Result<Vec<KernelId>, IrError> {
    let mut choose = Vec::new();
    for wide in [true, false].into_iter().filter(|wide| plan.vector() > 1 || !wide) {
        let kernel = kernel(plan, role, wide, &program.arguments)?;
        choose.push(program.kernel(kernel));
    }
    Ok(choose)
}

/// Builds one kernel. `wide` is true to load a vector by one 16-byte access. `arguments` are the
/// numbers of its program.
pub(super) fn kernel(
    plan: &ReducePlan,
    role: Role,
    wide: bool,
    arguments: &[Argument],
) -> Result<VerifiedKernel, IrError> {
    let spec = plan.spec();
    let name = match role {
        Role::Last => format!("{}_of_partials", plan.kernel_name()),
        Role::Shard => format!("{}_of_shard", plan.kernel_name()),
        Role::Whole | Role::First | Role::Once => plan.kernel_name(),
    };
    let mut b = KernelBuilder::new(name);
    b.family(KernelFamily::Reduction);
    b.title(title(plan, role));
    if matches!(role, Role::First | Role::Shard) {
        b.title(format!("Kernel {}_of_partials combines the partials.", plan.kernel_name()));
    }
    b.title(format!("Generated from reduce_kernel!({spec})"));
    if plan.vector() > 1 && role != Role::Last {
        b.variant(if wide { Variant::Vector } else { Variant::Scalar });
        if !wide {
            b.title(match spec.over {
                Over::All | Over::Segments => {
                    "Scalar variant without 16-byte loads, for any alignment."
                }
                Over::Rows => "Scalar variant without 16-byte loads, for any alignment and any n.",
                Over::Columns | Over::Middle => {
                    "Scalar variant without 16-byte accesses, for any alignment and number of \
                     columns."
                }
            });
        }
    }
    let reads = role.reads();
    let needs = Needs { map: reads, finish: role.finishes() };
    let expressions = Expressions::new(&mut b, plan, needs);
    let fold = Fold::new(&mut b, plan, &expressions);
    let block = b.constant("BLOCK", plan.block() as i32, "threads per block");
    b.launch_bounds(block);
    let params = params(&mut b, plan, role, wide, (&fold, arguments));
    geometry(&mut b, plan, &params);
    requirements(&mut b, plan, &fold, &params);
    let place = FoldPlace::new(&mut b, plan, &params, block);
    let identity = fold.parts().iter().enumerate().map(|(n, part)| match n {
        // The same variable also replaces missing elements.
        0 if !fold.counts() => {
            fold.identity_comment(&mut b);
            b.let_("identity", part.identity.clone()).into()
        }
        _ => part.identity.clone(),
    });
    let identity: Vec<Expr> = identity.collect();
    if plan.topk().is_some() {
        let missing = identity[0].clone();
        let (fold, expressions, place, params) = (&fold, &expressions, &place, &params);
        Selection { plan, fold, expressions, place, params, missing, wide }.build(&mut b, role);
    } else {
        let kernel = FoldKernel {
            plan,
            role,
            wide,
            expressions: &expressions,
            fold: &fold,
            params: &params,
            place: &place,
            block,
            identity,
        };
        kernel.build(&mut b);
    }
    b.finish()
}

/// Inputs for the kernel of a fold.
struct FoldKernel<'k> {
    plan: &'k ReducePlan,
    role: Role,
    wide: bool,
    expressions: &'k Expressions,
    fold: &'k Fold,
    params: &'k Params,
    place: &'k FoldPlace,
    block: Const,
    /// Accumulator of a fold without elements.
    identity: Vec<Expr>,
}

impl FoldKernel<'_> {
    fn build(&self, b: &mut KernelBuilder) {
        let Self { plan, role, wide, expressions, fold, params, place, block, .. } = *self;
        let kept = FoldAccumulators::new(b, fold, &self.identity, place);
        let mut team = Team {
            plan,
            fold,
            identity: self.identity.clone(),
            block,
            tid: place.tid.clone(),
            folds_twice: role == Role::Once,
            shared: None,
        };
        if role.reads() {
            let missing = missing_of(fold, &self.identity);
            let round = "ROUND";
            let reader = ElementReader { plan, fold, expressions, place, round, missing, wide };
            reader.rounds(b, params, &Folding { fold, place, kept: &kept });
        }
        let finish = Finish { plan, fold, expressions, place, params, wide };
        finish.build(b, &mut team, &kept, role);
        if let Folds::Segment { groups: Some(groups), .. } = &place.folds {
            let long = LongSegments { plan, fold, expressions, params, block, groups };
            long.build(b, &mut team, &kept, place, missing_of(fold, &self.identity));
        }
    }
}

/// Value that replaces a missing element.
fn missing_of(fold: &Fold, identity: &[Expr]) -> Expr {
    if fold.counts() { fold.missing() } else { identity[0].clone() }
}

fn title(plan: &ReducePlan, role: Role) -> String {
    let noun = super::noun(plan);
    let n = if role == Role::Shard { "n_total" } else { "n" };
    let of = match plan.spec().over {
        Over::All => format!("of {n} elements"),
        Over::Rows => format!("of each row of {n} elements"),
        Over::Columns => format!("of each column of {n} elements"),
        Over::Middle => format!("of each column of {n} elements of each matrix"),
        Over::Segments => "of each segment of an array".to_owned(),
    };
    match (role, plan.blocks()) {
        (Role::Last, _) => {
            format!("{noun} {of}, last pass: combines the partials of the previous pass.")
        }
        (Role::First, Blocks::InTurn(most)) if plan.topk().is_some() => {
            format!("{noun} {of}, first pass: at most {most} blocks, each with a selection.")
        }
        (Role::First, Blocks::InTurn(most)) => {
            format!("{noun} {of}, first pass: at most {most} blocks, each with one partial.")
        }
        (Role::Once, Blocks::InTurn(most)) => {
            format!("{noun} {of}, in one launch of at most {most} blocks.")
        }
        (Role::First, Blocks::Runs(_)) => {
            format!("{noun} {of}, first pass: one block and one partial per run.")
        }
        (Role::Once, Blocks::Runs(_)) => {
            format!("{noun} {of}, in one launch with a block per run.")
        }
        (Role::Shard, _) => {
            format!(
                "{noun} {of}, first pass over a shard, the n elements from `first` on: one partial \
                 per run."
            )
        }
        (Role::Whole | Role::First | Role::Once, _) => format!("{noun} {of}."),
    }
}
