//! Reductions: threads fold elements into results. `fold` says what is made of them, `team` how threads make
//! one of what each of them keeps, and there are two ways to share the work: the classic passes of the
//! ladder's beginning (`tiles`), and rounds, in which the threads of a result go through its elements
//! (`rounds`, with its `params` and their `shape`; `reader` is a thread's way through them, `accumulators` what it
//! keeps), who they are (`place`) and what becomes of what they have folded (`finish`, and `long` for segments
//! that take a block). `shards` has the programs for arrays that are cut along the axis that is folded.

mod accumulators;
mod expressions;
mod finish;
mod fold;
mod literal;
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

use crate::ir::{Change, IrError, VerifiedProgram};
use crate::plan::{ReducePlan, Share};
use crate::spec::Op;
use crate::target::arch;
pub use shards::{of_partials, partials, shard};

/// Threads of a warp.
const WARP: i32 = arch::WARP as i32;

/// The program of a reduction.
///
/// # Errors
/// A kernel that breaks a rule of the IR: a mistake of this module.
pub fn reduce(plan: &ReducePlan) -> Result<VerifiedProgram, IrError> {
    match plan.share() {
        Share::Tiles => tiles::program(plan),
        Share::Neighbours { .. } | Share::Columns { .. } => rounds::program(plan),
    }
}

/// What a title calls the results.
fn noun(plan: &ReducePlan) -> &'static str {
    match plan.op() {
        None => "A fold",
        Some(Op::Sum) => "Sum",
        Some(Op::Prod) => "Product",
        Some(Op::Max) => "Maximum",
        Some(Op::Min) => "Minimum",
        Some(Op::Argmax) => "Index of the maximum",
        Some(Op::Argmin) => "Index of the minimum",
        Some(Op::Any) => "Whether any",
        Some(Op::All) => "Whether all",
        Some(Op::MeanVar) => "Mean and variance",
        Some(Op::Logsumexp) => "Logarithm of the sum of exponentials",
    }
}

fn halve() -> Change {
    Change::Div(2.into())
}

fn double() -> Change {
    Change::Mul(2.into())
}
