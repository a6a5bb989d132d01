//! GEMMs whose warpgroups multiply splits of A and B in shared memory (`wgmma`).
//!
//! Either all threads copy tiles, or one thread issues TMA copies of boxes; `pipeline` of this
//! module orders the copies. Tensor cores truncate when they accumulate. FP32 emulation therefore
//! sums only a short extent of K in fresh accumulators, small products first. IEEE additions then
//! add these to the main accumulators.

mod accumulators;
mod pipeline;
mod recompute;
mod tiles;

use super::common::accumulator_tile::{AccumulatorCounts, AccumulatorTile, TileParts};
use super::common::accumulators::{Accumulators, EXCHANGE, exchange_column};
use super::common::elements::{Adjacent, Elements};
use super::common::epilogue;
use super::common::epilogue_expression::EpilogueExpression;
use super::common::loops::over;
use super::common::problem::{GemmProblem, TakenMatrices};
use super::common::schedule::{self, KRange, SplitKPartitions};
use super::common::shared_tile::stages;
use super::common::split_k::SplitKWorkspace;
use super::common::splits::{Splits, literal_pads};
use super::common::unrepresentable::UnrepresentableFlag;
use super::splitting::row_scale::{self, RowMax};
use crate::ir::{
    Access, BufferId, BufferLayout, Const, Elem, Expr, Geometry, KernelBuilder, Special, Var, Wgmma,
};
use crate::plan::{SgemmPlan, WARPGROUP, WgmmaPlan};
use crate::spec::{Copies, Factor, SgemmSpec};
use crate::target::arch::WARP;
use recompute::recompute;
use tiles::OutputTile;

/// State that the builders of a kernel with warpgroups share.
pub(crate) struct WgmmaFrame<'p> {
    pub plan: &'p SgemmPlan,
    pub t: &'p WgmmaPlan,
    /// Problem of the whole batch, before a GEMM is selected.
    pub problem: GemmProblem,
    pub splits: Splits,
    pub bm: Const,
    pub bn: Const,
    pub bk: Const,
    /// Number of consumer threads, which are the threads that multiply.
    pub threads: Const,
    /// Number of accumulators of a thread.
    pub accumulators: Const,
    pub tid: Var,
    /// Number of pipeline stages, if more than one.
    pub stages: Option<Const>,
    /// Number of blocks per cluster and this block's rank, if a cluster has several blocks.
    pub cluster: Option<(Const, Var)>,
    /// Rows of A and columns of B in a row of shared memory, for MN-major operands.
    pub slabs: [Option<Const>; 2],
    pub tiles: [BufferId; 2],
    /// Range of K that the block accumulates; `None` for all of K.
    pub range: Option<KRange>,
}

/// Position of a thread among the consumer threads.
struct ThreadPlace {
    rows: Elements,
    cols: Elements,
    /// First row and first column of the thread's warpgroup in the block tile.
    group: [Expr; 2],
    /// Lane index of the thread in its warp.
    lane: Var,
}

