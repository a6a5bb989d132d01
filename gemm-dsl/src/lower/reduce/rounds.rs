//! Reductions in rounds: the threads of a result take in so many of its elements at once, until none are left.
//! Where several blocks fold a result, each leaves a partial one, and these are folded by a fixed tree over the
//! numbers of their blocks.

use super::expressions::{Expressions, Needs};
use super::finish::Finish;
use super::fold::Fold;
use super::kept::Kept;
use super::long::Long;
use super::params::{geometry, params};
use super::place::{Folds, Place};
use super::reader::Reader;
use super::shape::{self, Shape};
use super::team::Team;
use crate::ir::program::{Launch, Program, Slot, Step};
use crate::ir::{
    Expr, Extent, IrError, KernelBuilder, Operand, Requirement, Variant, VerifiedKernel,
    VerifiedProgram,
};
use crate::lower::tickets;
use crate::plan::ReducePlan;
use crate::spec::{IndexType, Over};

/// What a kernel folds, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Elements into results.
    Whole,
    /// Elements into partials.
    First,
    /// Partials into results.
    Last,
    /// Elements into partials, and the block with the last ticket these into results.
    Once,
}

/// The program of a reduction in rounds.
pub(super) fn program(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let (spec, over) = (plan.spec(), plan.spec().over);
    let mut program = Program::default();
    let mut extents = Vec::new();
    let mut extent = |program: &mut Program, extent: Extent| {
        let value = program.extent(extent);
        extents.push((extent, value.clone()));
        value
    };
    let outer = shape::outer_extent(over).map(|outer| extent(&mut program, outer));
    let length = extent(&mut program, Extent::LENGTH);
    let inner = shape::inner_extent(over).map(|inner| extent(&mut program, inner));

    let mut bind = Vec::new();
    let shape = Shape { plan, n: length, outer, inner };
    let dims = shape.elements();
    for (n, name) in spec.inputs().into_iter().enumerate() {
        let slot = program.input(name.to_owned(), plan.types().element, dims.clone());
        bind.push((Operand::Input(n), slot));
    }
    if let (Over::Segments, Some(segments)) = (over, &shape.outer) {
        let slot = program.input("offsets", plan.types().index, [segments.clone() + 1u64]);
        bind.push((Operand::Input(bind.len()), slot));
    }
    let results = shape.results();
    for (n, (name, elem)) in spec.results().into_iter().enumerate() {
        bind.push((Operand::Output(n), program.output(name, elem, results.clone())));
    }
    let kernels = |program: &mut Program, role: Role| {
        let mut choose = Vec::new();
        for wide in [true, false].into_iter().filter(|wide| plan.vector() > 1 || !wide) {
            choose.push(program.kernel(kernel(plan, role, wide)?));
        }
        Ok::<_, IrError>(choose)
    };
    let launch = |choose, bind| Step::Launch(Launch { choose, bind, extents: extents.clone() });
    if !plan.has_partials() {
        let choose = kernels(&mut program, Role::Whole)?;
        program.steps = vec![launch(choose, bind)];
        return VerifiedProgram::new(program);
    }

    let dims = shape.partials();
    let is_one = plan.parts().len() == 1;
    let temps = plan.parts().iter().enumerate().map(|(n, part)| {
        let name = if is_one { "partials" } else { part.plural };
        (Operand::Temp(n), program.temp(name, part.elem, dims.clone()))
    });
    let temps: Vec<(Operand, Slot)> = temps.collect();
    let is_output = |(operand, _): &&(Operand, Slot)| matches!(operand, Operand::Output(_));
    if plan.is_once() {
        let tickets = (Operand::Temp(temps.len()), tickets::slot(&mut program, shape.tiles()));
        bind.extend(temps);
        bind.push(tickets);
        let choose = kernels(&mut program, Role::Once)?;
        program.steps = vec![launch(choose, bind)];
    } else {
        let first = kernels(&mut program, Role::First)?;
        let last = vec![program.kernel(kernel(plan, Role::Last, false)?)];
        let outputs: Vec<_> = bind.iter().filter(is_output).chain(&temps).copied().collect();
        bind.retain(|bound| !is_output(&bound));
        bind.extend(temps);
        program.steps = vec![launch(first, bind), launch(last, outputs)];
    }
    VerifiedProgram::new(program)
}

