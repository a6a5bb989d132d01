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
    b: &mut KernelBuilder,
    tiled: &Tiled<'_>,
    stages: u32,
    spread: u32,
) -> Accumulators {
    let ring = tile::stages(b, stages);
    let acc = Accumulators::declare(b, tiled);
    let matrices = tiled.matrices.as_ref();
    let pair = matrices.is_none().then(|| FragmentPair::declare(b, tiled));
    let first = width_of_first(b, tiled);
    copies_comment(b, [tiled.t.a().edge(), tiled.t.b().edge()]);
    let a_copies = Stream::declare(b, &tiled.a);
    let b_copies = Stream::declare(b, &tiled.b);
    let ring = Ring { tiled, stages: ring, pending: ring - 2, a: a_copies, b: b_copies };
    if matrices.is_some() && tiled.plan.spec().stream_k {
        b.comment("Where sums have no terms nobody waits for a tile, so none is copied: the next one's would come in its way.");
        b.if_(tiled.depth().gt(0), |b| ring.fill(b, stages, &first));
    } else {
        ring.fill(b, stages, &first);
    }
    match (pair, matrices.zip(acc.matrices())) {
        (None, Some(of)) => ring.by_matrices(b, of, first, spread),
        (None, None) => unreachable!("declared: what tensor cores multiply, or fragments"),
        (Some(pair), _) => {
            b.push(Stmt::CopyWait { pending: ring.pending.clone() });
            b.barrier();
            pair.load(b, tiled, 0.into(), &0.into(), &0.into());
            ring.main_loop(b, &acc, &pair, first, spread);
        }
    }
    acc
}

impl Ring<'_> {
    fn start(&self, b: &mut KernelBuilder, share: &Share, slot: &Expr, when: When<'_>) {
        self.a.start(b, share, slot, when);
        self.b.start(b, share, slot, when);
    }

    fn advance(&self, b: &mut KernelBuilder, width: &Expr) {
        self.a.advance(b, width);
        self.b.advance(b, width);
    }

    /// Starts the copies of the tile at `k0`, which exists; `first` is its width if it is the first.
    fn start_existing(
        &self,
        b: &mut KernelBuilder,
        share: &Share,
        slot: &Expr,
        k0: &Expr,
        first: Option<&Expr>,
    ) {
        bring_in(b, self.tiled, k0, first, |b, terms| {
            let when = match (terms, self.tiled.t.ragged()) {
                (None, _) => When::Always,
                (Some(terms), Ragged::First) => When::AtEnd { terms, bk: self.tiled.bk },
                (Some(terms), _) => When::Below(terms),
            };
            self.start(b, share, slot, when);
        });
    }

    /// Starts the copies of the first tiles, to all buffers but one.
    fn fill(&self, b: &mut KernelBuilder, stages: u32, first: &Expr) {
        b.comment("Fill all buffers but one.");
        if self.tiled.t.ragged() == Ragged::First {
            b.comment(
                "The terms of the first tile go to its end: zeros before them change no sum.",
            );
        }
        self.start_existing(b, &Share::All, &0.into(), &0.into(), Some(first));
        b.push(Stmt::CopyCommit);
        self.advance(b, first);
        if stages == 2 {
            return;
        }
        let (end, bk) = (self.stages - 1, self.tiled.bk);
        b.loop_("s", For::below(1, end).unroll(Unroll::Full), |b, s| {
            let k0 = Expr::from(b.let_("k0", first.clone() + (s - 1) * bk));
            b.if_(k0.clone().lt(self.tiled.depth()), |b| {
                self.start_existing(b, &Share::All, &s.into(), &k0, None);
                self.advance(b, &bk.into());
            });
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
        let (depth, bk, steps) = (tiled.depth(), tiled.bk, tiled.steps());
        let spread_name = spread_name(b, spread);
        b.comment("Each k step multiplies one pair of fragments while the next one is read.");
        let read = b.mut_("read", 0);
        let write = b.mut_("write", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        b.loop_("k0", tiles, |b, k0| {
            b.comment(
                "The tile at k0 is to be copied; the one in use lies STAGES - 1 tiles before.",
            );
            let more = b.let_("more", Expr::from(k0).lt(depth.clone()));
            b.unrolled("k", steps, |b, i| {
                b.if_(Expr::from(i).equals(steps - 1), |b| {
                    b.push(Stmt::CopyWait { pending: self.pending.clone() });
                    b.barrier();
                    // After the last tile there is nothing to turn to: its own is read once more.
                    let another = Expr::from(k0).lt(depth.clone() + (ring - 2) * bk);
                    b.assign(read, another.select(self.after(read), read));
                });
                pair.load(b, tiled, (i + 1) % 2, &read.into(), &((i + 1) % steps));
                self.copies(b, (k0.into(), more.into()), i, spread_name, &write.into());
                pair.multiply(b, tiled, acc, i);
            });
            self.advance(b, &bk.into());
            b.assign(write, self.after(write));
        });
    }

    /// The same where tensor cores multiply: a step reads many words, and multiplies them many times, so the compiler
    /// reads some of them early by itself.
    fn by_matrices(
        &self,
        b: &mut KernelBuilder,
        of: (&WarpMatrices, &Matrices),
        first: Expr,
        spread: u32,
    ) {
        let (tiled, ring) = (self.tiled, self.stages);
        let (depth, bk) = (tiled.depth(), tiled.bk);
        let spread_name = spread_name(b, spread);
        let read = b.mut_("read", 0);
        let write = b.mut_("write", ring - 1);
        let from = first + (ring - 2) * bk;
        let end = depth.clone() + (ring - 1) * bk;
        let tiles = For::below(from, end).change(Change::Add(bk.into())).unroll(Unroll::By(1));
        b.loop_("k0", tiles, |b, k0| {
            b.comment("The barrier shows the tile in use to all, and that nobody reads the one before it: in its");
            b.comment("place goes the tile at k0, STAGES - 1 tiles behind the one in use.");
            b.push(Stmt::CopyWait { pending: self.pending.clone() });
            b.barrier();
            let more = b.let_("more", Expr::from(k0).lt(depth.clone()));
            b.unrolled("k", tiled.steps(), |b, i| {
                self.copies(b, (k0.into(), more.into()), i, spread_name, &write.into());
                mma::step(b, tiled, of, &read.into(), &i.into());
            });
            self.advance(b, &bk.into());
            b.assign(read, self.after(read));
            b.assign(write, self.after(write));
        });
    }

    /// The share of step `i` in the copies of the tile at `k0`.
    fn copies(
        &self,
        b: &mut KernelBuilder,
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
        b.if_(mine, |b| {
            if self.tiled.t.ragged() == Ragged::Last {
                b.if_(more, |b| self.start_existing(b, &share, write, &k0, None));
            } else {
                self.start(b, &share, write, When::If(&more));
            }
            if spread.is_none() {
                b.push(Stmt::CopyCommit);
            }
        });
        if spread.is_some() {
            b.if_(last, |b| b.push(Stmt::CopyCommit));
        }
    }

    /// The buffer after `slot` in the ring.
    fn after(&self, slot: Var) -> Expr {
        let next = slot + 1;
        next.clone().equals(self.stages).select(0, next)
    }
}

/// The constant that names over how many steps copies are issued, if over several.
fn spread_name(b: &mut KernelBuilder, spread: u32) -> Option<Const> {
    let meaning = "k steps over which a tile's copies are issued";
    (spread > 1).then(|| b.constant("SPREAD", spread as i32, meaning))
}
