//! Declarations of a staged kernel that are independent of the block's tile.

use super::accumulator_tile::{AccumulatorCounts, all_epilogue_threads};
use super::copy::{CopyExtents, TileCopy};
use super::elements::{Adjacent, Elements};
use super::mma_layout::{MmaCounts, WarpMma};
use super::problem::GemmProblem;
use super::schedule::{self, BlockProduct, Origin, TileCounts, TileExtents};
use super::shared_tile::{SharedTile, shared_tiles};
use super::slices::TileSlices;
use super::splits::{FactorExtents, Splits};
use super::unrepresentable::{FlaggedTile, TileFlags};
use crate::ir::{BufferId, Const, Expr, Geometry, KernelBuilder, Special, Var};
use crate::plan::{SgemmPlan, TiledPlan};
use crate::spec::{Copies, Fragment};
use crate::target::arch::WARP;

/// Declarations of a staged kernel that do not depend on the block's tile: constants, threads and
/// shared arrays.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p TiledPlan,
    /// Problem of the whole batch, before a GEMM is selected.
    pub problem: GemmProblem,
    pub bm: Const,
    pub bn: Const,
    /// Columns of B in shared memory: those of the tile, or of a part of it.
    bn_shared: Const,
    pub bk: Const,
    pub tm: Const,
    pub tn: Const,
    /// Number of threads that compute one GEMM; `tid` is this thread's index among them.
    pub threads: Const,
    pub tid: Var,
    /// Number of threads with final accumulators of one GEMM; `epilogue_thread` is this thread's
    /// index among them.
    pub epilogue_threads: Const,
    pub epilogue_thread: Var,
    /// Slices, if there are several.
    pub slices: Option<TileSlices>,
    /// Numbers of `mma` instructions per warp, if tensor cores are used.
    mma: Option<MmaCounts>,
    /// Index of the thread's GEMM, if the block computes several.
    pub part: Option<BlockProduct>,
    pub(super) shared: (SharedTile, SharedTile),
    pub(super) splits: Option<Splits>,
    /// Flags of values that the splits cannot represent, if an earlier launch computes the splits.
    pub flags: Option<TileFlags>,
}

/// Splits of A and B that a kernel multiplies, as its parameters.
#[derive(Clone, Copy)]
pub(crate) struct SplitOperands {
    pub buffers: [BufferId; 2],
    /// Flags of values that the splits cannot represent, for FP32 emulation.
    pub flags: Option<TileFlags>,
}

/// A thread's part of any tile: its elements of C, and its share of the copies of A and B.
pub(crate) struct ThreadSlice {
    pub(super) rows: Elements,
    pub(super) cols: Elements,
    pub(super) mma: Option<WarpMma>,
    pub(super) copies: [TileCopy; 2],
}

/// Columns of B in shared memory: those of a block tile, or of one part of it.
fn shared_columns(b: &mut KernelBuilder, t: &TiledPlan, bn: Const, tn: Const) -> Const {
    match t.parts_of_b() {
        1 => bn,
        _ => b.constant("THREADS_N", bn / tn, "threads along N"),
    }
}

