//! Main loop: copies of tiles of splits to shared memory, and synchronisation of producer and
//! consumers.

use super::tiles::{OutputTile, OutputTiles};
use super::{Consumers, ThreadPlace, WgmmaFrame};
use crate::ir::{
    Access, BufferId, Change, Const, Expr, For, KernelBuilder, MbarrierId, ProxyFence, Unroll, Var,
};
use crate::lower::sgemm::wgmma::accumulators::WgmmaAccumulators;
use crate::plan::{WARPGROUP, launch_registers};
use crate::spec::{Copies, Factor};
use crate::target::arch::WARP;

/// Emits the code of the consumers, and of the producer if there is one.
pub(super) fn run(b: &mut KernelBuilder, consumers: &Consumers<'_>) {
    let frame = consumers.frame;
    let tiles = OutputTiles::declare(b, frame);
    let all_representable =
        consumers.unrepresentable.map(|unrepresentable| unrepresentable.none(b));
    let rounds = frame.depth().div_ceil(frame.bk);
    let rounds =
        all_representable.clone().into_iter().fold(rounds, |rounds, none| none.select(rounds, 0));
    let rounds = b.let_("k_tiles", rounds);
    let by_consumers = |b: &mut KernelBuilder, multiply: Multiply<'_>, skip: Option<Skip<'_>>| {
        let ready = consumers.prepare(b, all_representable.clone());
        let skip = skip.filter(|_| frame.t.has_row_groups());
        tiles.each(b, frame, rounds, |b, tile| {
            let compute = |b: &mut KernelBuilder| {
                let sums = multiply(b, tile, &ready.place);
                consumers.store(b, &ready, tile, sums);
            };
            let Some((skip, end)) = skip.zip(tile.origin.end_of_group) else { return compute(b) };
            b.comment("A warpgroup without a row of the group only releases the stages.");
            let [row, _] = &ready.place.group;
            let has_rows = (tile.origin.row + row.clone()).lt(end);
            b.if_else(has_rows, compute, |b| skip(b, tile, &ready.place));
        });
    };
    if frame.t.copies() == Copies::Threads {
        return by_consumers(b, &|b, tile, place| copied(b, frame, tile, rounds, place), None);
    }
    let boxes = TmaTiles::declare(b, frame, rounds);
    if !frame.t.producer() {
        return by_consumers(b, &|b, tile, place| boxes.by_all(b, tile, place), None);
    }
    let limits = frame.t.registers();
    b.if_else(
        Expr::from(frame.tid).ge(frame.threads),
        |b| {
            b.comment(match frame.cluster {
                None => {
                    "Producer: keeps all pipeline stages full. One thread issues all copies; the \
                     others exit."
                }
                Some(_) => {
                    "Producer: keeps all pipeline stages full. One thread issues all copies; the \
                     others only wait at the end."
                }
            });
            if let Some([few, many]) = limits {
                let (t, spec) = (frame.t, frame.plan.spec());
                let even = launch_registers(t.threads(), spec.resident_blocks());
                let (threads, consumers) = (t.threads(), t.epilogue_threads());
                b.comment(format!(
                    "Registers move to the consumers: {WARPGROUP} * {few} + {consumers} * {many} = \
                     {} <= {threads} * {even} = {}, which the launch allocates.",
                    WARPGROUP * few + consumers * many,
                    threads * even,
                ));
                b.fewer_registers(few);
            }
            b.if_(Expr::from(frame.tid).equals(frame.threads), |b| {
                tiles.each(b, frame, rounds, |b, tile| boxes.produce(b, tile));
            });
        },
        |b| {
            b.comment("Consumers: multiply each stage as it arrives.");
            if let Some([_, many]) = limits {
                b.more_registers(many);
            }
            let skip = |b: &mut KernelBuilder, tile: &_, place: &_| boxes.skip(b, tile, place);
            by_consumers(b, &|b, tile, place| boxes.consume(b, tile, place), Some(&skip));
        },
    );
    if frame.cluster.is_some() {
        b.comment("No block may exit while others still copy into it or arrive at its mbarriers.");
        b.warp_barrier();
        b.cluster_barrier();
    }
}

