//! State of warpgroups: steps that all warps execute, accumulators in flight, and register limits.
//! `wgmma` updates this state.

mod flight;
mod limits;
mod steps;

pub(crate) use flight::{Accumulators, Flight};
pub(crate) use limits::RegisterLimits;
pub(crate) use steps::{OperandTiles, WarpgroupDivergence, WarpgroupStep, Warpgroups};

use gemm_dsl::ir::Wgmma as Matrix;

pub(crate) const WARPS: usize = Matrix::WARPS as usize;
