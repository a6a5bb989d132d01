//! The main loop: how tiles of planes come to shared memory, and who waits for whom.

use super::tiles::{Tile, Tiles};
use super::{Holders, Place, Tensor};
use crate::ir::{
    Access, BufferId, Change, Const, Expr, For, KernelBuilder, MbarrierId, ProxyFence, Unroll, Var,
};
use crate::lower::sgemm::wgmma::accumulators::Sums;
use crate::spec::Copies;
use crate::target::arch::WARP;

/// Does what the threads do that multiply, and what those do that ask for tiles.
pub(super) fn run(b: &mut KernelBuilder, holders: &Holders<'_>) {
    let tensor = holders.tensor;
    let tiles = Tiles::declare(b, tensor);
    let none_lost = holders.lost.map(|lost| lost.none(b));
    let rounds = tensor.depth().div_ceil(tensor.bk);
    let rounds = none_lost.clone().into_iter().fold(rounds, |rounds, none| none.select(rounds, 0));
    let rounds = b.let_("rounds", rounds);
    let by_holders = |b: &mut KernelBuilder, multiply: Multiply<'_>| {
        let ready = holders.prepare(b, none_lost.clone());
        tiles.each(b, tensor, rounds, |b, tile| {
            let sums = multiply(b, tile, &ready.place);
            holders.store(b, &ready, tile, sums);
        });
    };
    if tensor.t.copies() == Copies::Threads {
        return by_holders(b, &|b, tile, place| copied(b, tensor, tile, (rounds, place)));
    }
    let boxes = Boxes::declare(b, tensor, rounds);
    if !tensor.t.producer() {
        return by_holders(b, &|b, tile, place| boxes.by_all(b, tile, place));
    }
    let limits = tensor.t.registers();
    b.if_else(
        Expr::from(tensor.tid).ge(tensor.threads),
        |b| {
            b.comment("The producer keeps the ring full.");
            if let Some([few, _]) = limits {
                b.fewer_registers(few);
            }
            b.if_(Expr::from(tensor.tid).equals(tensor.threads), |b| {
                tiles.each(b, tensor, rounds, |b, tile| boxes.produce(b, tile));
            });
        },
        |b| {
            b.comment("Consumers multiply what is in it.");
            if let Some([_, many]) = limits {
                b.more_registers(many);
            }
            by_holders(b, &|b, tile, place| boxes.consume(b, tile, place));
        },
    );
    if tensor.cluster.is_some() {
        b.comment("No block ends before all have read what others bring, and have arrived where others wait.");
        b.warp_barrier();
        b.cluster_barrier();
    }
}

/// What multiplies a tile of C, and gives its sums.
type Multiply<'f> = &'f dyn Fn(&mut KernelBuilder, &Tile, &Place) -> BufferId;

/// The loop over all tiles: unrolled, each would be written out with all of its instructions.
fn each_round(
    b: &mut KernelBuilder,
    rounds: impl Into<Expr>,
    body: impl FnOnce(&mut KernelBuilder, Var),
) {
    b.loop_("round", For::below(0, rounds).unroll(Unroll::By(1)), body);
}

/// All threads copy a tile, then all multiply it.
fn copied(
    b: &mut KernelBuilder,
    tensor: &Tensor<'_>,
    tile: &Tile,
    (rounds, place): (Var, &Place),
) -> BufferId {
    let sums = Sums::declare(b, tensor.t);
    each_round(b, rounds, |b, round| {
        b.comment("Threads copy 16 bytes at a time; zeros stand behind the last term.");
        for nth in [0, 1] {
            copy(b, tensor, (tile, nth), round);
        }
        b.comment("What threads have stored, matrix instructions read another way.");
        b.proxy_fence(ProxyFence::Async);
        b.barrier();
        tensor.multiply(b, sums, &0.into(), place, |b| b.barrier());
    });
    sums.all
}

/// Vectors of a tile that a thread reads before it stores the first of them.
const AT_ONCE: u32 = 4;

