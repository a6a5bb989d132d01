//! Which warpgroup multiplies which rows of a tile of A by which columns of one of B, and which sums its lanes hold.

use super::{Contradiction, extents};
use gemm_dsl::ir::{Kernel, Wgmma};
use gemm_runtime::watch::{Action, Operand, Trace};
use serde::Serialize;
use std::collections::BTreeSet;

/// What a warpgroup multiplies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fragment {
    /// Its first warp.
    pub warp: u32,
    /// The arrays that A and B are read from.
    pub arrays: [String; 2],
    /// The first row of the tile of A, of 64.
    pub row: u64,
    /// The first row of that of B, which is a column of C, and how many there are.
    pub columns: [u64; 2],
}

impl Fragment {
    /// Sums of a lane.
    pub fn sums(&self) -> u64 {
        self.columns[1] / 2
    }
}

/// The lane of a warp that holds a sum, by its row and its column of the first 16 x 8.
pub fn lane_of(row: &usize, column: &usize) -> Option<(usize, usize)> {
    let lanes = (0..32).flat_map(|lane| (0..4).map(move |sum| (lane, sum)));
    lanes.into_iter().find(|(lane, sum)| Wgmma::place_of_d(*lane, *sum) == (*row, *column))
}

/// What each warpgroup of the block multiplies, each way once.
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

/// The row of its array at which an operand begins.
fn row(kernel: &Kernel, operand: &Operand) -> Result<u64, Contradiction> {
    let array = || kernel.buffers[operand.buffer].name.clone();
    let no_rows = || Contradiction::NoRows { array: array() };
    match extents(kernel, operand.buffer).ok_or_else(no_rows)?[..] {
        [.., rows, terms] => Ok(u64::from(operand.first) / terms.max(1) % rows.max(1)),
        _ => Err(no_rows()),
    }
}