/// Emits the parameters and the body of the kernel.
pub(crate) fn body(b: &mut KernelBuilder, plan: &SgemmPlan, t: &WgmmaPlan) {
    let buffers = Splits::read(b, plan, t);
    let recomputes = t.recomputes();
    let takes = if recomputes { TakenMatrices::All } else { TakenMatrices::Result };
    let problem = GemmProblem::declare(b, plan, takes);
    let problem = if t.splits().are_matrices() { problem } else { problem.with_distinct(b) };
    let factors = recomputes.then_some(problem);
    let problem = problem.without_factors();
    let unrepresentable = t.arith().is_emulation().then(|| UnrepresentableFlag::parameter(b));
    let row_max = t.arith().is_scaled().then(|| RowMax::parameters(b, &problem));
    let int = |v: u32| v as i32;
    let [rows, columns] = schedule::tile_meanings(plan, &problem);
    let bm = b.constant("BM", int(t.bm()), rows);
    let bn = b.constant("BN", int(t.bn()), columns);
    let bk = b.constant("BK", int(t.bk()), "depth of a K tile");
    let tm = b.constant("TM", int(t.tm()), "rows of C that a thread stores");
    let tn = b.constant("TN", int(t.tn()), "columns of C that a thread stores");
    let own_accumulators = b.constant("ACCUMULATORS", tm * tn, "accumulators per thread");
    let (name, meaning) = match t.producer() {
        true => ("CONSUMERS", "threads of the consumer warpgroups"),
        false => ("THREADS", "threads per block"),
    };
    let threads = b.constant(name, bm / tm * (bn / tn), meaning);
    let producer = t.producer().then(|| {
        let meaning = "threads of the producer warpgroup, after the consumers";
        b.constant("PRODUCER", int(WARPGROUP), meaning)
    });
    match producer {
        None => b.launch_bounds(threads),
        Some(producer) => b.launch_bounds(threads + producer),
    }
    let grid = schedule::grid(plan, &problem);
    let blocks_per_sm = plan.least_resident();
    b.geometry(Geometry { block: (t.threads(), 1), grid, blocks_per_sm });
    let of = t.splits();
    let splits = match of.are_matrices() {
        true => Splits::of_matrices(b, plan, buffers, &problem),
        false => Splits::shape(b, &of, &literal_pads(&of), buffers, &problem, t.copies()),
    };
    let tid = b.let_("tid", Special::ThreadX);
    let cluster = (plan.cluster() > 1).then(|| {
        let meaning = "blocks per cluster, which share tiles of B";
        let blocks = b.constant("CLUSTER", int(plan.cluster()), meaning);
        b.named_cluster(plan.cluster(), blocks);
        (blocks, b.let_("rank", Special::ClusterRank))
    });
    let stages = (t.stages() > 1).then(|| stages(b, t.stages()));
    let (slabs, tiles) = tiles(b, t, stages, &splits, [bm, bn], bk);
    let accumulators =
        AccumulatorCounts { places: tm * tn, epilogue_threads: threads.into(), by_all: true };
    let split = SplitKWorkspace::declare(b, plan, &problem, accumulators);
    let partitions = SplitKPartitions::of_block(b, plan, &problem, bk);
    let (partitions, range) = partitions.unzip();
    let frame = WgmmaFrame {
        accumulators: own_accumulators,
        plan,
        t,
        problem,
        splits,
        bm,
        bn,
        bk,
        threads,
        tid,
        stages,
        cluster,
        slabs,
        tiles,
        range,
    };
    let consumers =
        Consumers { frame: &frame, factors, split, partitions, unrepresentable, row_max, tm, tn };
    pipeline::run(b, &consumers);
}

/// Declares the shared memory of the tiles of A and B, whose extents are `lines` along M and N, and
/// the lengths of the rows of MN-major operands.
fn tiles(
    b: &mut KernelBuilder,
    t: &WgmmaPlan,
    stages: Option<Const>,
    splits: &Splits,
    lines: [Const; 2],
    bk: Const,
) -> ([Option<Const>; 2], [BufferId; 2]) {
    let meaning = |factor: Factor| {
        let splits = if t.arith().splits() > 1 { "splits of " } else { "" };
        let per_stage = if stages.is_some() { " per stage" } else { "" };
        let line = match factor {
            Factor::A => "m",
            Factor::B => "n",
        };
        let swizzled = match t.swizzle(factor).bytes() {
            Some(bytes) if t.is_mn_major(factor) => {
                format!(", in slabs of {bytes}-byte rows along {line}, swizzled by TMA")
            }
            Some(bytes) if t.copies() == Copies::Tma => {
                format!(", {bytes}-byte swizzled by TMA: ({line}, k) is not at [{line}][k]")
            }
            _ => String::new(),
        };
        format!("{splits}one tile of {factor}{per_stage}{swizzled}")
    };
    let slabs = Factor::BOTH.map(|factor| {
        let (name, meaning) = match factor {
            Factor::A => ("SLAB_M", "rows of A in a row of shared memory"),
            Factor::B => ("SLAB_N", "columns of B in a row of shared memory"),
        };
        let slab = t.slabs()[factor.index()];
        (slab > 0).then(|| b.constant(name, slab as i32, meaning))
    });
    let tiles = Factor::BOTH.map(|factor| {
        let lines = lines[factor.index()];
        let dims = stages.into_iter().chain(splits.count).map(Expr::from);
        let tile = match slabs[factor.index()] {
            None => vec![lines.into(), bk.into()],
            Some(slab) => vec![lines / slab, bk.into(), slab.into()],
        };
        let dims: Vec<Expr> = dims.chain(tile).collect();
        let order = (0..dims.len()).collect();
        let elem = t.factor(factor);
        let swizzle = t.swizzle(factor).layout(elem);
        let layout = BufferLayout::Array { order, pad: 0.into(), swizzle };
        b.shared(&format!("{factor}s"), elem, dims, layout, meaning(factor))
    });
    (slabs, tiles)
}