impl<'p> Frame<'p> {
    /// Declares constants, shared arrays and threads.
    pub fn declare(
        b: &mut KernelBuilder,
        plan: &'p SgemmPlan,
        t: &'p TiledPlan,
        problem: GemmProblem,
        operands: Option<SplitOperands>,
    ) -> Self {
        let int = |v: u32| v as i32;
        let [rows, columns] = schedule::tile_meanings(plan, &problem);
        let bm = b.constant("BM", int(t.bm()), rows);
        let bn = b.constant("BN", int(t.bn()), columns);
        let bk = b.constant("BK", int(t.bk()), "depth of a K tile");
        let tm = b.constant("TM", int(t.tm()), "rows of C per thread");
        let tn = b.constant("TN", int(t.tn()), "columns of C per thread");
        let of = if t.products() > 1 { "threads per GEMM" } else { "threads per block" };
        let of_slice = bm / tm * (bn / tn);
        let mma = t.mma().map(|plan| MmaCounts::constants(b, t, plan, bk));
        let steps = mma.map_or(bk, |mma| mma.steps);
        let slices =
            (t.slices() > 1).then(|| TileSlices::constants(b, t.slices(), &of_slice, steps));
        let threads = match slices {
            None => b.constant("THREADS", of_slice, of),
            Some(slices) => b.constant("THREADS", slices.epilogue_threads * slices.count, of),
        };
        let products = (t.products() > 1)
            .then(|| b.constant("PRODUCTS", int(t.products()), "GEMMs per block"));
        match products {
            None => b.launch_bounds(threads),
            Some(products) => b.launch_bounds(threads * products),
        }

        let grid = schedule::grid(plan, &problem);
        let blocks_per_sm = plan.least_resident();
        let block = (t.threads_of_product(), t.products());
        b.geometry(Geometry { block, grid, blocks_per_sm });
        let splits = t.splits().zip(operands).map(|(of, operands)| {
            let pads = [bm, bn, bk].map(Expr::from);
            if let Some(flags) = operands.flags {
                let extents = FactorExtents::padded(&problem, &of, &pads);
                let of_flag = FlaggedTile::declare(b).extents();
                flags.shape(b, &problem, &extents, of_flag);
            }
            Splits::shape(b, &of, &pads, operands.buffers, &problem, Copies::Threads)
        });
        let tid = match t.unsigned_tid() {
            true => b.unsigned("tid", Special::ThreadX),
            false => b.let_("tid", Special::ThreadX),
        };
        if t.narrow_addresses() {
            b.narrow_addresses();
        }
        let part = products.map(|products| BlockProduct {
            product: b.let_("product", Special::ThreadY),
            products,
        });
        let split_count = splits.and_then(|splits| splits.count);
        let bn_shared = shared_columns(b, t, bn, tn);
        let shared = shared_tiles(b, t, [bm, bn_shared, bk], part, split_count);
        let (slices, epilogue_threads, epilogue_thread) = match slices {
            None => (None, threads, tid),
            Some(constants) => {
                let (slices, epilogue_thread) = TileSlices::declare(b, constants, tid);
                (Some(slices), constants.epilogue_threads, epilogue_thread)
            }
        };
        Self {
            plan,
            t,
            problem,
            bm,
            bn,
            bn_shared,
            bk,
            tm,
            tn,
            tid,
            threads,
            epilogue_threads,
            epilogue_thread,
            slices,
            mma,
            part,
            shared,
            splits,
            flags: operands.and_then(|operands| operands.flags),
        }
    }

    /// Numbers of the block's final accumulators.
    pub fn accumulators(&self) -> AccumulatorCounts {
        let epilogue_threads = all_epilogue_threads(self.epilogue_threads, self.part);
        AccumulatorCounts {
            places: self.tm * self.tn,
            epilogue_threads,
            by_all: self.slices.is_none(),
        }
    }

    /// Number of blocks, one for each tile of C, as an expression of the kernel's parameters.
    pub fn blocks(&self) -> Expr {
        let GemmProblem { m, n, batch, .. } = self.problem;
        let [rows, cols] = [(m, self.bm), (n, self.bn)]
            .map(|(extent, tile)| Expr::from(extent).wide().div_ceil(Expr::from(tile).wide()));
        batch
            .map(|batch| Expr::from(batch.count).wide())
            .into_iter()
            .fold(rows * cols, |all, of| all * of)
    }

    /// Computes the origin of this block's tile.
    pub fn own_origin(&self, b: &mut KernelBuilder) -> Origin {
        schedule::origin(b, self.plan, &self.problem, self.extents(), self.part, None)
    }

    /// Computes the tile counts and this thread's part of any tile, for
    /// [`Frame::numbered_tile`].
    pub fn any_tile(&self, b: &mut KernelBuilder) -> (ThreadSlice, TileCounts) {
        let own = self.own(b);
        b.comment("Number of tiles of C along M and N.");
        (own, TileCounts::declare(b, self.plan, &self.problem, self.extents()))
    }

    /// Numbers of rows and columns of a block tile.
    pub(super) fn extents(&self) -> TileExtents {
        TileExtents { rows: self.bm.into(), cols: self.bn.into() }
    }

