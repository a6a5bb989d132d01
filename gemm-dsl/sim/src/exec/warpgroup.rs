//! The state of warpgroups: what warps execute together, what is in flight, and how many registers they have. What changes it is
//! in `warpgroup`.

mod flight;
mod limits;
mod steps;

pub(crate) use flight::{Flight, Sums};
pub(crate) use limits::Limits;
pub(crate) use steps::{Apart, Step, Tiles, Warpgroups};

use gemm_dsl::ir::Wgmma as Matrix;

/// Warps of a warpgroup.
pub(crate) const WARPS: usize = Matrix::WARPS as usize;
