//! The asynchronous pipeline: a ring of shared buffers that `cp.async` fills, with fragments
//! double-buffered in registers. One barrier a tile, in its last k step: it publishes the next tile
//! and tells that the buffer to be filled next has been read.

use super::fragment::{Accumulators, FragmentPair};
use crate::ir::{Change, Const, Expr, For, KernelBuilder, Stmt, Unroll, Var};
use crate::lower::sgemm::mma;
use crate::lower::sgemm::mma::{Matrices, WarpMatrices};
use crate::lower::sgemm::shared::copy::Share;
use crate::lower::sgemm::shared::edge::{bring_in, copies_comment, width_of_first};
use crate::lower::sgemm::shared::tile;
use crate::lower::sgemm::shared::tile::Tiled;
use crate::lower::sgemm::simt::async_copy::{Stream, When};
use crate::plan::Ragged;

struct Ring<'t> {
    tiled: &'t Tiled<'t>,
    /// Buffers of the ring.
    stages: Const,
    /// Groups of copies that may be in flight when a tile is needed.
    pending: Expr,
    a: Stream<'t>,
    b: Stream<'t>,
}

pub(crate) fn asynchronous(
    k: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    stages: u32,
    spread: u32,
) -> Accumulators {
    let ring = tile::stages(k, stages);
    let acc = Accumulators::declare(k, tiled);
    let matrices = tiled.matrices.as_ref();
    let pair = matrices.is_none().then(|| FragmentPair::declare(k, tiled));
    let first = width_of_first(k, tiled);
    copies_comment(k, [tiled.t.a().edge(), tiled.t.b().edge()]);
    let a = Stream::declare(k, &tiled.a);
    let b = Stream::declare(k, &tiled.b);
    let ring = Ring { tiled, stages: ring, pending: ring - 2, a, b };
    if matrices.is_some() && tiled.plan.spec().stream_k {
        k.comment("Where sums have no terms nobody waits for a tile, so none is copied: the next one's would come in its way.");
        k.if_(tiled.depth().gt(0), |k| ring.fill(k, stages, &first));
    } else {
        ring.fill(k, stages, &first);
    }
    match (pair, matrices.zip(acc.matrices())) {
        (None, Some(of)) => ring.by_matrices(k, of, first, spread),
        (None, None) => unreachable!("declared: what tensor cores multiply, or fragments"),
        (Some(pair), _) => {
            k.push(Stmt::CopyWait { pending: ring.pending.clone() });
            k.barrier();
            pair.load(k, tiled, 0.into(), &0.into(), &0.into());
            ring.main_loop(k, &acc, &pair, first, spread);
        }
    }
    acc
}