/// Function that emits the multiplication of a tile of C, and returns its accumulators.
type Multiply<'f> = &'f dyn Fn(&mut KernelBuilder, &OutputTile, &ThreadPlace) -> BufferId;

/// Function that emits the loop of a warpgroup which computes nothing of a tile of C.
type Skip<'f> = &'f dyn Fn(&mut KernelBuilder, &OutputTile, &ThreadPlace);

/// Emits a loop over all K tiles that is not unrolled, because unrolling would repeat all
/// instructions of a tile.
fn each_round(
    b: &mut KernelBuilder,
    rounds: impl Into<Expr>,
    body: impl FnOnce(&mut KernelBuilder, Var),
) {
    b.loop_("k_tile", For::below(0, rounds).unroll(Unroll::By(1)), body);
}

/// Emits the main loop in which all threads copy tiles and then multiply them.
fn copied(
    b: &mut KernelBuilder,
    frame: &WgmmaFrame<'_>,
    tile: &OutputTile,
    rounds: Var,
    place: &ThreadPlace,
) -> BufferId {
    let sums = WgmmaAccumulators::declare(b, frame);
    b.comment("Main loop: copy a K tile to shared memory, then multiply it.");
    each_round(b, rounds, |b, round| {
        b.comment("Threads copy 16 bytes at a time, and write zeros past the end of K.");
        for factor in Factor::BOTH {
            copy(b, frame, FactorCopy { tile, factor, round });
        }
        b.comment(
            "wgmma reads shared memory through the async proxy, so a proxy fence follows the \
             stores.",
        );
        b.proxy_fence(ProxyFence::Async);
        b.barrier();
        frame.multiply(b, sums, &0.into(), place, |b| b.barrier());
    });
    sums.all
}

/// Tile of A (`nth` = 0) or of B (`nth` = 1) that threads copy in one round.
#[derive(Clone, Copy)]
struct FactorCopy<'t> {
    tile: &'t OutputTile,
    factor: Factor,
    round: Var,
}

/// Number of vectors of a tile that a thread loads before it stores the first of them.
const AT_ONCE: u32 = 4;

/// Copies the splits of a tile of A or B. Several loads of a thread are in flight at once if all
/// threads have the same number of vectors.
fn copy(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>, of: FactorCopy<'_>) {
    let t = frame.t;
    let (lines, rows) = match of.factor {
        Factor::A => (frame.bm, t.bm()),
        Factor::B => (frame.bn, t.bn()),
    };
    let of_split = lines * (frame.bk / i32::from(t.elem().vector_lanes()));
    let all = frame.splits.of_all(of_split.clone());
    let vectors = t.arith().splits() * rows * t.bk() / u32::from(t.elem().vector_lanes());
    if !vectors.is_multiple_of(t.threads()) {
        let threads = Change::Add(frame.threads.into());
        let head = For::below(frame.tid, all).change(threads).unroll(Unroll::By(1));
        b.loop_("i", head, |b, i| copy_vector(b, frame, of, i, of_split));
        return;
    }
    let of_thread = vectors / t.threads();
    let unroll = if of_thread <= AT_ONCE { Unroll::Full } else { Unroll::By(AT_ONCE) };
    let head = For::below(0, all / frame.threads).unroll(unroll);
    b.loop_("i", head, |b, i| {
        let vector = b.let_("vector", i * frame.threads + frame.tid);
        copy_vector(b, frame, of, vector, of_split);
    });
}