/// Copies the planes of a tile of A, or of B. Where all threads have as many vectors, they ask for several before they wait for one.
fn copy(b: &mut KernelBuilder, tensor: &Tensor<'_>, tile: (&Tile, usize), round: Var) {
    let t = tensor.t;
    let (lines, rows) = if tile.1 == 0 { (tensor.bm, t.bm()) } else { (tensor.bn, t.bn()) };
    let of_plane = lines * (tensor.bk / i32::from(t.elem().vector_lanes()));
    let all = tensor.planes.of_all(of_plane.clone());
    let vectors = t.planes() * rows * t.bk() / u32::from(t.elem().vector_lanes());
    if !vectors.is_multiple_of(t.threads()) {
        let threads = Change::Add(tensor.threads.into());
        let head = For::below(tensor.tid, all).change(threads).unroll(Unroll::By(1));
        b.loop_("i", head, |b, i| copy_vector(b, tensor, tile, (i, of_plane), round));
        return;
    }
    let of_thread = vectors / t.threads();
    let unroll = if of_thread <= AT_ONCE { Unroll::Full } else { Unroll::By(AT_ONCE) };
    let head = For::below(0, all / tensor.threads).unroll(unroll);
    b.loop_("i", head, |b, i| {
        let vector = b.let_("vector", i * tensor.threads + tensor.tid);
        copy_vector(b, tensor, tile, (vector, of_plane), round);
    });
}

/// Copies a vector of a tile, given its number among all, and how many a plane has.
fn copy_vector(
    b: &mut KernelBuilder,
    tensor: &Tensor<'_>,
    (tile, nth): (&Tile, usize),
    (i, of_plane): (Var, Expr),
    round: Var,
) {
    let p = &tile.problem;
    let (lines, origin, extent) = match nth {
        0 => (tensor.bm, tile.origin.row, p.m),
        _ => (tensor.bn, tile.origin.col, p.n),
    };
    let elem = tensor.t.elem();
    let lanes = i32::from(elem.vector_lanes());
    let of_line = tensor.bk / lanes;
    let plane = match tensor.planes.count {
        None => Expr::I32(0),
        Some(_) => b.let_("plane", i / of_plane).into(),
    };
    let line = i / of_line.clone();
    let line = if tensor.planes.count.is_some() { line % lines } else { line };
    let line = b.let_("line", line);
    let term = b.let_("term", i % of_line * lanes);
    let at = Expr::from(b.let_("at", tensor.term(round.into()) + term));
    let inside = (origin + line).min(extent - 1);
    let from = tensor.planes.of_product(nth, p.product, plane.clone()).into_iter();
    let from = from.chain([inside, at.clone()]);
    let from = Access::new(tensor.planes.buffers[nth], from).vector();
    let to = tensor.in_tile(nth, &0.into(), [plane, line.into(), term.into()]).vector();
    let zeros = vec![Expr::F32(0.0).cast(elem); elem.vector_lanes().into()];
    b.if_else(
        at.lt(tensor.planes.pitch()),
        |b| b.store(to.clone(), from.load()),
        |b| b.store(to.clone(), Expr::Pack(zeros)),
    );
}

/// Boxes that come by themselves, and the barriers at which who needs them waits.
struct Boxes<'t> {
    tensor: &'t Tensor<'t>,
    rounds: Var,
    full: MbarrierId,
    /// Where stages are given back to whoever asks for tiles.
    empty: Option<MbarrierId>,
}

/// The stage of a tile, and the parity of its phase there.
struct Turn {
    stage: Expr,
    parity: Expr,
}

impl<'t> Boxes<'t> {
    fn declare(b: &mut KernelBuilder, tensor: &'t Tensor<'t>, rounds: Var) -> Self {
        let t = tensor.t;
        let count = tensor.turns();
        let full = b.mbarriers("full", count.clone(), "a tile has come");
        let empty = t.producer().then(|| b.mbarriers("empty", count.clone(), "it has been read"));
        b.if_(Expr::from(tensor.tid).equals(0), |b| {
            b.unrolled("i", count, |b, i| {
                b.mbarrier_init(full, i, 1);
                if let Some(empty) = empty {
                    let warps = tensor.threads / WARP as i32;
                    let warps = match tensor.cluster {
                        None => warps,
                        Some((blocks, _)) => blocks * warps,
                    };
                    b.mbarrier_init(empty, i, warps);
                }
            });
            b.proxy_fence(ProxyFence::MbarrierInit);
        });
        match tensor.cluster {
            None => b.barrier(),
            Some(_) => b.cluster_barrier(),
        }
        Self { tensor, rounds, full, empty }
    }

    fn turn(&self, b: &mut KernelBuilder, tile: &Tile, round: Var) -> Turn {
        let round = match tile.before {
            None => round,
            Some(before) => b.let_("turn", before + round),
        };
        match self.tensor.stages {
            None => Turn { stage: 0.into(), parity: round % 2 },
            Some(stages) => Turn {
                stage: b.let_("stage", round % stages).into(),
                parity: b.let_("parity", round / stages % 2).into(),
            },
        }
    }

