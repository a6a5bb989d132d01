//! Multistage pipeline. `cp.async` fills a ring of shared buffers, and fragments are
//! double-buffered in registers. The last k step of each tile has the only barrier. After it, all
//! threads see the next tile, and the buffer that is filled next is free.

use super::async_copy::{AsyncCopies, CopyCondition};
use super::fragment::{FragmentPair, accumulators, of_tile};
use crate::ir::{Change, Const, Expr, For, FunctionId, KernelBuilder, Stmt, Ty, Unroll, Var};
use crate::lower::sgemm::common::accumulators::Accumulators;
use crate::lower::sgemm::common::copy::CopyShare;
use crate::lower::sgemm::common::edge::{bring_in, copies_comment, width_of_first};
use crate::lower::sgemm::common::shared_tile::stages;
use crate::lower::sgemm::common::tile::Tiled;
use crate::lower::sgemm::mma::{self, MmaContext};
use crate::plan::Ragged;

/// Comment on a commit that does not depend on the condition of its copies.
const EMPTY_GROUP: &str = "Commit a group per stage, even an empty one: copy_wait counts groups.";

/// Next tile to copy: its first k, and the condition that the tile exists.
struct NextTile {
    k0: Expr,
    exists: Expr,
}

struct MultistagePipeline<'t> {
    tiled: &'t Tiled<'t>,
    stages: Const,
    next: FunctionId,
    /// Number of copy groups that may still be in flight when a tile is needed.
    pending: Expr,
    a: AsyncCopies<'t>,
    b: AsyncCopies<'t>,
}

/// Emits the main loop over all tiles, with asynchronous copies.
pub(crate) fn asynchronous(
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    stage_count: u32,
    spread: u32,
) -> Accumulators {
    let ring = stages(b, stage_count);
    let acc = accumulators(b, tiled);
    let warp = tiled.mma.as_ref();
    let pair = warp.is_none().then(|| FragmentPair::declare(b, tiled));
    let first = width_of_first(b, tiled);
    copies_comment(b, [&tiled.a.plan, &tiled.b.plan]);
    let a_copies = AsyncCopies::declare(b, &tiled.a);
    let b_copies = AsyncCopies::declare(b, &tiled.b);
    let next = next_stage(b);
    let pending = ring - 2;
    let ring = MultistagePipeline { tiled, stages: ring, next, pending, a: a_copies, b: b_copies };
    if warp.is_some() && tiled.frame.plan.spec().stream_k {
        b.comment(
            "For K = 0 no copy is awaited, so none is started: it could collide with the copies \
             for the next tile of C.",
        );
        b.if_(tiled.depth().gt(0), |b| ring.fill(b, stage_count, &first));
    } else {
        ring.fill(b, stage_count, &first);
    }
    match (pair, warp.zip(acc.mma())) {
        (None, Some((warp, accumulators))) => {
            ring.by_mma(b, MmaContext { warp, accumulators }, first, spread);
        }
        (None, None) => unreachable!("accumulators: tensor cores have accumulators of `mma`"),
        (Some(pair), _) => {
            b.comment(
                "After the barrier, tile 0 has arrived for all threads. Load its first fragments.",
            );
            b.push(Stmt::CopyWait { pending: ring.pending.clone() });
            b.barrier();
            pair.load(b, tiled, 0.into(), &0.into(), &0.into());
            ring.main_loop(b, &acc, &pair, first, spread);
        }
    }
    acc
}

