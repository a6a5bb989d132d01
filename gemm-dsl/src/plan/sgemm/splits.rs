//! Splits of A and B that a launch before the GEMM computes.

use super::facts;
use crate::ir::Elem;
use crate::spec::{Arith, SgemmSpec, Tile};
use crate::target::Format;

/// Minimum unit to which rows of splits are padded, in elements.
const LEAST_PADDED: u32 = 8;

facts! {
    /// Splits of A and B that a launch before the GEMM computes. Each value is rounded to the
    /// format of the instructions, or split into several values of this format. The splits are
    /// K-major.
    SplitsPlan {
        arith: Arith,
        /// Formats of A and B in the instructions.
        formats: [Format; 2],
        /// Units to which the numbers of A's rows and of B's columns are padded; 1 for no padding.
        lines: [u32; 2],
        /// Unit to which the extent of K is padded, in elements.
        terms: u32,
        /// True if the matrices themselves have the format: nothing is split or padded.
        are_matrices: bool,
    }
}

impl SplitsPlan {
    /// Plans the splits of a spec; `None` if it computes none. Only warpgroups read past the edges
    /// of the splits; for other kernels they are padded to whole tiles.
    pub(super) fn from_spec(spec: &SgemmSpec, tile: Tile) -> Option<Self> {
        let are_matrices = spec.reads_matrices();
        let formats = spec.formats();
        let formats = formats.filter(|_| spec.converts_matrices() || are_matrices)?;
        let least = u32::from(Elem::from_format(formats[0]).vector_lanes()).max(LEAST_PADDED);
        let (lines, terms) = match spec.is_wgmma() {
            true if are_matrices => ([1, 1], 1),
            true => ([1, 1], least),
            false => ([tile.m, tile.n], tile.k),
        };
        Some(Self { arith: spec.arith, formats, lines, terms, are_matrices })
    }

    /// Format of the splits. The formats of matrices may differ, but not their size.
    pub fn format(&self) -> Format {
        self.formats[0]
    }

    /// Element type of the splits.
    pub fn elem(&self) -> Elem {
        Elem::from_format(self.format())
    }

    /// Number of splits of a value.
    pub fn count(&self) -> u32 {
        self.arith.splits()
    }

    /// Returns true if all splits are padded to whole tiles, so that a kernel reads them without
    /// guards.
    pub fn are_whole_tiles(&self) -> bool {
        self.lines != [1, 1]
    }
}
