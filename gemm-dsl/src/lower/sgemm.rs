//! Lowering of GEMMs. C = A·B is accumulated in `f32`; C is row-major, and the plan sets the
//! layouts of A and B.
//!
//! Builders match on the plan and make no decisions. [`GemmProblem`](shared::problem::GemmProblem)
//! derives from the plan the launch requirements that keep all indices inside an `int`. A and B
//! share one type, [`StagedFactor`](shared::tile::StagedFactor). Their
//! [`OperandPlan`](crate::plan::OperandPlan) holds the differences, such as the contiguous axis.
//!
//! Three interfaces separate the axes of a spec:
//!
//! * The *schedule* alone maps blocks to tiles of C.
//! * An operand is a [`Matrix`](shared::problem::Matrix), which builders index by row and column.
//! * A main loop over tiles of C ends in [`Accumulators`](shared::accumulators::Accumulators),
//!   whether it is staged (`pipeline`), uses warpgroups (`wgmma`) or neither (`direct`). Only the
//!   *epilogue* stores them in C. The exception is `naive`, whose threads compute and store one
//!   element at a time.
//!
//! Every kernel with `arith: f32` accumulates an element from +0 in ascending k, with one fused
//! multiply-add per step. The fill of a ragged tile changes no accumulator (see `edge`). Hence all
//! kernels without `partials`, `lanes: k`, `slices`, `split_k` and `stream_k` produce identical
//! bits, including the sign of a zero.

mod direct;
mod kernel;
mod mma;
mod program;
mod shared;
mod simt;
#[cfg(test)]
mod tests;
mod wgmma;

pub use program::wgmma::splits_of_b;
pub use program::{accepts_splits, sgemm, sgemm_with_splits};
pub use shared::workspace::{ROW_MAX, SPLITS, UNREPRESENTABLE};
