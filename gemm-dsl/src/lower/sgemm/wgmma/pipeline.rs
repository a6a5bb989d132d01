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
pub(super) fn run(k: &mut KernelBuilder, holders: &Holders<'_>) {
    let tensor = holders.tensor;
    let tiles = Tiles::declare(k, tensor);
    let none_lost = holders.lost.map(|lost| lost.none(k));
    let rounds = tensor.depth().div_ceil(tensor.bk);
    let rounds = none_lost.clone().into_iter().fold(rounds, |rounds, none| none.select(rounds, 0));
    let rounds = k.let_("rounds", rounds);
    let by_holders = |k: &mut KernelBuilder, multiply: Multiply<'_>| {
        let ready = holders.prepare(k, none_lost.clone());
        tiles.each(k, tensor, rounds, |k, tile| {
            let sums = multiply(k, tile, &ready.place);
            holders.store(k, &ready, tile, sums);
        });
    };
    if tensor.t.copies() == Copies::Threads {
        return by_holders(k, &|k, tile, place| copied(k, tensor, tile, (rounds, place)));
    }
    let boxes = Boxes::declare(k, tensor, rounds);
    if !tensor.t.producer() {
        return by_holders(k, &|k, tile, place| boxes.by_all(k, tile, place));
    }
    let limits = tensor.t.registers();
    k.if_else(
        Expr::from(tensor.tid).ge(tensor.threads),
        |k| {
            k.comment("The producer keeps the ring full.");
            if let Some([few, _]) = limits {
                k.fewer_registers(few);
            }
            k.if_(Expr::from(tensor.tid).equals(tensor.threads), |k| {
                tiles.each(k, tensor, rounds, |k, tile| boxes.produce(k, tile));
            });
        },
        |k| {
            k.comment("Consumers multiply what is in it.");
            if let Some([_, many]) = limits {
                k.more_registers(many);
            }
            by_holders(k, &|k, tile, place| boxes.consume(k, tile, place));
        },
    );
    if tensor.cluster.is_some() {
        k.comment("No block ends before all have read what others bring, and have arrived where others wait.");
        k.warp_barrier();
        k.cluster_barrier();
    }
}

/// What multiplies a tile of C, and gives its sums.
type Multiply<'f> = &'f dyn Fn(&mut KernelBuilder, &Tile, &Place) -> BufferId;

/// The loop over all tiles: unrolled, each would be written out with all of its instructions.
fn each_round(
    k: &mut KernelBuilder,
    rounds: impl Into<Expr>,
    body: impl FnOnce(&mut KernelBuilder, Var),
) {
    k.loop_("round", For::below(0, rounds).unroll(Unroll::By(1)), body);
}

/// All threads copy a tile, then all multiply it.
fn copied(
    k: &mut KernelBuilder,
    tensor: &Tensor<'_>,
    tile: &Tile,
    (rounds, place): (Var, &Place),
) -> BufferId {
    let sums = Sums::declare(k, tensor.t);
    each_round(k, rounds, |k, round| {
        k.comment("Threads copy 16 bytes at a time; zeros stand behind the last term.");
        for nth in [0, 1] {
            copy(k, tensor, (tile, nth), round);
        }
        k.comment("What threads have stored, matrix instructions read another way.");
        k.proxy_fence(ProxyFence::Async);
        k.barrier();
        tensor.multiply(k, sums, &0.into(), place, |k| k.barrier());
    });
    sums.all
}

/// Vectors of a tile that a thread reads before it stores the first of them.
const AT_ONCE: u32 = 4;

