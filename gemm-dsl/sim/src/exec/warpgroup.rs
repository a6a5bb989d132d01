//! The state of warpgroups: what warps execute together, what is in flight, and how many registers they have. What changes it is
//! in `wgmma`.

mod flight;
mod limits;
mod steps;

pub(crate) use flight::{Accumulators, Flight};
pub(crate) use limits::RegisterLimits;
pub(crate) use steps::{OperandTiles, WarpgroupDivergence, WarpgroupStep, Warpgroups};

use gemm_dsl::ir::Wgmma as Matrix;

/// Warps of a warpgroup.
pub(crate) const WARPS: usize = Matrix::WARPS as usize;
