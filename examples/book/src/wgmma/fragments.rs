//! Operands of each warpgroup, and the accumulators of its lanes.

use super::{Contradiction, extents};
use gemm_dsl::ir::{Kernel, Wgmma};
use gemm_runtime::sim::watch::{Action, Operand, Trace};
use serde::Serialize;
use std::collections::BTreeSet;

/// Operands of a warpgroup's matrix instructions.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fragment {
    /// First warp of the warpgroup.
    pub warp: u32,
    /// Arrays of A and B in shared memory.
    pub arrays: [String; 2],
    /// First of 64 rows of the tile of A.
    pub row: u64,
    /// First row of the tile of B, and number of rows. A row of B is a column of C.
    pub columns: [u64; 2],
}

impl Fragment {
    /// Number of accumulators of a lane.
    pub fn sums(&self) -> u64 {
        self.columns[1] / 2
    }
}

/// Lane that holds the accumulator at a row and column of the first 16 x 8 tile, and index of the
/// accumulator in the lane.
pub fn lane_of(row: &usize, column: &usize) -> Option<(usize, usize)> {
    let lanes = (0..32).flat_map(|lane| (0..4).map(move |sum| (lane, sum)));
    lanes.into_iter().find(|(lane, sum)| Wgmma::place_of_d(*lane, *sum) == (*row, *column))
}

/// Returns the distinct operands of each warpgroup of the block.
pub(super) fn all(kernel: &Kernel, trace: &Trace) -> Result<Vec<Fragment>, Contradiction> {
    let mut held = BTreeSet::new();
    for detail in trace.details.iter().filter(|of| of.rank == 0 && of.warp.is_multiple_of(4)) {
        let Action::Multiplied { a, b, columns } = &detail.did else { continue };
        held.insert(Fragment {
            warp: detail.warp,
            arrays: [a, b].map(|operand| kernel.buffers[operand.buffer].name.clone()),
            row: row(kernel, a)?,
            columns: [row(kernel, b)?, u64::from(*columns)],
        });
    }
    Ok(held.into_iter().collect())
}

/// First row of an operand in its array.
fn row(kernel: &Kernel, operand: &Operand) -> Result<u64, Contradiction> {
    let array = || kernel.buffers[operand.buffer].name.clone();
    let no_rows = || Contradiction::NoRows { array: array() };
    match extents(kernel, operand.buffer).ok_or_else(no_rows)?[..] {
        [.., rows, terms] => Ok(u64::from(operand.first) / terms.max(1) % rows.max(1)),
        _ => Err(no_rows()),
    }
}