/// State of the consumer threads, which multiply tiles and have their accumulators.
struct Consumers<'t> {
    frame: &'t WgmmaFrame<'t>,
    /// Problem with A and B, for sums that may leave the range of `f32` on the way.
    factors: Option<GemmProblem>,
    split: Option<SplitKWorkspace>,
    partitions: Option<SplitKPartitions>,
    unrepresentable: Option<UnrepresentableFlag>,
    row_max: Option<RowMax>,
    tm: Const,
    tn: Const,
}

/// State of a consumer thread that is the same for all tiles.
struct ConsumerState {
    place: ThreadPlace,
    /// Condition that the splits represent all values; `None` without FP32 emulation.
    all_representable: Option<Expr>,
}

impl Consumers<'_> {
    /// Emits the code before the first tile.
    fn prepare(&self, b: &mut KernelBuilder, all_representable: Option<Expr>) -> ConsumerState {
        ConsumerState { place: self.frame.place(b, self.tm, self.tn), all_representable }
    }

    /// Stores the accumulators of a tile in C, or leaves them for another block to combine.
    fn store(
        &self,
        b: &mut KernelBuilder,
        ready: &ConsumerState,
        tile: &OutputTile,
        sums: BufferId,
    ) {
        let frame = self.frame;
        let block = frame.accumulator_tile(&ready.place, tile);
        let finish = EpilogueExpression::declare(b, frame.plan, &tile.problem);
        let exchanged = frame.t.has_vectors();
        if exchanged {
            exchange(b, frame, sums);
        }
        let acc = Accumulators::from_wgmma(sums, frame.t.swap_ab(), exchanged);
        if let Some(row_max) = self.row_max {
            scale_back(b, &block, &acc, row_max);
        }
        if let Some(factors) = &self.factors {
            recompute(b, frame, factors, &block, &acc);
        }
        let parts = self
            .partitions
            .map(|all| TileParts::Partitions(SplitKPartitions { tile: tile.nth, ..all }));
        let store = |b: &mut KernelBuilder| match self.split.as_ref().zip(parts.as_ref()) {
            None => epilogue::store(b, &block, &acc, &finish),
            Some((split, parts)) => {
                split.gather(b, &block, parts, acc, |b, all| {
                    epilogue::store(b, &block, all, &finish);
                });
            }
        };
        match &ready.all_representable {
            None => store(b),
            Some(none) => b.if_(none.clone(), store),
        }
    }
}

/// Exchanges accumulators between pairs of lanes. Each lane has two adjacent elements in each of
/// two rows, and receives four elements in one row. The even lane keeps the upper row, and the odd
/// lane keeps the lower row, which is eight rows below.
fn exchange(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>, sums: BufferId) {
    b.comment(EXCHANGE);
    let is_even = Expr::from(b.let_("is_even", (frame.tid % 2).equals(0)));
    b.unrolled("i", frame.accumulators / 4, |b, i| {
        b.unrolled("j", 2, |b, j| {
            exchange_column(b, &is_even, |row| Access::new(sums, [i * 4 + row * 2 + j]));
        });
    });
}

