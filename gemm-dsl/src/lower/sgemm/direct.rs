//! Kernels whose threads compute tiles of C without staging operands. A thread reads each element
//! of its rows of A and columns of B from global memory once. [`DirectPlan`] describes the
//! distribution of K among threads.

mod read;

use crate::ir::{Change, Const, Expr, For, Geometry, KernelBuilder, Special, Unroll, Var};
use crate::lower::sgemm::common::accumulator_tile::{AccumulatorTile, TileParts};
use crate::lower::sgemm::common::accumulators::{AccumulatorShare, Accumulators};
use crate::lower::sgemm::common::edge::edge_comment;
use crate::lower::sgemm::common::elements::{Adjacent, Elements};
use crate::lower::sgemm::common::epilogue::{BlockSums, finish_block};
use crate::lower::sgemm::common::epilogue_expression::EpilogueExpression;
use crate::lower::sgemm::common::intra_block_reduction::{self, Slices};
use crate::lower::sgemm::common::loops::over;
use crate::lower::sgemm::common::problem::GemmProblem;
use crate::lower::sgemm::common::schedule::{self, KRange, SplitKPartitions, TileExtents};
use crate::lower::sgemm::common::split_k::SplitKWorkspace;
use crate::plan::{DirectPlan, SgemmPlan};
use crate::spec::{Lanes, Sharing};
use crate::target::arch::WARP;
use read::{FactorReader, LoadedFactor, Steps, multiply};

pub(super) fn body(b: &mut KernelBuilder, plan: &SgemmPlan, d: &DirectPlan, problem: GemmProblem) {
    let direct = Direct::declare(b, plan, d, problem);
    let block = &direct.block;
    let finish = EpilogueExpression::declare(b, plan, &block.problem);
    let split = SplitKWorkspace::declare(b, plan, &block.problem, block.accumulators());
    let acc = direct.sums(b);
    if direct.share.lane.is_some() {
        intra_block_reduction::lanes(b, block, &acc);
    }
    let first_lane = direct.share.lane.map(|lane| Expr::from(lane).equals(0));
    let slices = direct.share.slices;
    let others = slices.map(|slices| slices.hand_over(b, block, &acc, first_lane));
    let sums = BlockSums { acc, others, correct: None };
    finish_block(b, block, direct.parts, split.as_ref(), sums, &finish);
}

/// Declarations of a direct kernel that its builders share.
struct Direct<'p> {
    d: &'p DirectPlan,
    block: AccumulatorTile<'p>,
    /// Split-K partitions of the tile, if blocks share K; `range` is the block's own part of K.
    parts: Option<TileParts>,
    range: Option<KRange>,
    share: KShare,
    a: FactorReader,
    b: FactorReader,
}

/// Part of K that a thread accumulates.
struct KShare {
    /// Lane index, if all lanes of a warp accumulate the same elements.
    lane: Option<Var>,
    slices: Option<Slices>,
    /// First k of this thread, if several threads divide K.
    first: Option<Var>,
    /// Number of elements of K per step, if more than one.
    step: Option<Const>,
    /// Number of steps whose loads are in flight at once, if more than one.
    unroll: Option<Const>,
    /// Distance in K from one step of this thread to its next.
    apart: Option<Const>,
    /// Number of elements of K that a block processes at once.
    round: Option<Const>,
}

