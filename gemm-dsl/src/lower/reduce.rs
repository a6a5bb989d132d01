//! Reductions: threads fold elements into results.
//!
//! * `fold` defines the operator, and `team` folds the accumulators of several threads into one.
//! * `tiles` implements `launch: tiles`: repeated passes of one kernel.
//! * `rounds` implements all other reductions: the threads of a result stride through its elements.
//!   `params` and `shape` describe the kernel's parameters. `reader` reads the elements,
//!   `accumulators` stores a thread's state, and `place` computes the thread's position.
//! * `topk` selects several elements of each result, in the place of a fold.
//! * `finish` stores results or partial results, and `long` folds segments that need a whole block.
//! * `shards` builds the programs for arrays that are split along the reduced axis.

mod accumulators;
mod expressions;
mod finish;
mod fold;
mod long;
mod params;
mod place;
mod reader;
mod role;
mod round;
mod rounds;
mod shape;
mod shards;
mod team;
#[cfg(test)]
mod tests;
mod tiles;
mod topk;

use crate::ir::{Change, IrError, VerifiedProgram};
use crate::plan::{ReducePlan, Share};
use crate::spec::{Op, Over};
use crate::target::arch;
pub use shards::{of_partials, partials, shard};

const WARP: i32 = arch::WARP as i32;

/// Program of a reduction.
///
/// # Errors
/// Returns an error if a kernel breaks a rule of the IR, which is a bug of this module.
pub fn reduce(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    match plan.share() {
        Share::Tiles => tiles::program(plan),
        Share::Neighbours { .. } | Share::Columns { .. } => rounds::program(plan),
    }
}

/// Name of the results in the head comment.
fn noun(plan: &ReducePlan) -> String {
    match plan.topk() {
        None => noun_of_one(plan).to_owned(),
        Some(k) => {
            let (greatest, indices) = match plan.op() {
                Some(op @ (Op::Argmax | Op::Argmin)) => (op == Op::Argmax, true),
                op => (op == Some(Op::Max), false),
            };
            let which = if greatest { "greatest" } else { "smallest" };
            match (indices, plan.spec().with_value) {
                (false, _) => format!("The {k} {which} values"),
                (true, false) => format!("Indices of the {k} {which} values"),
                (true, true) => format!("The {k} {which} values, with indices,"),
            }
        }
    }
}

/// Name of a result that is one element.
fn noun_of_one(plan: &ReducePlan) -> &'static str {
    match plan.op() {
        None => "A fold",
        Some(Op::Sum) => "Sum",
        Some(Op::Prod) => "Product",
        Some(Op::Max) => "Maximum",
        Some(Op::Min) => "Minimum",
        Some(Op::Argmax) if plan.spec().with_value => "Maximum and its index",
        Some(Op::Argmin) if plan.spec().with_value => "Minimum and its index",
        Some(Op::Argmax) => "Index of the maximum",
        Some(Op::Argmin) => "Index of the minimum",
        Some(Op::Any) => "Logical OR",
        Some(Op::All) => "Logical AND",
        Some(Op::MeanVar) => "Mean and variance",
        Some(Op::Logsumexp) => "Logarithm of the sum of exponentials",
    }
}

/// Noun for the elements of one result.
fn result_noun(plan: &ReducePlan) -> &'static str {
    match plan.spec().over {
        Over::All => "array",
        Over::Rows => "row",
        Over::Columns | Over::Middle => "column",
        Over::Segments => "segment",
    }
}

fn halve() -> Change {
    Change::Div(2.into())
}

fn double() -> Change {
    Change::Mul(2.into())
}