    pub(super) fn own(&self, b: &mut KernelBuilder) -> ThreadSlice {
        let Self { t, bm, bn, bn_shared, bk, tm, tn, tid, threads, .. } = *self;
        let (rows, cols, mma) = match self.mma {
            None => {
                let (rows, cols) = position(b, t, self.epilogue_thread, [bm, bn, tm, tn]);
                (rows, cols, None)
            }
            Some(counts) => {
                let (rows, cols, mma) = counts.position(b, t, self.epilogue_thread, [bn, tm, tn]);
                (rows, cols, Some(mma))
            }
        };
        let copy = |b: &mut KernelBuilder, plan, other, free| {
            TileCopy::declare(b, plan, other, CopyExtents { tid, threads, free, depth: bk })
        };
        let a = copy(b, t.a(), t.b(), bm);
        ThreadSlice { rows, cols, mma, copies: [a, copy(b, t.b(), t.a(), bn_shared)] }
    }
}

/// Phrase on the outputs of a thread: their number and the distances between them.
fn outputs_text(t: &TiledPlan) -> String {
    let ([run_m, run_n], sub_tiles, times) = match t.fragment() {
        Fragment::Blocked => return "TM x TN adjacent outputs".to_owned(),
        Fragment::Strided => ([1; 2], "", ""),
        Fragment::Split => ([4; 2], " in 4 x 4 sub-tiles", "4 * "),
        Fragment::SplitN => ([t.tm(), 4], " in TM x 4 sub-tiles", "4 * "),
    };
    let of = if t.warp().is_some() { "LANES" } else { "THREADS" };
    let apart = [(t.tm(), run_m, "M", "rows"), (t.tn(), run_n, "N", "columns")].into_iter();
    let apart = apart.filter(|(count, run, ..)| count > run);
    let apart: Vec<String> =
        apart.map(|(_, _, axis, lines)| format!("{times}{of}_{axis} {lines}")).collect();
    match apart.is_empty() {
        true => format!("TM x TN outputs{sub_tiles}"),
        false => format!("TM x TN outputs{sub_tiles}, {} apart", apart.join(" and ")),
    }
}

/// Computes the positions of this thread's outputs in the block tile.
fn position(
    b: &mut KernelBuilder,
    t: &TiledPlan,
    tid: Var,
    [bm, bn, tm, tn]: [Const; 4],
) -> (Elements, Elements) {
    let [rows, cols] = Adjacent::from_fragment(t.fragment());
    let what = outputs_text(t);
    let (first_row, first_col, threads_m, threads_n) = match t.warp() {
        None => {
            let threads_m = b.constant("THREADS_M", bm / tm, "threads along M");
            let threads_n = b.constant("THREADS_N", bn / tn, "threads along N");
            b.comment(format!("A thread computes {what}."));
            let row = b.let_("thread_row", tid / threads_n * rows.step(tm));
            let col = b.let_("thread_col", tid % threads_n * cols.step(tn));
            (row, col, threads_m, threads_n)
        }
        Some(warp) => {
            let wm = b.constant("WM", warp.m() as i32, "rows of C per warp");
            let wn = b.constant("WN", warp.n() as i32, "columns of C per warp");
            let lanes_m = b.constant("LANES_M", wm / tm, "lanes along M in a warp tile");
            let lanes_n = b.constant("LANES_N", wn / tn, "lanes along N in a warp tile");
            b.comment("A warp computes a WM x WN tile of the block tile; within this warp tile,");
            b.comment(format!("a lane computes {what}."));
            let warp = b.let_("warp", tid / WARP as i32);
            let lane = b.let_("lane", tid % WARP as i32);
            let warp_row = warp / (bn / wn) * wm;
            let warp_col = warp % (bn / wn) * wn;
            let row = b.let_("thread_row", warp_row + lane / lanes_n * rows.step(tm));
            let col = b.let_("thread_col", warp_col + lane % lanes_n * cols.step(tn));
            (row, col, lanes_m, lanes_n)
        }
    };
    (
        Elements { adjacent: rows, first: first_row, name: tm, count: t.tm(), threads: threads_m },
        Elements { adjacent: cols, first: first_col, name: tn, count: t.tn(), threads: threads_n },
    )
}
