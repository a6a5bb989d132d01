//! Reductions of arrays that are split along the reduced axis. The program of a shard stores a
//! partial result for each run, and another program folds the partial results of all shards. The
//! kernels are those of a two-pass reduction of the whole array, except that a shard's kernel takes
//! the shard's offset. The result therefore has the same bits.

use super::role::Role;
use super::rounds::{kernel, variants};
use super::shape::{ReduceShape, add_numbers};
use crate::ir::program::{Program, Slot, Step};
use crate::ir::{Elem, Extent, IrError, Operand, VerifiedProgram};
use crate::plan::ReducePlan;

/// Name and element type of each array of partial results, one for each part of the accumulator.
/// The names contain spaces, so they differ from all names that a user can choose.
pub fn partials(plan: &ReducePlan) -> Vec<(String, Elem)> {
    let is_one = plan.parts().len() == 1;
    let parts = plan.parts().iter().map(|part| {
        let what = if is_one { "results" } else { part.plural };
        (format!("partial {what}"), part.elem)
    });
    parts.collect()
}

/// Builds the program that folds the elements of a shard into a partial result for each run.
///
/// # Errors
/// Returns an error if a kernel breaks a rule of the IR, which is a bug of this module.
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
    add_numbers(&mut program, plan, [true, false]);
    for (n, (name, elem)) in partials(plan).into_iter().enumerate() {
        bind.push(program.output(Operand::Temp(n), name, elem, shape.partials()));
    }
    let choose = variants(&mut program, plan, Role::Shard)?;
    program.steps = vec![Step::launch(choose, bind, extents)];
    VerifiedProgram::new(program)
}

/// Builds the program that folds the partial results of all runs into results.
///
/// # Errors
/// Same as [`shard`].
pub fn of_partials(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    let mut program = Program::default();
    let (shape, extents) = ReduceShape::of_program(&mut program, plan, Role::Last);
    let mut bind: Vec<(Operand, Slot)> = Vec::new();
    for (n, (name, elem)) in partials(plan).into_iter().enumerate() {
        bind.push(program.input(Operand::Temp(n), name, elem, shape.partials()));
    }
    add_numbers(&mut program, plan, [false, true]);
    for (n, (name, elem)) in plan.spec().results().into_iter().enumerate() {
        bind.push(program.output(Operand::Output(n), name, elem, shape.results()));
    }
    let last = kernel(plan, Role::Last, false, &program.arguments)?;
    let choose = vec![program.kernel(last)];
    program.steps = vec![Step::launch(choose, bind, extents)];
    VerifiedProgram::new(program)
}
