//! Reductions of arrays that are cut along the axis that is folded: a program for each shard, which leaves a partial
//! of each run, and one for what all of them have left. They have the kernels of two passes over the whole, but that a
//! shard's knows where it lies: so the bits are those of the whole.

use super::role::Role;
use super::rounds::{kernel, variants};
use super::shape::ReduceShape;
use crate::ir::program::{Launch, Program, Slot, Step};
use crate::ir::{Elem, Extent, IrError, Operand, VerifiedProgram};
use crate::plan::ReducePlan;

/// What an array of partials is called, and its elements, for each part of the fold. No name of a user's has a space.
pub fn partials(plan: &ReducePlan) -> Vec<(String, Elem)> {
    let is_one = plan.parts().len() == 1;
    let parts = plan.parts().iter().map(|part| {
        let what = if is_one { "results" } else { part.plural };
        (format!("partial {what}"), part.elem)
    });
    parts.collect()
}

/// The program that folds the elements of a shard into a partial of each of its runs.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn shard(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let (shape, mut extents) = ReduceShape::of_program(&mut program, plan, Role::Shard);
    for extent in [Extent::FIRST, Extent::TOTAL] {
        extents.push((extent, program.extent(extent)));
    }
    let mut bind: Vec<(Operand, Slot)> = Vec::new();
    for (n, name) in plan.spec().inputs().into_iter().enumerate() {
        let (elem, dims) = (plan.types().element, shape.elements());
        bind.push(program.input(Operand::Input(n), name.to_owned(), elem, dims));
    }
    for (n, (name, elem)) in partials(plan).into_iter().enumerate() {
        bind.push(program.output(Operand::Temp(n), name, elem, shape.partials()));
    }
    let choose = variants(&mut program, plan, Role::Shard)?;
    program.steps = vec![Step::Launch(Launch { choose, bind, extents })];
    VerifiedProgram::new(program)
}

/// The program that makes results of the partials of all runs.
///
/// # Errors
/// As [`shard`].
pub fn of_partials(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let (shape, extents) = ReduceShape::of_program(&mut program, plan, Role::Last);
    let mut bind: Vec<(Operand, Slot)> = Vec::new();
    for (n, (name, elem)) in partials(plan).into_iter().enumerate() {
        bind.push(program.input(Operand::Temp(n), name, elem, shape.partials()));
    }
    for (n, (name, elem)) in plan.spec().results().into_iter().enumerate() {
        bind.push(program.output(Operand::Output(n), name, elem, shape.results()));
    }
    let choose = vec![program.kernel(kernel(plan, Role::Last, false)?)];
    program.steps = vec![Step::Launch(Launch { choose, bind, extents })];
    VerifiedProgram::new(program)
}