/// Copies vector `i` of a tile. `of_split` is the number of vectors of each split.
fn copy_vector(
    b: &mut KernelBuilder,
    frame: &WgmmaFrame<'_>,
    of: FactorCopy<'_>,
    i: Var,
    of_split: Expr,
) {
    let FactorCopy { tile, factor, round } = of;
    let p = &tile.problem;
    let (lines, origin) = match factor {
        Factor::A => (frame.bm, tile.origin.row),
        Factor::B => (frame.bn, tile.origin.col),
    };
    let extent = p.lines_of(factor);
    let elem = frame.t.elem();
    let lanes = i32::from(elem.vector_lanes());
    let of_line = frame.bk / lanes;
    let split = match frame.splits.count {
        None => Expr::I32(0),
        Some(_) => b.let_("plane", i / of_split).into(),
    };
    let line = i / of_line.clone();
    let line = if frame.splits.count.is_some() { line % lines } else { line };
    let line = b.let_("line", line);
    let term = b.let_("k", i % of_line * lanes);
    let at = Expr::from(b.let_("global_k", frame.term(round.into()) + term));
    let inside = (origin + line).min(extent - 1);
    let from = frame.splits.of_product(factor, p.product, split.clone()).into_iter();
    let from = from.chain([inside, at.clone()]);
    let from = Access::new(frame.splits.buffers[factor.index()], from).vector();
    let to = frame.in_tile(factor, &0.into(), [split, line.into(), term.into()]).vector();
    let zeros = vec![Expr::F32(0.0).cast(elem); elem.vector_lanes().into()];
    b.if_else(
        at.lt(frame.splits.pitch()),
        |b| b.store(to.clone(), from.load()),
        |b| b.store(to.clone(), Expr::Pack(zeros)),
    );
}

/// Tiles that TMA copies, and the mbarriers of their stages.
struct TmaTiles<'t> {
    frame: &'t WgmmaFrame<'t>,
    rounds: Var,
    full: MbarrierId,
    /// Mbarriers at which consumers release stages to the producer.
    empty: Option<MbarrierId>,
}

/// Rank of a block in its cluster, and the number of blocks.
struct ClusterBlock {
    blocks: Const,
    rank: Var,
}

/// Stage of a tile, and the parity of the stage's phase.
struct StageTurn {
    stage: Expr,
    parity: Expr,
}

impl<'t> TmaTiles<'t> {
    fn declare(b: &mut KernelBuilder, frame: &'t WgmmaFrame<'t>, rounds: Var) -> Self {
        let t = frame.t;
        let count = frame.stage_count();
        let full = "full[s] completes when the copies into stage s have arrived";
        let full = b.mbarriers("full", count.clone(), full);
        let empty = "empty[s] completes when all consumer warps have read stage s";
        let empty = t.producer().then(|| b.mbarriers("empty", count.clone(), empty));
        b.comment("full: one arrival per phase, by the thread that starts the copies.");
        if empty.is_some() {
            b.comment(match frame.cluster {
                None => "empty: one arrival per phase and consumer warp.",
                Some(_) => "empty: one arrival per phase and consumer warp of the cluster.",
            });
        }
        b.if_(Expr::from(frame.tid).equals(0), |b| {
            b.unrolled("i", count, |b, i| {
                b.mbarrier_init(full, i, 1);
                if let Some(empty) = empty {
                    let warps = frame.threads / WARP as i32;
                    let warps = match frame.cluster {
                        None => warps,
                        Some((blocks, _)) => blocks * warps,
                    };
                    b.mbarrier_init(empty, i, warps);
                }
            });
            b.proxy_fence(ProxyFence::MbarrierInit);
        });
        match frame.cluster {
            None => b.barrier(),
            Some(_) => b.cluster_barrier(),
        }
        Self { frame, rounds, full, empty }
    }

    fn turn(&self, b: &mut KernelBuilder, tile: &OutputTile, round: Var) -> StageTurn {
        let round = match tile.k_tiles_done {
            None => round,
            Some(done) => b.let_("fill", done + round),
        };
        match self.frame.stages {
            None => StageTurn { stage: 0.into(), parity: round % 2 },
            Some(stages) => StageTurn {
                stage: b.let_("stage", round % stages).into(),
                parity: b.let_("parity", round / stages % 2).into(),
            },
        }
    }

