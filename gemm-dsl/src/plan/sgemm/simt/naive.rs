//! Geometry of a kernel without staging whose threads compute one element at a time.

use super::super::facts;
use crate::spec::{Lanes, SgemmSpec};

facts! {
    /// Geometry of a kernel without staging whose threads compute one element at a time.
    NaivePlan {
        /// Threads of a block along the rows of C.
        rows: u32,
        /// Threads of a block along the columns of C.
        cols: u32,
        /// True if consecutive threads are laid out along M, else along N.
        by_rows: bool,
        /// Number of adjacent elements in a row of C that a thread computes one after the other.
        coarsen: u32,
    }
}

impl NaivePlan {
    /// Plans a spec that passed every check.
    pub(in crate::plan::sgemm) fn new(spec: &SgemmSpec) -> Self {
        let block = spec.block_or_default();
        let by_rows = spec.lanes == Lanes::M;
        Self { rows: block.rows, cols: block.cols, by_rows, coarsen: spec.coarsen }
    }

    /// Threads per block, at most 1024; not always a multiple of 32.
    pub fn threads(&self) -> u32 {
        self.rows * self.cols
    }
}
