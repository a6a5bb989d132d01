//! Warp tile for `mma.sync`: the number of instructions, and the elements of each lane.

use super::elements::{Adjacent, Elements};
use crate::ir::{Const, Expr, KernelBuilder, Mma, Var};
use crate::plan::{Axis, MmaPlan, OperandPlan, TiledPlan};
use crate::target::arch::{BANKS, WARP};
use std::collections::BTreeSet;

/// Numbers of `mma` instructions per warp tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MmaCounts {
    pub plan: MmaPlan,
    /// Number of instructions along the rows of a warp tile; `cols` is the number along the
    /// columns.
    pub rows: Const,
    pub cols: Const,
    /// K extent of an instruction.
    pub terms: Const,
    /// Number of instructions along the K of a tile.
    pub steps: Const,
    /// Number of splits per value, if more than one.
    pub splits: Option<Const>,
}

impl MmaCounts {
    /// Declares the constants for these numbers.
    pub fn constants(b: &mut KernelBuilder, t: &TiledPlan, plan: MmaPlan, bk: Const) -> Self {
        let int = |v: u32| Expr::I32(v as i32);
        let terms = b.constant("MMA_K", int(plan.terms()), "K of an mma instruction");
        let rows = "mma instructions along M in a warp tile";
        let rows = b.constant("MMAS_M", int(plan.rows()), rows);
        let cols =
            b.constant("MMAS_N", int(plan.cols()), "mma instructions along N in a warp tile");
        let steps = if t.slices() > 1 { "TILE_STEPS" } else { "STEPS" };
        let steps = b.constant(steps, bk / terms, "mma instructions along K in a K tile");
        let splits = (plan.arith().splits() > 1).then(|| {
            let meaning = format!("{} values per f32 value", plan.format().name());
            b.constant("SPLITS", int(plan.arith().splits()), meaning)
        });
        Self { plan, rows, cols, terms, steps, splits }
    }

    /// Elements of a tile in 16 bytes, which are a row of an `ldmatrix` matrix.
    fn lanes_of_row(&self, t: &TiledPlan) -> i32 {
        t.a().elem().vector_lanes().into()
    }

    /// Computes the positions of this lane's accumulators, and of the words of A and B that it
    /// loads.
    pub fn position(
        self,
        b: &mut KernelBuilder,
        t: &TiledPlan,
        epilogue_thread: Var,
        [bn, tm, tn]: [Const; 3],
    ) -> (Elements, Elements, WarpMma) {
        let side = |own: Option<u32>| Expr::I32(own.unwrap_or(0) as i32);
        let wm = b.constant("WM", side(t.warp().map(|warp| warp.m())), "rows of C per warp");
        let wn = b.constant("WN", side(t.warp().map(|warp| warp.n())), "columns of C per warp");
        let lanes_m = b.constant("LANES_M", wm / tm, "lanes along M in a warp tile");
        let lanes_n = b.constant("LANES_N", wn / tn, "lanes along N in a warp tile");
        b.comment(match self.plan.exchanges() {
            false => {
                "A warp computes a WM x WN tile with mma instructions. With g = lane / 4 and t = \
                 lane % 4, a lane holds rows g, g + 8 and columns 2t, 2t + 1 of an instruction's \
                 tile."
            }
            true => {
                "A warp computes a WM x WN tile of the block tile with mma instructions. After \
                 the exchange below, a lane holds one row of an instruction's tile, and four of \
                 every eight columns."
            }
        });
        let warp = b.let_("warp", epilogue_thread / WARP as i32);
        let lane = b.let_("lane", epilogue_thread % WARP as i32);
        let warp_row = b.let_("warp_row", warp / (bn / wn) * wm);
        let warp_col = b.let_("warp_col", warp % (bn / wn) * wn);
        // Four lanes share a row of accumulators. If pairs of lanes have exchanged accumulators,
        // two lanes share a row, and the rows of a pair are eight apart.
        let (own_row, own_col, adjacent) = match self.plan.exchanges() {
            false => (lane / lanes_n, lane % lanes_n * 2, 2),
            true => (lane % 2 * 8 + lane / 4, lane % 4 / 2 * 4, 4),
        };
        let row = b.let_("thread_row", warp_row + own_row);
        let col = b.let_("thread_col", warp_col + own_col);
        let loads = [self.plan.loads_a(), self.plan.loads_b()];
        let mma_n = (!loads[1])
            .then(|| b.constant("MMA_N", Expr::I32(Mma::COLS as i32), "N of an mma instruction"));
        let own = match loads {
            [true, true] => [None, None],
            [loads_a, loads_b] => {
                b.comment(fragment_text(self.plan, t, loads));
                let col = (!loads_b).then(|| b.let_("frag_col", warp_col + lane / lanes_n));
                let term = b.let_("frag_k", lane % lanes_n);
                let line = |first| LaneLine { free: first, term };
                [(!loads_a).then(|| line(row)), col.map(line)]
            }
        };
        let lanes = self.lanes_of_row(t);
        if loads.contains(&true) {
            let elements = if lanes == 4 { "four" } else { "eight" };
            b.comment(format!(
                "ldmatrix: each lane passes the address of {elements} elements adjacent along K, \
                 for all lanes of its warp.",
            ));
        }
        // Order of the matrices: for A the upper and the lower rows, then both for the next
        // elements of K; for B ascending K.
        let of_a = loads[0].then(|| LdmatrixLine {
            free: b.let_("a_frag_row", warp_row + lane % Mma::ROWS as i32),
            term: b.let_("a_frag_k", lane / Mma::ROWS as i32 * lanes),
        });
        let mma = self.plan.terms() as i32 / lanes;
        let of_b = loads[1].then(|| {
            let col = warp_col + lane % Mma::COLS as i32;
            // Converted columns are loaded in pairs: the upper half of the lanes passes addresses
            // of the second column of instructions.
            let pairs = self.plan.converted() && self.plan.cols().is_multiple_of(2);
            let side = pairs.then(|| lane / Mma::ROWS as i32 * Mma::COLS as i32);
            LdmatrixLine {
                free: b.let_("b_frag_col", side.into_iter().fold(col, |col, side| col + side)),
                term: b.let_("b_frag_k", lane / Mma::COLS as i32 % mma * lanes),
            }
        });
        let rows = Elements {
            adjacent: Adjacent::One,
            first: row,
            name: tm,
            count: t.tm(),
            threads: lanes_m,
        };
        let cols = Elements {
            adjacent: Adjacent::Of(adjacent),
            first: col,
            name: tn,
            count: t.tn(),
            threads: lanes_n,
        };
        let [own_a, own_b] = own;
        let from = |own: Option<LaneLine>, line: Option<LdmatrixLine>| match (own, line) {
            (_, Some(line)) => FragmentSource::Ldmatrix(line),
            (Some(own), None) => FragmentSource::Tile(own),
            (None, None) => {
                unreachable!("MmaPlan::loads_a, loads_b: a lane reads what ldmatrix does not")
            }
        };
        let from = [from(own_a, of_a), from(own_b, of_b)];
        (rows, cols, WarpMma { counts: self, lanes: lanes_m, mma_n, from })
    }
}