impl<'p> Direct<'p> {
    /// Declares constants and geometry, and computes this thread's position.
    fn declare(
        b: &mut KernelBuilder,
        plan: &'p SgemmPlan,
        d: &'p DirectPlan,
        problem: GemmProblem,
    ) -> Self {
        let by_lanes = d.lanes() == Lanes::K;
        let of = if by_lanes { "warps" } else { "threads" };
        let int = |value: u32| value as i32;
        let meaning = |along| format!("{of} per block along {along}");
        let [rows_name, cols_name] =
            if by_lanes { ["WARPS_M", "WARPS_N"] } else { ["ROWS", "COLS"] };
        let rows = b.constant(rows_name, int(d.rows()), meaning("M"));
        let cols = b.constant(cols_name, int(d.cols()), meaning("N"));
        let owner = if by_lanes { "warp" } else { "thread" };
        let tm = b.constant("TM", int(d.tm()), format!("rows of C per {owner}"));
        let tn = b.constant("TN", int(d.tn()), format!("columns of C per {owner}"));
        let lanes =
            by_lanes.then(|| b.constant("LANES", int(WARP), "lanes of a warp, which split K"));
        let slices = (d.slices() > 1).then(|| {
            b.constant("SLICES", int(d.slices()), "slices: groups of threads that split K")
        });
        let of_slice = lanes.into_iter().fold(rows * cols, |all, n| all * n);
        let threads = slices.into_iter().fold(of_slice.clone(), |all, n| all * n);
        b.launch_bounds(threads.clone());
        let consts = KShare::constants(b, d, [lanes, slices]);
        let grid = schedule::grid(plan, &problem);
        let block = (d.threads_of_slice(), d.slices());
        b.geometry(Geometry { block, grid, blocks_per_sm: plan.least_resident() });

        let (bm, bn) = (rows * tm, cols * tn);
        let tile = TileExtents { rows: bm.clone(), cols: bn.clone() };
        let origin = schedule::origin(b, plan, &problem, tile, None, None);
        let problem = problem.for_product(b, origin.batch);
        let (parts, range) = consts.partitions(b, plan, &problem).unzip();

        b.comment(lanes_text(d.lanes()));
        let tid = b.let_("tid", Special::ThreadX);
        let slices =
            slices.map(|slices| Slices { slice: b.let_("slice", Special::ThreadY), slices });
        let (lane, epilogue_thread) = match lanes {
            None => (None, tid),
            Some(lanes) => (Some(b.let_("lane", tid % lanes)), b.let_("warp", tid / lanes)),
        };
        let (row, col) = match d.lanes() {
            Lanes::N | Lanes::K => (epilogue_thread / cols, epilogue_thread % cols),
            Lanes::M => (epilogue_thread % rows, epilogue_thread / rows),
        };
        let thread_row = b.let_(&format!("{owner}_row"), row * tm);
        let thread_col = b.let_(&format!("{owner}_col"), col * tn);
        let is_zero = |var: Var| Expr::from(var).equals(0);
        let first_slice = slices.map(|slices| is_zero(slices.slice));
        let in_epilogue = [lane.map(is_zero), first_slice.clone()];
        let block = AccumulatorTile {
            plan,
            epilogue: d.epilogue(),
            problem,
            origin,
            bm,
            bn,
            rows: Elements {
                adjacent: Adjacent::All,
                first: thread_row,
                name: tm,
                count: d.tm(),
                threads: rows,
            },
            cols: Elements {
                adjacent: Adjacent::All,
                first: thread_col,
                name: tn,
                count: d.tn(),
                threads: cols,
            },
            epilogue_thread: epilogue_thread.into(),
            epilogue_threads: rows * cols,
            in_epilogue: in_epilogue.into_iter().flatten().reduce(Expr::and),
            thread: match slices {
                None => (tid.into(), threads),
                Some(Slices { slice, .. }) => (slice * of_slice + tid, threads),
            },
            first_thread: first_slice.into_iter().fold(is_zero(tid), Expr::and),
            meet: None,
        };
        let share = consts.of_thread(b, lane.zip(lanes), slices);
        edge_comment(b, [d.a().edge(), d.b().edge()]);
        let steps = Steps { unroll: share.unroll, terms: share.step, count: d.step() };
        let [a, b] = [d.a(), d.b()].map(|plan| FactorReader::declare(b, plan, &block, steps));
        Self { d, block, parts, range, share, a, b }
    }

