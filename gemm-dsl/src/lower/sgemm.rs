//! Matrix products: C = A·B in `f32`, C row-major, A and B as the plan's layout says.
//!
//! Builders match on the plan and decide nothing; what a launch must satisfy, so that the indices
//! which they write stay inside an `int`, follows from it in [`GemmProblem`](shared::problem::GemmProblem). A and B are one kind of thing, a
//! [`StagedFactor`](shared::tile::StagedFactor), and what tells them apart are questions to their
//! [`OperandPlan`](crate::plan::OperandPlan), such as which of their axes is contiguous.
//!
//! Three seams keep the axes of a spec apart. The *schedule* alone knows which tile of C a block
//! works on. An operand is a [`Matrix`](shared::problem::Matrix), which the builders index by row and column. The main loop
//! of a kernel whose threads hold tiles of C ends in [`Accumulators`](shared::accumulators::Accumulators), staged (`pipeline`),
//! by warpgroups (`wgmma`) or not (`direct`), and only the *epilogue* takes them to C; one whose threads have one sum after the other
//! (`naive`) does both itself.
//!
//! Every kernel in `arith: f32` sums the terms of an element from +0 on in ascending k, with one fused multiply-add
//! each, and what fills a ragged tile changes no sum (see `edge`), so that all kernels without
//! `partials`, `lanes: k`, `slices`, `split_k` and `stream_k` give the same bits, those of a zero's sign included.

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