/// Copies the planes of a tile of A, or of B. Where all threads have as many vectors, they ask for several before they wait for one.
fn copy(k: &mut KernelBuilder, tensor: &Tensor<'_>, tile: (&Tile, usize), round: Var) {
    let t = tensor.t;
    let (lines, rows) = if tile.1 == 0 { (tensor.bm, t.bm()) } else { (tensor.bn, t.bn()) };
    let of_plane = lines * (tensor.bk / i32::from(t.elem().vector_lanes()));
    let all = tensor.planes.of_all(of_plane.clone());
    let vectors = t.planes() * rows * t.bk() / u32::from(t.elem().vector_lanes());
    if !vectors.is_multiple_of(t.threads()) {
        let threads = Change::Add(tensor.threads.into());
        let head = For::below(tensor.tid, all).change(threads).unroll(Unroll::By(1));
        k.loop_("i", head, |k, i| copy_vector(k, tensor, tile, (i, of_plane), round));
        return;
    }
    let of_thread = vectors / t.threads();
    let unroll = if of_thread <= AT_ONCE { Unroll::Full } else { Unroll::By(AT_ONCE) };
    let head = For::below(0, all / tensor.threads).unroll(unroll);
    k.loop_("i", head, |k, i| {
        let vector = k.let_("vector", i * tensor.threads + tensor.tid);
        copy_vector(k, tensor, tile, (vector, of_plane), round);
    });
}