    /// Emits the accumulation over this thread's part of K.
    fn sums(&self, b: &mut KernelBuilder) -> Accumulators {
        let (d, range) = (self.d, self.range);
        let share = match d.lanes() {
            Lanes::N | Lanes::M => AccumulatorShare::Thread { partials: 1 },
            Lanes::K => AccumulatorShare::Lane,
        };
        let elem = self.block.plan.types().acc;
        let acc = Accumulators::zeroed(b, elem, self.block.elements(), share);
        let (begin, depth): (Expr, Expr) = match range {
            None => (0.into(), self.block.problem.k.into()),
            Some(KRange { begin, depth, .. }) => (begin.into(), depth.into()),
        };
        let end = match range {
            None => depth.clone(),
            Some(_) => b.let_("k_end", begin.clone() + depth.clone()).into(),
        };
        let guarded = self.block.plan.guarded();
        if d.unroll() == 1 && !d.ragged() && guarded {
            self.steps(b, &acc, begin, end);
            return acc;
        }
        let round = self.share.round;
        let whole: Expr = match round.filter(|_| guarded) {
            None => end.clone(),
            Some(round) => b.let_("whole", begin.clone() + depth / round * round).into(),
        };
        if d.unroll() > 1 {
            b.comment(
                "Main loop: the loads of UNROLL steps are in flight before the first one is \
                 multiplied.",
            );
        }
        let by = round.map_or(Expr::I32(1), Expr::from);
        let rounds = For::below(begin, whole.clone()).change(Change::Add(by)).unroll(Unroll::By(1));
        b.loop_("k0", rounds, |b, k0| self.round(b, &acc, k0.into()));
        if guarded {
            b.comment("Remainder of K, one step at a time.");
            self.steps(b, &acc, whole, end);
        }
        acc
    }

    /// Emits this thread's steps in the round that starts at `k0`.
    fn round(&self, b: &mut KernelBuilder, acc: &Accumulators, k0: Expr) {
        let d = self.d;
        let (mut a_held, mut b_held) = (self.a.hold(b, true), self.b.hold(b, true));
        let unroll = self.share.unroll.map_or(Expr::I32(1), Expr::from);
        let apart = self.share.apart.map_or(Expr::I32(1), Expr::from);
        let first = self.share.first.map_or(k0.clone(), |first| k0 + first);
        over(b, "u", unroll.clone(), d.unroll(), |b, u| {
            let at = match first + u.clone() * apart {
                at @ Expr::Var(_) => at,
                at => b.let_("k", at).into(),
            };
            self.a.read(b, &mut a_held, &u, &at, None);
            self.b.read(b, &mut b_held, &u, &at, None);
        });
        over(b, "u", unroll, d.unroll(), |b, u| {
            let a = LoadedFactor { reader: &self.a, registers: &a_held };
            let b_loaded = LoadedFactor { reader: &self.b, registers: &b_held };
            multiply(b, acc, a, b_loaded, &u);
        });
    }

    /// Emits this thread's steps from `begin` on, one at a time.
    fn steps(&self, b: &mut KernelBuilder, acc: &Accumulators, begin: Expr, end: Expr) {
        let first = self.share.first.map_or(begin.clone(), |first| begin + first);
        let by = self.share.apart.map_or(Expr::I32(1), Expr::from);
        let steps = For::below(first, end.clone()).change(Change::Add(by)).unroll(Unroll::By(1));
        b.loop_("k", steps, |b, at| {
            let (mut a_held, mut b_held) = (self.a.hold(b, false), self.b.hold(b, false));
            let (u, at) = (Expr::I32(0), Expr::from(at));
            match self.share.step.filter(|_| self.d.ragged()) {
                None => {
                    self.a.read(b, &mut a_held, &u, &at, None);
                    self.b.read(b, &mut b_held, &u, &at, None);
                }
                Some(step) => {
                    let whole = (at.clone() + step).le(end.clone());
                    let reads = |b: &mut KernelBuilder, end: Option<&Expr>| {
                        self.a.fill(b, &a_held, &u, &at, end);
                        self.b.fill(b, &b_held, &u, &at, end);
                    };
                    b.if_else(
                        whole,
                        |b| reads(b, None),
                        |b| {
                            b.comment(
                                "Past the end of K, A is -0 and B is +0: their product, -0, \
                                 changes no accumulator.",
                            );
                            reads(b, Some(&end));
                        },
                    );
                }
            }
            let a = LoadedFactor { reader: &self.a, registers: &a_held };
            let b_loaded = LoadedFactor { reader: &self.b, registers: &b_held };
            multiply(b, acc, a, b_loaded, &u);
        });
    }
}