    /// Issues the TMA copies of the tile for a round, in one thread.
    fn ask(&self, b: &mut KernelBuilder, tile: &OutputTile, stage: &Expr, round: Expr) {
        let frame = self.frame;
        let size = frame.t.elem().size() as i32;
        let elements = (frame.bm + frame.bn) * frame.bk;
        let bytes = frame.splits.of_all(elements) * size;
        b.mbarrier_arrive_expect(self.full, stage.clone(), bytes);
        let term = frame.term(round);
        let lines = [(Factor::A, tile.origin.row), (Factor::B, tile.origin.col)];
        for (factor, line) in lines {
            if let (Some((blocks, rank)), Factor::B) = (frame.cluster, factor) {
                return self.ask_for_part(b, tile, stage, term, ClusterBlock { blocks, rank });
            }
            let outer = frame.splits.outer(&tile.problem, factor, 0.into());
            let (buffer, full) = (frame.splits.buffers[factor.index()], (self.full, stage.clone()));
            if let Some(slab) = frame.slabs[factor.index()] {
                let lines = [frame.bm, frame.bn][factor.index()];
                b.unrolled("slab", lines / slab, |b, nth| {
                    let at = outer.into_iter().chain([term.clone(), line + nth * slab]);
                    let to = frame.slab(factor, stage, nth.into());
                    b.tensor_copy(buffer, at, to, full);
                });
                continue;
            }
            let at = outer.into_iter().chain([line.into(), term.clone()]);
            let to = frame.in_tile(factor, stage, [0, 0, 0].map(Expr::I32));
            b.tensor_copy(buffer, at, to, full);
        }
    }

    /// Issues the multicast of this block's part of B's tile to all blocks of the cluster.
    fn ask_for_part(
        &self,
        b: &mut KernelBuilder,
        tile: &OutputTile,
        stage: &Expr,
        term: Expr,
        block: ClusterBlock,
    ) {
        let ClusterBlock { blocks, rank } = block;
        let frame = self.frame;
        let meaning = "columns of B that a block multicasts";
        let part = b.constant("PART", frame.bn / blocks, meaning);
        let line = Expr::from(tile.origin.col) + rank * part;
        let all = (Expr::I32(1) << blocks) - 1;
        let buffer = frame.splits.buffers[Factor::B.index()];
        if let Some(slab) = frame.slabs[Factor::B.index()] {
            let outer = frame.splits.outer(&tile.problem, Factor::B, 0.into());
            return b.unrolled("slab", part / slab, |b, nth| {
                let at = outer.into_iter().chain([term, line + nth * slab]);
                let to = frame.slab(Factor::B, stage, rank * (part / slab) + nth);
                b.tensor_multicast(buffer, at, to, (self.full, stage.clone()), all);
            });
        }
        frame.splits.each(b, |b, split| {
            let from = frame.splits.outer(&tile.problem, Factor::B, split.clone());
            let at = from.into_iter().chain([line.clone(), term.clone()]);
            let to = frame.in_tile(Factor::B, stage, [split, rank * part, 0.into()]);
            let barrier = (self.full, stage.clone());
            b.tensor_multicast(buffer, at, to, barrier, all);
        });
    }

    /// Emits the main loop without a producer warpgroup. All threads multiply, and the first thread
    /// issues the copies.
    fn by_all(&self, b: &mut KernelBuilder, tile: &OutputTile, place: &ThreadPlace) -> BufferId {
        let frame = self.frame;
        let first_thread = || Expr::from(frame.tid).equals(0);
        let stages = frame.stage_count();
        b.comment("Prologue: start the copies of the first tiles.");
        b.if_(first_thread(), |b| {
            each_round(b, Expr::from(self.rounds).min(stages.clone()), |b, round| {
                let stage = frame.stages.map_or(Expr::I32(0), |_| round.into());
                self.ask(b, tile, &stage, round.into());
            });
        });
        let sums = WgmmaAccumulators::declare(b, frame);
        let ahead =
            if frame.stages.is_some() { "the tile STAGES further on" } else { "the next tile" };
        b.comment(format!(
            "Main loop: wait for the tile, multiply it, then start the copies of {ahead} into its \
             stage."
        ));
        each_round(b, self.rounds, |b, round| {
            let StageTurn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            frame.multiply(b, sums, &stage, place, |b| {
                b.comment("All threads have read the stage: the next tile may overwrite it.");
                b.barrier();
                let next = round + stages;
                b.if_(first_thread().and(next.clone().lt(self.rounds)), |b| {
                    self.ask(b, tile, &stage, next);
                });
            });
        });
        sums.all
    }