/// Comment on the elements of A and B that a lane loads from the tiles. `loads` is true for an
/// operand that `ldmatrix` loads.
fn fragment_text(plan: MmaPlan, t: &TiledPlan, loads: [bool; 2]) -> String {
    let order = match plan.terms() {
        // The instruction's own order.
        8 => "A lane loads k = t and t + 4 of A and B, with t = lane % 4, as in the PTX ISA",
        _ => {
            "By the PTX ISA, a lane has k = 2t, 2t + 1, 2t + 8, 2t + 9, with t = lane % 4. Loading \
             t, t + 4, t + 8, t + 12 of both A and B only reorders the sum"
        }
    };
    let from_tile = |(operand, loads): (OperandPlan, bool)| loads || hits_all_banks(&operand);
    let conflict_free = [t.a(), t.b()].into_iter().zip(loads).all(from_tile);
    let banks = if conflict_free { "; a warp then hits 32 different banks" } else { "" };
    format!("{order}{banks}.")
}

/// True if the lanes of a warp load one element each from 32 different banks: eight rows or columns
/// by four k.
fn hits_all_banks(operand: &OperandPlan) -> bool {
    let (_, row) = operand.shared_tile();
    let banks = (0..8).flat_map(|g| (0..4).map(move |t| (g, t))).map(|(g, t)| {
        let at = if operand.shared() == Axis::K { g * row + t } else { t * row + g };
        at % BANKS
    });
    let banks: BTreeSet<u32> = banks.collect();
    operand.swizzle().is_none() && operand.elem().size() == 4 && banks.len() == WARP as usize
}

/// Fragments of a warp tile, from the point of view of a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpMma {
    pub counts: MmaCounts,
    /// Distance from one row of A of a lane to its next.
    pub lanes: Const,
    /// Distance from one column of B of a lane to its next, if it loads B from the shared tile.
    pub mma_n: Option<Const>,
    /// Source of a lane's fragments of A, and of those of B.
    pub from: [FragmentSource; 2],
}

/// Source of a lane's fragment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FragmentSource {
    /// The lane loads from the shared tile.
    Tile(LaneLine),
    /// `ldmatrix` loads, and the lane supplies this address.
    Ldmatrix(LdmatrixLine),
}

/// Position at which a lane starts to load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneLine {
    /// First row of A or column of B in the block tile.
    pub free: Var,
    /// First k in each step.
    pub term: Var,
}

/// Position of four elements along K, in a row of A or a column of B, whose address a lane supplies
/// to `ldmatrix`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LdmatrixLine {
    /// Row or column in the block tile.
    pub free: Var,
    /// First k in the step.
    pub term: Var,
}