impl Ring<'_> {
    fn start(&self, k: &mut KernelBuilder, share: &Share, slot: &Expr, when: When<'_>) {
        self.a.start(k, share, slot, when);
        self.b.start(k, share, slot, when);
    }

    fn advance(&self, k: &mut KernelBuilder, width: &Expr) {
        self.a.advance(k, width);
        self.b.advance(k, width);
    }

    /// Starts the copies of the tile at `k0`, which exists; `first` is its width if it is the first.
    fn start_existing(
        &self,
        k: &mut KernelBuilder,
        share: &Share,
        slot: &Expr,
        k0: &Expr,
        first: Option<&Expr>,
    ) {
        bring_in(k, self.tiled, k0, first, |k, terms| {
            let when = match (terms, self.tiled.t.ragged()) {
                (None, _) => When::Always,
                (Some(terms), Ragged::First) => When::AtEnd { terms, bk: self.tiled.bk },
                (Some(terms), _) => When::Below(terms),
            };
            self.start(k, share, slot, when);
        });
    }

    /// Starts the copies of the first tiles, to all buffers but one.
    fn fill(&self, k: &mut KernelBuilder, stages: u32, first: &Expr) {
        k.comment("Fill all buffers but one.");
        if self.tiled.t.ragged() == Ragged::First {
            k.comment(
                "The terms of the first tile go to its end: zeros before them change no sum.",
            );
        }
        self.start_existing(k, &Share::All, &0.into(), &0.into(), Some(first));
        k.push(Stmt::CopyCommit);
        self.advance(k, first);
        if stages == 2 {
            return;
        }
        let (end, bk) = (self.stages - 1, self.tiled.bk);
        k.loop_("s", For::below(1, end).unroll(Unroll::Full), |k, s| {
            let k0 = Expr::from(k.let_("k0", first.clone() + (s - 1) * bk));
            k.if_(k0.clone().lt(self.tiled.depth()), |k| {
                self.start_existing(k, &Share::All, &s.into(), &k0, None);
                self.advance(k, &bk.into());
            });
            k.push(Stmt::CopyCommit);
        });
    }

    fn main_loop(
        &self,
        k: &mut KernelBuilder,
        acc: &Accumulators,
        pair: &FragmentPair,
        first: Expr,
        spread: u32,
    ) {
        let (tiled, ring) = (self.tiled, self.stages);
        let (depth, bk, steps) = (tiled.depth(), tiled.bk, tiled.steps());
        let spread_name = spread_name(k, spread);
        k.comment("Each k step multiplies one pair of fragments while the next one is read.");
        let read = k.mut_("read", 0);
        let write = k.mut_("write", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        k.loop_("k0", tiles, |k, k0| {
            k.comment(
                "The tile at k0 is to be copied; the one in use lies STAGES - 1 tiles before.",
            );
            let more = k.let_("more", Expr::from(k0).lt(depth.clone()));
            k.unrolled("k", steps, |k, i| {
                k.if_(Expr::from(i).equals(steps - 1), |k| {
                    k.push(Stmt::CopyWait { pending: self.pending.clone() });
                    k.barrier();
                    // After the last tile there is nothing to turn to: its own is read once more.
                    let another = Expr::from(k0).lt(depth.clone() + (ring - 2) * bk);
                    k.assign(read, another.select(self.after(read), read));
                });
                pair.load(k, tiled, (i + 1) % 2, &read.into(), &((i + 1) % steps));
                self.copies(k, (k0.into(), more.into()), i, spread_name, &write.into());
                pair.multiply(k, tiled, acc, i);
            });
            self.advance(k, &bk.into());
            k.assign(write, self.after(write));
        });
    }

    /// The same where tensor cores multiply: a step reads many words, and multiplies them many times, so the compiler
    /// reads some of them early by itself.
    fn by_matrices(
        &self,
        k: &mut KernelBuilder,
        of: (&WarpMatrices, &Matrices),
        first: Expr,
        spread: u32,
    ) {
        let (tiled, ring) = (self.tiled, self.stages);
        let (depth, bk) = (tiled.depth(), tiled.bk);
        let spread_name = spread_name(k, spread);
        let read = k.mut_("read", 0);
        let write = k.mut_("write", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        k.loop_("k0", tiles, |k, k0| {
            k.comment("The barrier shows the tile in use to all, and that nobody reads the one before it: in its");
            k.comment("place goes the tile at k0, STAGES - 1 tiles behind the one in use.");
            k.push(Stmt::CopyWait { pending: self.pending.clone() });
            k.barrier();
            let more = k.let_("more", Expr::from(k0).lt(depth.clone()));
            k.unrolled("k", tiled.steps(), |k, i| {
                self.copies(k, (k0.into(), more.into()), i, spread_name, &write.into());
                mma::step(k, tiled, of, &read.into(), &i.into());
            });
            self.advance(k, &bk.into());
            k.assign(read, self.after(read));
            k.assign(write, self.after(write));
        });
    }

    /// The share of step `i` in the copies of the tile at `k0`.
    fn copies(
        &self,
        k: &mut KernelBuilder,
        (k0, more): (Expr, Expr),
        i: Var,
        spread: Option<Const>,
        write: &Expr,
    ) {
        let (share, mine, last) = match spread {
            None => (Share::All, Expr::from(i).equals(0), Expr::from(i).equals(0)),
            Some(parts) => {
                let share = Share::Part { k: i, parts };
                (share, Expr::from(i).lt(parts), Expr::from(i).equals(parts - 1))
            }
        };
        k.if_(mine, |k| {
            if self.tiled.t.ragged() == Ragged::Last {
                k.if_(more, |k| self.start_existing(k, &share, write, &k0, None));
            } else {
                self.start(k, &share, write, When::If(&more));
            }
            if spread.is_none() {
                k.push(Stmt::CopyCommit);
            }
        });
        if spread.is_some() {
            k.if_(last, |k| k.push(Stmt::CopyCommit));
        }
    }

    /// The buffer after `slot` in the ring.
    fn after(&self, slot: Var) -> Expr {
        let next = slot + 1;
        next.clone().equals(self.stages).select(0, next)
    }
}

/// The constant that names over how many steps copies are issued, if over several.
fn spread_name(k: &mut KernelBuilder, spread: u32) -> Option<Const> {
    let meaning = "k steps over which a tile's copies are issued";
    (spread > 1).then(|| k.constant("SPREAD", spread as i32, meaning))
}