    /// One thread asks for the tile of a round.
    fn ask(&self, b: &mut KernelBuilder, tile: &Tile, stage: &Expr, round: Expr) {
        let tensor = self.tensor;
        let size = tensor.t.elem().size() as i32;
        let elements = (tensor.bm + tensor.bn) * tensor.bk;
        let bytes = tensor.planes.of_all(elements) * size;
        b.mbarrier_arrive_expect(self.full, stage.clone(), bytes);
        let term = tensor.term(round);
        let lines = [tile.origin.row, tile.origin.col].map(Expr::from);
        for (nth, line) in lines.into_iter().enumerate() {
            if let (Some((blocks, rank)), 1) = (tensor.cluster, nth) {
                return self.ask_for_part(b, tile, (stage, term), (blocks, rank));
            }
            let plane = tensor.planes.of_product(nth, tile.problem.product, 0.into());
            let at = plane.into_iter().chain([line, term.clone()]);
            let to = tensor.in_tile(nth, stage, [0, 0, 0].map(Expr::I32));
            b.tensor_copy(tensor.planes.buffers[nth], at, to, (self.full, stage.clone()));
        }
    }

    /// The same of this block's part of B's tile, for all blocks of the cluster.
    fn ask_for_part(
        &self,
        b: &mut KernelBuilder,
        tile: &Tile,
        (stage, term): (&Expr, Expr),
        (blocks, rank): (Const, Var),
    ) {
        let tensor = self.tensor;
        let meaning = "columns of B that a block brings to its cluster";
        let part = b.constant("PART", tensor.bn / blocks, meaning);
        let line = Expr::from(tile.origin.col) + rank * part;
        let all = Expr::I32((1 << tensor.plan.cluster()) - 1);
        tensor.planes.each(b, |b, plane| {
            let from = tensor.planes.of_product(1, tile.problem.product, plane.clone());
            let at = from.into_iter().chain([line.clone(), term.clone()]);
            let to = tensor.in_tile(1, stage, [plane, rank * part, 0.into()]);
            let barrier = (self.full, stage.clone());
            b.tensor_multicast(tensor.planes.buffers[1], at, to, barrier, all);
        });
    }

    /// All threads multiply, and the first of them asks for tiles.
    fn by_all(&self, b: &mut KernelBuilder, tile: &Tile, place: &Place) -> BufferId {
        let tensor = self.tensor;
        let first_thread = || Expr::from(tensor.tid).equals(0);
        let stages = tensor.turns();
        b.comment("The first tiles are on their way.");
        b.if_(first_thread(), |b| {
            each_round(b, Expr::from(self.rounds).min(stages.clone()), |b, round| {
                let stage = tensor.stages.map_or(Expr::I32(0), |_| round.into());
                self.ask(b, tile, &stage, round.into());
            });
        });
        let sums = Sums::declare(b, tensor.t);
        each_round(b, self.rounds, |b, round| {
            let Turn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            tensor.multiply(b, sums, &stage, place, |b| {
                b.comment("All have read the tile: the next one may take its place.");
                b.barrier();
                let next = round + stages;
                b.if_(first_thread().and(next.clone().lt(self.rounds)), |b| {
                    self.ask(b, tile, &stage, next);
                });
            });
        });
        sums.all
    }

    /// One thread of a warpgroup of its own asks for all tiles of K.
    fn produce(&self, b: &mut KernelBuilder, tile: &Tile) {
        each_round(b, self.rounds, |b, round| {
            let Turn { stage, parity } = self.turn(b, tile, round);
            if let Some(empty) = self.empty {
                // Of the first round all stages are empty: so is the phase before the first.
                b.mbarrier_wait(empty, stage.clone(), parity.xor(1));
            }
            self.ask(b, tile, &stage, round.into());
        });
    }

    /// The other warpgroups multiply them.
    fn consume(&self, b: &mut KernelBuilder, tile: &Tile, place: &Place) -> BufferId {
        let tensor = self.tensor;
        let sums = Sums::declare(b, tensor.t);
        each_round(b, self.rounds, |b, round| {
            let Turn { stage, parity } = self.turn(b, tile, round);
            b.mbarrier_wait(self.full, stage.clone(), parity);
            tensor.multiply(b, sums, &stage, place, |b| {
                let Some(empty) = self.empty else { return };
                b.comment("The warp has read the tile.");
                b.warp_barrier();
                let lane = Expr::from(place.lane);
                match tensor.cluster {
                    None => b.if_(lane.equals(0), |b| b.mbarrier_arrive(empty, stage.clone())),
                    Some((blocks, _)) => b.if_(lane.clone().lt(blocks), |b| {
                        b.mbarrier_arrive_relaxed(empty, stage.clone(), lane);
                    }),
                }
            });
        });
        sums.all
    }
}