impl KShare {
    /// Declares the constants of a thread's part of K.
    fn constants(b: &mut KernelBuilder, d: &DirectPlan, parts: [Option<Const>; 2]) -> Self {
        let step = (d.step() > 1)
            .then(|| b.constant("STEP", d.step() as i32, "extent along K per thread and step"));
        let unroll = (d.unroll() > 1).then(|| {
            b.constant("UNROLL", d.unroll() as i32, "steps whose loads are in flight together")
        });
        let product = |factors: &[Option<Const>]| {
            let factors = factors.iter().flatten().copied().map(Expr::from);
            factors.reduce(|all, factor| all * factor)
        };
        let apart = product(&[parts[0], parts[1], step]);
        let apart = apart.map(|apart| {
            b.constant("STEP_STRIDE", apart, "distance in K between steps of a thread")
        });
        let round = match (apart, unroll) {
            (None, None) => None,
            (Some(only), None) | (None, Some(only)) => Some(only),
            (Some(apart), Some(unroll)) => {
                Some(b.constant("ROUND", unroll * apart, round_text(parts)))
            }
        };
        Self { lane: None, slices: None, first: None, step, unroll, apart, round }
    }

    /// Emits this block's split-K partition, if blocks share K.
    fn partitions(
        &self,
        b: &mut KernelBuilder,
        plan: &SgemmPlan,
        problem: &GemmProblem,
    ) -> Option<(TileParts, KRange)> {
        if plan.sharing() == Sharing::Whole {
            return None;
        }
        let round = match self.round {
            Some(round) => round,
            None => b.constant("ROUND", 1, round_text([None; 2])),
        };
        let (all, own) = SplitKPartitions::of_block(b, plan, problem, round)?;
        Some((TileParts::Partitions(all), own))
    }

    /// Completes a thread's part of K with the thread's position: lane, slice and first k.
    fn of_thread(
        self,
        b: &mut KernelBuilder,
        lane: Option<(Var, Const)>,
        slices: Option<Slices>,
    ) -> Self {
        let share: Option<Expr> = match (lane, slices) {
            (None, None) => None,
            (Some((lane, _)), None) => Some(lane.into()),
            (None, Some(slices)) => Some(slices.slice.into()),
            (Some((lane, lanes)), Some(slices)) => Some(slices.slice * lanes + lane),
        };
        let first = share.map(|share| match self.step {
            None => share,
            Some(step) => share * step,
        });
        let first = first.map(|first| b.let_("first_k", first));
        Self { lane: lane.map(|(lane, _)| lane), slices, first, ..self }
    }
}

/// Comment on the constant for the elements of a round, given the numbers of lanes and of slices
/// that split K.
fn round_text([lanes, slices]: [Option<Const>; 2]) -> &'static str {
    match (lanes, slices) {
        (_, Some(_)) => "extent along K per block and main-loop iteration",
        (Some(_), None) => "extent along K per warp and main-loop iteration",
        (None, None) => "extent along K per main-loop iteration",
    }
}

/// Comment that describes the outputs of a thread.
fn lanes_text(lanes: Lanes) -> &'static str {
    match lanes {
        Lanes::N => {
            "A thread holds TM x TN adjacent outputs; the next thread's are to the right of them \
             in C."
        }
        Lanes::M => {
            "A thread holds TM x TN adjacent outputs; the next thread's are below them in C."
        }
        Lanes::K => {
            "The lanes of a warp compute the same TM x TN adjacent outputs, each lane over its \
             share of K."
        }
    }
}