    /// Emits the producer's loop, in which one thread issues the copies of all K tiles.
    fn produce(&self, b: &mut KernelBuilder, tile: &OutputTile) {
        each_round(b, self.rounds, |b, round| {
            let StageTurn { stage, parity } = self.turn(b, tile, round);
            if let Some(empty) = self.empty {
                b.comment(
                    "The consumers must have released the stage. At first all stages are free: a \
                     wait for the phase before the first one returns at once.",
                );
                b.mbarrier_wait(empty, stage.clone(), parity.xor(1));
            }
            self.ask(b, tile, &stage, round.into());
        });
    }

    /// Emits the consumers' loop over all K tiles.
    fn consume(&self, b: &mut KernelBuilder, tile: &OutputTile, place: &ThreadPlace) -> BufferId {
        let frame = self.frame;
        if frame.t.multiplies_ahead() {
            return self.consume_ahead(b, tile, place);
        }
        let sums = WgmmaAccumulators::declare(b, frame);
        b.comment(
            "Main loop: wait for the tile, multiply it, then release its stage to the producer.",
        );
        each_round(b, self.rounds, |b, round| {
            let StageTurn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            frame.multiply(b, sums, &stage, place, |b| {
                b.comment("This warp has read the stage and releases it.");
                self.release(b, place, &stage);
            });
        });
        sums.all
    }

    /// Emits the loop of a warpgroup that releases all stages without reading them.
    fn skip(&self, b: &mut KernelBuilder, tile: &OutputTile, place: &ThreadPlace) {
        each_round(b, self.rounds, |b, round| {
            let StageTurn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            self.release(b, place, &stage);
        });
    }

    /// Emits a consumers' loop that keeps the instructions of two K tiles in flight.
    fn consume_ahead(
        &self,
        b: &mut KernelBuilder,
        tile: &OutputTile,
        place: &ThreadPlace,
    ) -> BufferId {
        let frame = self.frame;
        let sums = WgmmaAccumulators::declare(b, frame);
        b.comment(
            "Main loop: wait for the tile and start its instructions. Those of the previous tile \
             are then complete, and its stage is released to the producer.",
        );
        each_round(b, self.rounds, |b, round| {
            let StageTurn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            frame.multiply_ahead(b, sums, &stage, place);
            b.if_(Expr::from(round).gt(0), |b| self.release_before(b, tile, place, round.into()));
        });
        b.comment("Wait for the last tile, and release its stage.");
        b.wgmma_wait(0, [sums.all]);
        let rounds = Expr::from(self.rounds);
        b.if_(rounds.clone().gt(0), |b| self.release_before(b, tile, place, rounds));
        sums.all
    }

    /// Releases the stage of the K tile before tile `round`.
    fn release_before(
        &self,
        b: &mut KernelBuilder,
        tile: &OutputTile,
        place: &ThreadPlace,
        round: Expr,
    ) {
        let fills = match tile.k_tiles_done {
            None => round,
            Some(done) => done + round,
        };
        let stages = self.frame.stage_count();
        let before = b.let_("previous", (fills + (stages.clone() - 1)) % stages);
        self.release(b, place, &before.into());
    }

    /// Releases a stage that the warp has read.
    fn release(&self, b: &mut KernelBuilder, place: &ThreadPlace, stage: &Expr) {
        let Some(empty) = self.empty else { return };
        b.warp_barrier();
        let lane = Expr::from(place.lane);
        match self.frame.cluster {
            None => b.if_(lane.equals(0), |b| b.mbarrier_arrive(empty, stage.clone())),
            Some((blocks, _)) => b.if_(lane.clone().lt(blocks), |b| {
                b.mbarrier_arrive_relaxed(empty, stage.clone(), lane);
            }),
        }
    }
}