/// Undoes the scaling of rows and columns in a tile's accumulators.
fn scale_back(
    b: &mut KernelBuilder,
    block: &AccumulatorTile<'_>,
    acc: &Accumulators,
    row_max: RowMax,
) {
    b.comment("Undo the power-of-two scaling of rows and columns.");
    let p = &block.problem;
    let factor_of = |b: &mut KernelBuilder, of: Factor, line: Expr| {
        let at = row_max.at(of, p.matrix_of(of, p.product), line);
        let most = b.let_("largest", at.load());
        row_scale::back(b, most.into())
    };
    let of_rows = b.registers("row_scales", Elem::F32, [block.rows.name.into()], "");
    over(b, "m", block.rows.name.into(), block.rows.count, |b, m| {
        let row = block.origin.row + block.rows.element(m.clone());
        let factor = factor_of(b, Factor::A, row.min(p.m - 1));
        b.store(Access::new(of_rows, [m]), factor);
    });
    over(b, "n", block.cols.name.into(), block.cols.count, |b, n| {
        let col = block.origin.col + block.cols.element(n.clone());
        let factor = factor_of(b, Factor::B, col.min(p.n - 1));
        let of_col = b.let_("col_scale", factor);
        over(b, "m", block.rows.name.into(), block.rows.count, |b, m| {
            let of_row = b.let_("row_scale", Access::new(of_rows, [m.clone()]).load());
            let factors = [of_row, of_col].map(Expr::from);
            let sum = row_scale::scaled_back(b, acc.value(&m, &n), factors);
            acc.set(b, &m, &n, sum);
        });
    });
}

impl<'p> WgmmaFrame<'p> {
    /// Extent of the part of K that the block accumulates.
    fn depth(&self) -> Expr {
        match self.range {
            None => self.problem.k.into(),
            Some(range) => range.depth.into(),
        }
    }

    fn stage_count(&self) -> Expr {
        self.stages.map_or(Expr::I32(1), Expr::from)
    }

    /// First k of tile `round` of the block.
    fn term(&self, round: Expr) -> Expr {
        self.k_of_range(round * self.bk)
    }

    /// Position in K of a term of the block's range.
    fn k_of_range(&self, term: Expr) -> Expr {
        match self.range {
            None => term,
            Some(range) => range.begin + term,
        }
    }

    /// Address of an element in the tile of A or B in the given stage. The line of an MN-major
    /// operand is the first of its slab.
    fn in_tile(&self, of: Factor, stage: &Expr, [split, line, term]: [Expr; 3]) -> Access {
        let stage = self.stages.map(|_| stage.clone());
        let split = self.splits.count.map(|_| split);
        let in_split = match self.slabs[of.index()] {
            None => vec![line, term],
            Some(_) if line == Expr::I32(0) => vec![line, term, 0.into()],
            Some(slab) => vec![line / slab, term, 0.into()],
        };
        let index = stage.into_iter().chain(split).chain(in_split);
        Access::new(self.tiles[of.index()], index)
    }

    /// Address of the first element of a slab of an MN-major operand in the given stage.
    fn slab(&self, of: Factor, stage: &Expr, slab: Expr) -> Access {
        let stage = self.stages.map(|_| stage.clone());
        let index = stage.into_iter().chain([slab, 0.into(), 0.into()]);
        Access::new(self.tiles[of.index()], index)
    }

