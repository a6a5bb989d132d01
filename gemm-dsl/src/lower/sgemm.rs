//! Lowering of GEMMs. C = A·B is accumulated in `f32`. C is row-major, and the plan specifies the
//! layouts of A and B.
//!
//! Builders follow the plan: it has all decisions about the kernel and its main loop. Constants of
//! secondary loops, such as unroll factors, stand beside their loops.
//!
//! [`GemmProblem`](common::problem::GemmProblem) adds launch requirements that keep all indices
//! inside an `int`. A and B have the same type, [`StagedFactor`](common::tile::StagedFactor). They
//! differ only in their [`OperandPlan`](crate::plan::OperandPlan), for example in the contiguous
//! axis.
//!
//! Three interfaces separate the axes of a spec:
//!
//! * Only the *schedule* maps blocks to tiles of C.
//! * An operand is a [`Matrix`](common::problem::Matrix), which builders index by row and column.
//! * Each main loop over tiles of C returns [`Accumulators`](common::accumulators::Accumulators),
//!   and only the *epilogue* stores them in C. This holds for staged loops (`pipeline`), warpgroups
//!   (`wgmma`) and kernels without staging (`direct`). The exception is `naive`, whose threads
//!   compute and store one element at a time.
//!
//! Every kernel with `arith: f32` accumulates an element from +0 in ascending k, with one fused
//! multiply-add per step. The values that fill a ragged tile change no accumulator (see `edge`).
//! Therefore all kernels without `partials`, `lanes: k`, `slices`, `split_k` and `stream_k` give
//! the same bits, including the sign of a zero.

mod common;
mod direct;
mod kernel;
mod mma;
mod program;
mod simt;
mod splitting;
#[cfg(test)]
mod tests;
mod wgmma;

pub use common::workspace::{ROW_MAX, SPLITS, UNREPRESENTABLE};
pub use program::wgmma::splits_of_b;
pub use program::{accepts_splits, sgemm, sgemm_with_splits};
