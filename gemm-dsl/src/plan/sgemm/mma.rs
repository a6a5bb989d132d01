//! Plan of the `mma` instructions that multiply a warp's tile.

pub(super) mod check;

use super::operand::OperandPlan;
use super::{Axis, Decided, decided, facts};
use crate::ir::Mma;
use crate::spec::{Arith, SgemmSpec};
use crate::target::Format;

facts! {
    /// Plan of the `mma` instructions that multiply a warp's tile.
    MmaPlan {
        arith: Arith,
        /// Input format of the instructions.
        format: Format,
        /// K extent of one instruction.
        terms: u32,
        /// Instructions along the rows of a warp tile, each of [`Mma::ROWS`].
        rows: u32,
        /// Instructions along the columns of a warp tile, each of [`Mma::COLS`].
        cols: u32,
        /// True if the tiles hold words of fragments, which an earlier launch has converted.
        converted: bool,
        /// True if pairs of lanes exchange accumulators, so that each lane has four adjacent
        /// elements of a row of C.
        exchanges: bool,
    } decided {
        /// Number of instruction steps that are summed in a fresh accumulator before it is added to
        /// the main one. `None` sums all of K in the main accumulator.
        promote_steps: Option<u32>,
        /// Columns of instructions that use fresh accumulators at once, if each step is promoted.
        together: u32,
        /// True if A's tile is read by `ldmatrix`.
        loads_a: bool,
        /// True if B's tile is read by `ldmatrix`.
        loads_b: bool,
    }
}

impl MmaPlan {
    pub(super) fn from_spec(
        spec: &SgemmSpec,
        operands: [OperandPlan; 2],
        exchanges: bool,
    ) -> Option<Self> {
        let ([format, _], warp) = (spec.formats()?, spec.warp?);
        let terms = format.terms() as u32;
        let converted = spec.converts_matrices();
        let loads = |operand: &OperandPlan| match spec.ldmatrix || converted {
            false => decided(false, ""),
            true if operand.shared() != Axis::K => {
                decided(false, "ldmatrix reads K-major tiles only")
            }
            true if !operand
                .shared_tile()
                .1
                .is_multiple_of(operand.elem().vector_lanes().into()) =>
            {
                decided(false, "ldmatrix reads rows that are aligned to 16 bytes")
            }
            true if converted => decided(true, "it loads whole fragments"),
            true => decided(true, "a quarter of the load instructions"),
        };
        let promote = promoted(spec, terms);
        let [a, b] = &operands;
        Some(Self {
            arith: spec.arith,
            format,
            terms,
            rows: warp.m / Mma::ROWS as u32,
            cols: warp.n / Mma::COLS as u32,
            converted,
            exchanges,
            together: together(warp.n / Mma::COLS as u32, converted),
            promote_steps: decided(promote.value.map(|promote| promote / terms), promote.why),
            loads_a: loads(a),
            loads_b: loads(b),
        })
    }

    /// Registers of a thread for its fragments and its partial accumulators.
    pub fn registers(&self) -> u32 {
        // The fragments of A are loaded for one row of instructions at a time.
        let of_a = Mma::OF_A as u32;
        let of_b = self.cols * Mma::OF_B as u32;
        let fresh = match self.promote_steps() {
            None => 0,
            Some(1) => self.together(),
            Some(_) => self.rows * self.cols,
        };
        self.arith.splits() * (of_a + of_b) + fresh * Mma::OF_D as u32
    }
}

/// Greatest number of columns of instructions that use fresh accumulators at once, if fragments of
/// all splits are in registers.
const TOGETHER: u32 = 4;

/// Columns of instructions, out of `cols`, that use fresh accumulators at once.
fn together(cols: u32, converted: bool) -> Decided<u32> {
    // Instructions on a single column would wait for each other.
    let few = (2..=TOGETHER).rev().find(|few| cols.is_multiple_of(*few));
    match few.filter(|_| converted) {
        Some(few) if few < cols => decided(few, "the fragments leave no registers for more"),
        _ => decided(cols, ""),
    }
}

/// Extent of K that tensor cores sum in a fresh accumulator before it is added to the main one.
/// `None` sums all of K in the main accumulator. `otherwise` is the default of FP32 emulation.
pub(super) fn promoted(spec: &SgemmSpec, otherwise: u32) -> Decided<Option<u32>> {
    match (spec.promote, spec.arith.is_emulation()) {
        (Some(promote), _) => decided(Some(promote), ""),
        (None, true) => decided(Some(otherwise), "tensor cores truncate their sums"),
        (None, false) => decided(None, ""),
    }
}