    /// Computes the positions of this thread's accumulators.
    fn place(&self, b: &mut KernelBuilder, tm: Const, tn: Const) -> ThreadPlace {
        if self.t.swap_ab() {
            return self.swapped_place(b, tm, tn);
        }
        let rows = b.constant("WARPGROUP_M", Wgmma::ROWS as i32, "rows of C per warpgroup");
        let columns = self.t.columns();
        let cols = match columns == self.t.bn() {
            true => self.bn,
            false => b.constant("WARPGROUP_N", columns as i32, "columns of C per warpgroup"),
        };
        b.comment(
            "A warpgroup computes WARPGROUP_M rows of the block tile, and each of its warps 16 of \
             them;",
        );
        let has = match self.t.has_vectors() {
            false => "a lane holds every eighth of these rows, and two of every eight columns.",
            true => {
                "after the exchange below, a lane holds one of these rows, and four of every eight \
                 columns."
            }
        };
        b.comment(has);
        let warp = b.let_("warp", self.tid / WARP as i32);
        let lane = b.let_("lane", self.tid % WARP as i32);
        let group = Expr::from(warp) / Wgmma::WARPS as i32;
        let (group_row, group_col) = match columns == self.t.bn() {
            true => (b.let_("warpgroup_row", group * rows).into(), Expr::I32(0)),
            false => {
                let beside = self.bn / cols;
                let row = b.let_("warpgroup_row", group.clone() / beside.clone() * rows);
                let col = b.let_("warpgroup_col", group % beside * cols);
                (Expr::from(row), Expr::from(col))
            }
        };
        let of_warp = SgemmSpec::ROWS_OF_WARP as i32;
        // Four lanes share a row of accumulators. If pairs of lanes have exchanged accumulators,
        // two lanes share a row, and the rows of a pair are eight apart.
        let (own_row, own_col, adjacent, [tall, wide]) = match self.t.has_vectors() {
            false => (lane / 4, lane % 4 * 2, 2, [8, 4]),
            true => (lane % 2 * 8 + lane / 4, lane % 4 / 2 * 4, 4, [16, 2]),
        };
        let in_group = Expr::from(warp) % Wgmma::WARPS as i32 * of_warp + own_row;
        let row = b.let_("thread_row", group_row.clone() + in_group);
        let col = match group_col {
            Expr::I32(0) => b.let_("thread_col", own_col),
            ref first => b.let_("thread_col", first.clone() + own_col),
        };
        let lanes_m = b.constant("LANES_M", tall, "lanes that store one column of C");
        let lanes_n = b.constant("LANES_N", wide, "lanes that store one row of C");
        ThreadPlace {
            rows: Elements {
                adjacent: Adjacent::One,
                first: row,
                name: tm,
                count: self.t.tm(),
                threads: lanes_m,
            },
            cols: Elements {
                adjacent: Adjacent::Of(adjacent),
                first: col,
                name: tn,
                count: self.t.tn(),
                threads: lanes_n,
            },
            group: [group_row, group_col],
            lane,
        }
    }

    /// Computes these positions if A and B are swapped in the instructions.
    fn swapped_place(&self, b: &mut KernelBuilder, tm: Const, tn: Const) -> ThreadPlace {
        let cols = b.constant("WARPGROUP_N", Wgmma::ROWS as i32, "columns of C per warpgroup");
        b.comment(
            "wgmma computes the transpose of the block tile: a warpgroup computes WARPGROUP_N \
             columns of the block tile, and each of its warps 16 of them; a lane holds every \
             eighth of these columns, and two of every eight rows.",
        );
        let warp = b.let_("warp", self.tid / WARP as i32);
        let lane = b.let_("lane", self.tid % WARP as i32);
        let first = b.let_("warpgroup_col", Expr::from(warp) / Wgmma::WARPS as i32 * cols);
        let of_warp = SgemmSpec::ROWS_OF_WARP as i32;
        let in_group = Expr::from(warp) % Wgmma::WARPS as i32 * of_warp + lane / 4;
        let col = b.let_("thread_col", first + in_group);
        let row = b.let_("thread_row", lane % 4 * 2);
        let lanes_m = b.constant("LANES_M", 4, "lanes that store one column of C");
        let lanes_n = b.constant("LANES_N", 8, "lanes that store one row of C");
        let rows = Elements {
            adjacent: Adjacent::Of(2),
            first: row,
            name: tm,
            count: self.t.tm(),
            threads: lanes_m,
        };
        let cols = Elements {
            adjacent: Adjacent::One,
            first: col,
            name: tn,
            count: self.t.tn(),
            threads: lanes_n,
        };
        ThreadPlace { rows, cols, group: [0.into(), first.into()], lane }
    }

    fn accumulator_tile(&self, place: &ThreadPlace, tile: &OutputTile) -> AccumulatorTile<'p> {
        AccumulatorTile {
            plan: self.plan,
            epilogue: self.t.epilogue(),
            problem: tile.problem,
            origin: tile.origin,
            bm: self.bm.into(),
            bn: self.bn.into(),
            rows: place.rows,
            cols: place.cols,
            epilogue_thread: self.tid.into(),
            epilogue_threads: self.threads.into(),
            in_epilogue: None,
            thread: (self.tid.into(), self.threads.into()),
            first_thread: Expr::from(self.tid).equals(0),
            meet: if self.t.producer() { Some(self.t.epilogue_threads()) } else { None },
        }
    }
}