/// One kernel; `wide` where the elements of a vector are one 16-byte load.
fn kernel(plan: &ReducePlan, role: Role, wide: bool) -> Result<VerifiedKernel, IrError> {
    let spec = plan.spec();
    let name = match role {
        Role::Last => format!("{}_of_partials", plan.kernel_name()),
        Role::Whole | Role::First | Role::Once => plan.kernel_name(),
    };
    let mut k = KernelBuilder::new(name);
    k.title(title(plan, role));
    k.title(format!("reduce_kernel!({spec})"));
    if plan.vector() > 1 && role != Role::Last {
        k.variant(if wide { Variant::Vector } else { Variant::Scalar });
        if !wide {
            k.title(match plan.width() {
                1 => "Access variant for an input that cannot be read by aligned vectors.",
                _ => "Access variant for arrays that cannot be read or written by aligned vectors.",
            });
        }
    }
    let reads = role != Role::Last;
    let expressions =
        Expressions::new(&mut k, plan, Needs { map: reads, finish: role != Role::First });
    let fold = Fold::new(&mut k, plan, &expressions);
    let params = params(&mut k, plan, role, wide, &fold);

    let block = k.constant("BLOCK", plan.block() as i32, "threads per block");
    k.launch_bounds(block);
    geometry(&mut k, plan, role, &params);
    if spec.index == IndexType::U32 && fold.keeps_indices() {
        let max = u64::from(u32::MAX) - 1;
        k.require(Requirement::Range { scalar: params.n, min: 0, max });
    }
    let place = Place::new(&mut k, plan, &params, block);
    let identity = fold.parts().iter().enumerate().map(|(n, part)| match n {
        // It stands for missing elements, too.
        0 if !fold.counts() => k.let_("identity", part.identity.clone()).into(),
        _ => part.identity.clone(),
    });
    let identity: Vec<Expr> = identity.collect();
    let kept = Kept::new(&mut k, &fold, &identity, &place);
    let tid = place.tid.clone();
    let mut team = Team { plan, fold: &fold, identity: identity.clone(), block, tid, shared: None };
    if reads {
        let missing = missing_of(&fold, &identity);
        let reader = Reader {
            plan,
            fold: &fold,
            expressions: &expressions,
            place: &place,
            round: "ROUND",
            missing,
            wide,
        };
        reader.rounds(&mut k, &params, &kept);
    }
    let finish = Finish {
        plan,
        fold: &fold,
        expressions: &expressions,
        place: &place,
        params: &params,
        wide,
    };
    finish.build(&mut k, &mut team, &kept, role);
    if let Folds::Segment { groups: Some(groups), .. } = &place.folds {
        let long =
            Long { plan, fold: &fold, expressions: &expressions, params: &params, block, groups };
        long.build(&mut k, &mut team, &kept, (&place, missing_of(&fold, &identity)));
    }
    k.finish()
}

/// What stands for a missing element.
fn missing_of(fold: &Fold, identity: &[Expr]) -> Expr {
    if fold.counts() { fold.missing() } else { identity[0].clone() }
}

fn title(plan: &ReducePlan, role: Role) -> String {
    let (noun, blocks) = (super::noun(plan), plan.blocks());
    let of = match plan.spec().over {
        Over::All => "of n elements",
        Over::Rows => "of each row of n elements",
        Over::Columns => "of each column of n elements",
        Over::Middle => "of each column of n elements of each matrix",
        Over::Segments => "of each segment of an array",
    };
    match role {
        Role::Whole => format!("{noun} {of}."),
        Role::First => {
            format!("{noun} {of}, first part: what each of at most {blocks} blocks folds.")
        }
        Role::Last => {
            format!("{noun} {of}, last part: what the blocks before have left becomes one.")
        }
        Role::Once => format!("{noun} {of}, by at most {blocks} blocks in one launch."),
    }
}