impl MultistagePipeline<'_> {
    fn start(
        &self,
        b: &mut KernelBuilder,
        share: &CopyShare,
        slot: &Expr,
        when: CopyCondition<'_>,
    ) {
        self.a.start(b, share, slot, when);
        self.b.start(b, share, slot, when);
    }

    fn advance(&self, b: &mut KernelBuilder, width: &Expr) {
        self.a.advance(b, width);
        self.b.advance(b, width);
    }

    /// Starts the copies of the tile at `k0`, which must exist. For the first tile, `first` is its
    /// width.
    fn start_existing(
        &self,
        b: &mut KernelBuilder,
        share: &CopyShare,
        slot: &Expr,
        k0: &Expr,
        first: Option<&Expr>,
    ) {
        let ragged = self.tiled.frame.t.ragged();
        // Without partial tiles, a ring of two stages has one such copy.
        let repeats = ragged == Ragged::Last || self.tiled.frame.t.pipeline().buffers() > 2;
        bring_in(b, self.tiled, k0, first, |b, terms| match (terms, ragged, share) {
            (None, Ragged::Last | Ragged::Nowhere, CopyShare::All) if repeats => {
                let meaning = "Starts the copies of a whole K tile to a pipeline stage.";
                b.section("copy_tile", meaning, [("stage", slot.clone())], |b, [stage]| {
                    self.start(b, share, &stage.into(), CopyCondition::Always);
                });
            }
            (Some(terms), Ragged::Last, CopyShare::All) => {
                let meaning =
                    "Starts the copies of the last K tile, which has `valid` elements along K.";
                let params = [("stage", slot.clone()), ("valid", terms.clone())];
                b.section("copy_partial_tile", meaning, params, |b, [stage, valid]| {
                    self.start(b, share, &stage.into(), CopyCondition::Below(&valid.into()));
                });
            }
            (None, ..) => self.start(b, share, slot, CopyCondition::Always),
            (Some(terms), Ragged::First, _) => {
                let when = CopyCondition::AtEnd { terms, bk: self.tiled.frame.bk };
                self.start(b, share, slot, when);
            }
            (Some(terms), ..) => self.start(b, share, slot, CopyCondition::Below(terms)),
        });
    }

    /// Starts the copies of the first tiles, to all buffers except one.
    fn fill(&self, b: &mut KernelBuilder, stages: u32, first: &Expr) {
        b.comment("Prologue: fill all pipeline stages but one.");
        if self.tiled.frame.t.ragged() == Ragged::First {
            b.comment(
                "The elements of a partial first tile go to its end. Zeros before them change no \
                 accumulator. If products underflow, a sum can be -0; adding zeros after them \
                 would make it +0.",
            );
        }
        self.start_existing(b, &CopyShare::All, &0.into(), &0.into(), Some(first));
        b.push(Stmt::CopyCommit);
        self.advance(b, first);
        if stages == 2 {
            return;
        }
        let (end, bk) = (self.stages - 1, self.tiled.frame.bk);
        b.loop_("s", For::below(1, end).unroll(Unroll::Full), |b, s| {
            let k0 = Expr::from(b.let_("k0", first.clone() + (s - 1) * bk));
            b.if_(k0.clone().lt(self.tiled.depth()), |b| {
                self.start_existing(b, &CopyShare::All, &s.into(), &k0, None);
                self.advance(b, &bk.into());
            });
            b.comment(EMPTY_GROUP);
            b.push(Stmt::CopyCommit);
        });
    }

    fn main_loop(
        &self,
        b: &mut KernelBuilder,
        acc: &Accumulators,
        pair: &FragmentPair,
        first: Expr,
        spread: u32,
    ) {
        let (tiled, ring) = (self.tiled, self.stages);
        let (depth, bk, steps) = (tiled.depth(), tiled.frame.bk, tiled.steps());
        let spread_name = spread_name(b, spread);
        b.comment(
            "Main loop: each k step multiplies one pair of fragments while the next pair is \
             loaded.",
        );
        let read = b.mut_("read_stage", 0);
        let write = b.mut_("write_stage", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        b.loop_("k0", tiles, |b, k0| {
            b.comment(
                "The tile at k0 is being copied; the tile in use is STAGES - 1 tiles before it. So \
                 the loop runs STAGES - 1 tiles further than the copies.",
            );
            let more = b.let_("has_tile", Expr::from(k0).lt(depth.clone()));
            of_tile(b, tiled, acc, |b, acc| {
                b.unrolled("k", steps, |b, i| {
                    b.if_(Expr::from(i).equals(steps - 1), |b| {
                        b.comment(
                        "The last k step loads fragments of the next tile, whose copy must have \
                         arrived. The barrier also ends all reads of the stage that is filled \
                         next. After the last tile there is no next tile, so read_stage stays.",
                    );
                        b.push(Stmt::CopyWait { pending: self.pending.clone() });
                        b.barrier();
                        // The last tile has no next tile, so its own fragments are loaded again.
                        let another = Expr::from(k0).lt(depth.clone() + (ring - 2) * bk);
                        b.assign(read, another.select(self.after(read), read));
                    });
                    b.comment("Load the fragments of the next k step.");
                    pair.load(b, tiled, (i + 1) % 2, &read.into(), &((i + 1) % steps));
                    b.comment(match spread_name {
                    None => {
                        "At the first k step: start the copies of the tile at k0, into the stage \
                         that the previous tile freed."
                    }
                    Some(_) => {
                        "At the first SPREAD k steps: start a part of the copies of the tile at \
                         k0, into the stage that the previous tile freed."
                    }
                });
                    self.copies(
                        b,
                        NextTile { k0: k0.into(), exists: more.into() },
                        i,
                        spread_name,
                        &write.into(),
                    );
                    pair.multiply(b, tiled, acc, i);
                })
            });
            self.advance(b, &bk.into());
            b.assign(write, self.after(write));
        });
    }

    /// Emits the main loop for tensor cores. Fragments are not double-buffered explicitly: a step
    /// loads many words and reuses each one many times, so the compiler can move loads ahead of the
    /// multiplications.
    fn by_mma(&self, b: &mut KernelBuilder, context: MmaContext<'_>, first: Expr, spread: u32) {
        let (tiled, ring) = (self.tiled, self.stages);
        let (depth, bk) = (tiled.depth(), tiled.frame.bk);
        let spread_name = spread_name(b, spread);
        let read = b.mut_("read_stage", 0);
        let write = b.mut_("write_stage", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        b.loop_("k0", tiles, |b, k0| {
            b.comment(
                "After the barrier all threads see the tile in use, and none reads the previous \
                 one.",
            );
            b.comment(
                "The stage of the previous tile receives the tile at k0, STAGES - 1 tiles after \
                 the one in use.",
            );
            b.push(Stmt::CopyWait { pending: self.pending.clone() });
            b.barrier();
            let more = b.let_("has_tile", Expr::from(k0).lt(depth.clone()));
            b.unrolled("k", tiled.steps(), |b, i| {
                self.copies(
                    b,
                    NextTile { k0: k0.into(), exists: more.into() },
                    i,
                    spread_name,
                    &write.into(),
                );
                mma::step(b, tiled, context, &read.into(), &i.into());
            });
            self.advance(b, &bk.into());
            b.assign(read, self.after(read));
            b.assign(write, self.after(write));
        });
    }

    /// Starts step `i`'s part of the copies of the tile at `k0`.
    fn copies(
        &self,
        b: &mut KernelBuilder,
        next: NextTile,
        i: Var,
        spread: Option<Const>,
        write: &Expr,
    ) {
        let (share, mine, last) = match spread {
            None => (CopyShare::All, Expr::from(i).equals(0), Expr::from(i).equals(0)),
            Some(parts) => {
                let share = CopyShare::Part { k: i, parts };
                (share, Expr::from(i).lt(parts), Expr::from(i).equals(parts - 1))
            }
        };
        b.if_(mine, |b| {
            let is_guarded = self.tiled.frame.t.ragged() == Ragged::Last;
            if is_guarded {
                b.if_(next.exists, |b| self.start_existing(b, &share, write, &next.k0, None));
            } else {
                self.start(b, &share, write, CopyCondition::If(&next.exists));
            }
            if spread.is_none() {
                if is_guarded {
                    b.comment(EMPTY_GROUP);
                }
                b.push(Stmt::CopyCommit);
            }
        });
        if spread.is_some() {
            b.if_(last, |b| b.push(Stmt::CopyCommit));
        }
    }

    /// Index of the buffer that follows `slot` in the ring.
    fn after(&self, slot: Var) -> Expr {
        Expr::Apply(self.next, vec![slot.into(), self.stages.into()])
    }
}

/// Declares the function that steps through the ring of stages.
fn next_stage(b: &mut KernelBuilder) -> FunctionId {
    let params = [("stage", Ty::I32), ("stages", Ty::I32)];
    b.function(
        "next_stage",
        &["Pipeline stage after `stage`; stage 0 follows the last of `stages`."],
        &params,
        |_, p| {
            let next = p[0] + 1;
            next.clone().equals(p[1]).select(0, next)
        },
    )
}

/// Constant for the number of steps over which copies are spread, if more than one.
fn spread_name(b: &mut KernelBuilder, spread: u32) -> Option<Const> {
    let meaning = "k steps over which a tile's copies are issued";
    (spread > 1).then(|| b.constant("SPREAD", spread as i32, meaning))
}
