//! The geometry of a kernel that stages nothing, and whose threads have one sum after the other.

use super::super::facts;
use crate::spec::{Lanes, SgemmSpec};

facts! {
    /// The geometry of a kernel that stages nothing, and whose threads have one sum after the other.
    NaivePlan {
        /// Threads of a block along the rows of C.
        rows: u32,
        /// Threads of a block along the columns of C.
        cols: u32,
        /// Whether consecutive threads run along the rows of C; else along its columns.
        by_rows: bool,
        /// Adjacent elements of a row of C that a thread computes one after the other.
        coarsen: u32,
    }
}

impl NaivePlan {
    /// The plan of a spec that passed every check.
    pub(in crate::plan::sgemm) fn new(spec: &SgemmSpec) -> Self {
        let block = spec.block_or_default();
        let by_rows = spec.lanes == Lanes::M;
        Self { rows: block.rows, cols: block.cols, by_rows, coarsen: spec.coarsen }
    }

    /// Threads of a block, at most 1024; not always a multiple of 32.
    pub fn threads(&self) -> u32 {
        self.rows * self.cols
    }
}