/// Copies a vector of a tile, given its number among all, and how many a plane has.
fn copy_vector(
    k: &mut KernelBuilder,
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
        Some(_) => k.let_("plane", i / of_plane).into(),
    };
    let line = i / of_line.clone();
    let line = if tensor.planes.count.is_some() { line % lines } else { line };
    let line = k.let_("line", line);
    let term = k.let_("term", i % of_line * lanes);
    let at = Expr::from(k.let_("at", tensor.term(round.into()) + term));
    let inside = (origin + line).min(extent - 1);
    let from = tensor.planes.of_product(nth, p.product, plane.clone()).into_iter();
    let from = from.chain([inside, at.clone()]);
    let from = Access::new(tensor.planes.buffers[nth], from).vector();
    let to = tensor.in_tile(nth, &0.into(), [plane, line.into(), term.into()]).vector();
    let zeros = vec![Expr::F32(0.0).cast(elem); elem.vector_lanes().into()];
    k.if_else(
        at.lt(tensor.planes.pitch()),
        |k| k.store(to.clone(), from.load()),
        |k| k.store(to.clone(), Expr::Pack(zeros)),
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
    fn declare(k: &mut KernelBuilder, tensor: &'t Tensor<'t>, rounds: Var) -> Self {
        let t = tensor.t;
        let count = tensor.turns();
        let full = k.mbarriers("full", count.clone(), "a tile has come");
        let empty = t.producer().then(|| k.mbarriers("empty", count.clone(), "it has been read"));
        k.if_(Expr::from(tensor.tid).equals(0), |k| {
            k.unrolled("i", count, |k, i| {
                k.mbarrier_init(full, i, 1);
                if let Some(empty) = empty {
                    let warps = tensor.threads / WARP as i32;
                    let warps = match tensor.cluster {
                        None => warps,
                        Some((blocks, _)) => blocks * warps,
                    };
                    k.mbarrier_init(empty, i, warps);
                }
            });
            k.proxy_fence(ProxyFence::MbarrierInit);
        });
        match tensor.cluster {
            None => k.barrier(),
            Some(_) => k.cluster_barrier(),
        }
        Self { tensor, rounds, full, empty }
    }

    fn turn(&self, k: &mut KernelBuilder, tile: &Tile, round: Var) -> Turn {
        let round = match tile.before {
            None => round,
            Some(before) => k.let_("turn", before + round),
        };
        match self.tensor.stages {
            None => Turn { stage: 0.into(), parity: round % 2 },
            Some(stages) => Turn {
                stage: k.let_("stage", round % stages).into(),
                parity: k.let_("parity", round / stages % 2).into(),
            },
        }
    }

    /// One thread asks for the tile of a round.
    fn ask(&self, k: &mut KernelBuilder, tile: &Tile, stage: &Expr, round: Expr) {
        let tensor = self.tensor;
        let size = tensor.t.elem().size() as i32;
        let elements = (tensor.bm + tensor.bn) * tensor.bk;
        let bytes = tensor.planes.of_all(elements) * size;
        k.mbarrier_arrive_expect(self.full, stage.clone(), bytes);
        let term = tensor.term(round);
        let lines = [tile.origin.row, tile.origin.col].map(Expr::from);
        for (nth, line) in lines.into_iter().enumerate() {
            if let (Some((blocks, rank)), 1) = (tensor.cluster, nth) {
                return self.ask_for_part(k, tile, (stage, term), (blocks, rank));
            }
            let plane = tensor.planes.of_product(nth, tile.problem.product, 0.into());
            let at = plane.into_iter().chain([line, term.clone()]);
            let to = tensor.in_tile(nth, stage, [0, 0, 0].map(Expr::I32));
            k.tensor_copy(tensor.planes.buffers[nth], at, to, (self.full, stage.clone()));
        }
    }

    /// The same of this block's part of B's tile, for all blocks of the cluster.
    fn ask_for_part(
        &self,
        k: &mut KernelBuilder,
        tile: &Tile,
        (stage, term): (&Expr, Expr),
        (blocks, rank): (Const, Var),
    ) {
        let tensor = self.tensor;
        let meaning = "columns of B that a block brings to its cluster";
        let part = k.constant("PART", tensor.bn / blocks, meaning);
        let line = Expr::from(tile.origin.col) + rank * part;
        let all = Expr::I32((1 << tensor.plan.cluster()) - 1);
        tensor.planes.each(k, |k, plane| {
            let from = tensor.planes.of_product(1, tile.problem.product, plane.clone());
            let at = from.into_iter().chain([line.clone(), term.clone()]);
            let to = tensor.in_tile(1, stage, [plane, rank * part, 0.into()]);
            let barrier = (self.full, stage.clone());
            k.tensor_multicast(tensor.planes.buffers[1], at, to, barrier, all);
        });
    }

    /// All threads multiply, and the first of them asks for tiles.
    fn by_all(&self, k: &mut KernelBuilder, tile: &Tile, place: &Place) -> BufferId {
        let tensor = self.tensor;
        let first_thread = || Expr::from(tensor.tid).equals(0);
        let stages = tensor.turns();
        k.comment("The first tiles are on their way.");
        k.if_(first_thread(), |k| {
            each_round(k, Expr::from(self.rounds).min(stages.clone()), |k, round| {
                let stage = tensor.stages.map_or(Expr::I32(0), |_| round.into());
                self.ask(k, tile, &stage, round.into());
            });
        });
        let sums = Sums::declare(k, tensor.t);
        each_round(k, self.rounds, |k, round| {
            let Turn { stage, parity } = self.turn(k, tile, round);
            k.mbarrier_wait(self.full, stage.clone(), parity);
            tensor.multiply(k, sums, &stage, place, |k| {
                k.comment("All have read the tile: the next one may take its place.");
                k.barrier();
                let next = round + stages;
                k.if_(first_thread().and(next.clone().lt(self.rounds)), |k| {
                    self.ask(k, tile, &stage, next);
                });
            });
        });
        sums.all
    }

    /// One thread of a warpgroup of its own asks for all tiles of K.
    fn produce(&self, k: &mut KernelBuilder, tile: &Tile) {
        each_round(k, self.rounds, |k, round| {
            let Turn { stage, parity } = self.turn(k, tile, round);
            if let Some(empty) = self.empty {
                // Of the first round all stages are empty: so is the phase before the first.
                k.mbarrier_wait(empty, stage.clone(), parity.xor(1));
            }
            self.ask(k, tile, &stage, round.into());
        });
    }

    /// The other warpgroups multiply them.
    fn consume(&self, k: &mut KernelBuilder, tile: &Tile, place: &Place) -> BufferId {
        let tensor = self.tensor;
        let sums = Sums::declare(k, tensor.t);
        each_round(k, self.rounds, |k, round| {
            let Turn { stage, parity } = self.turn(k, tile, round);
            k.mbarrier_wait(self.full, stage.clone(), parity);
            tensor.multiply(k, sums, &stage, place, |k| {
                let Some(empty) = self.empty else { return };
                k.comment("The warp has read the tile.");
                k.warp_barrier();
                let lane = Expr::from(place.lane);
                match tensor.cluster {
                    None => k.if_(lane.equals(0), |k| k.mbarrier_arrive(empty, stage.clone())),
                    Some((blocks, _)) => k.if_(lane.clone().lt(blocks), |k| {
                        k.mbarrier_arrive_relaxed(empty, stage.clone(), lane);
                    }),
                }
            });
        });
        sums.all
    }
}
