//! Stream-K: as many blocks as are resident share all tiles of C evenly.
//!
//! Every block first computes the same number of whole tiles. Concurrent blocks compute adjacent
//! tiles, so they share rows of A and columns of B. Fewer than two tiles per block remain, and the
//! K steps of these tiles are distributed.
//!
//! Each block gets a contiguous run of these steps. The run continues one tile, begins another
//! tile, or does both. All runs have the same length except the last one. If runs have only a few
//! steps, the last blocks may have empty runs. The block that finishes a shared tile last combines
//! its partial tiles (see `split_k`).

use super::problem::GemmProblem;
use super::schedule::{self, KRange};
use super::sharing::TileSharers;
use crate::ir::{Const, Elem, Expr, For, KernelBuilder, Unroll, Var};

/// Part of K that a block computes for a tile, which several blocks may share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Index of the tile among the remaining tiles.
    pub nth: Var,
    /// First step; `to` is the end, exclusive.
    pub from: Var,
    to: Var,
    /// Number of steps of a tile; `share` is the number of steps of a block's run.
    steps: Var,
    share: Var,
}

impl TileSharers {
    /// Emits `body` for each tile of the block, with the tile's index, its range of K and its
    /// segment.
    pub(crate) fn each_tile(
        self,
        b: &mut KernelBuilder,
        problem: &GemmProblem,
        bk: Const,
        slices: u32,
        body: impl FnOnce(&mut KernelBuilder, Var, KRange, Segment),
    ) {
        let (tiles, blocks) = (Expr::from(self.tiles), Expr::from(self.sharers));
        let int = |e: Expr| e.cast(Elem::I32);
        b.comment(
            "Stream-K: every block computes the same number of whole tiles. The remaining tiles, \
             fewer",
        );
        b.comment(
            "than two per block, are split along K: each block gets a contiguous run of their K \
             steps.",
        );
        let terms = Expr::from(problem.k);
        let steps = schedule::declare_k_steps(b, "tiles", problem, bk);
        let wide_steps = || Expr::from(steps).wide();
        let even = tiles.clone() / blocks.clone();
        let rest = tiles.clone() % blocks.clone();
        let fewer = even.clone().gt(0).select(even.clone() - 1, 0);
        let rounds = b.let_("rounds", rest.equals(0).select(even, fewer));
        let left = b.let_("left", tiles - rounds * blocks.clone());
        let all = b.let_("left_steps", Expr::from(left).wide() * wide_steps());
        let share = b.let_("share", int(Expr::from(all).div_ceil(blocks.clone().wide())));
        let begin = schedule::block().wide() * Expr::from(share).wide();
        let begin = b.let_("begin", begin.min(all));
        let end = b.let_("end", (begin + Expr::from(share).wide()).min(all));
        let first = b.let_("first_left", int(begin / wide_steps()));
        let own = b.let_("shared_tiles", int(Expr::from(end).div_ceil(wide_steps())) - first);
        let before_end = Expr::from(end) + wide_steps() - 1u64;
        let last_to = b.let_("last_to", int(before_end % wide_steps()) + 1);
        let rounds_and_own = For::below(0, rounds + own).unroll(Unroll::By(1));
        b.loop_("round", rounds_and_own, |b, round| {
            let is = |other: Expr| Expr::from(round).equals(other);
            let nth = b.let_("nth_left", first + (round - rounds));
            let whole = Expr::from(round) * blocks.clone() + schedule::block();
            let streamed = rounds * blocks.clone() + nth;
            let is_streamed = Expr::from(round).ge(rounds);
            let tile = b.let_("tile", is_streamed.select(streamed, whole));
            let begins = int(begin % wide_steps());
            let from = b.let_("from", is(rounds.into()).select(begins, 0));
            // The last segment ends at the end of the block's run. An empty run ends at the end of
            // a tile.
            let to = b.let_("to", is(rounds + own - 1).select(last_to, steps));
            let begin = b.let_("k_begin", from * bk);
            let depth = b.let_("depth", (terms - begin).min((to - from) * bk));
            body(b, tile, KRange { begin, depth }, Segment { nth, from, to, steps, share });
            // With slices, a barrier before the reduction already follows the last read of the
            // tile.
            if slices == 1 {
                b.comment(
                    "All threads must be done with shared memory before the next output tile \
                     overwrites it.",
                );
                b.barrier();
            }
        });
    }
}

impl Segment {
    /// Returns true if the block computes all steps of the tile.
    pub(crate) fn is_whole(self) -> Expr {
        (self.to - self.from).equals(self.steps)
    }

    /// Index of the first block that shares the tile, and the number of these blocks.
    pub(crate) fn blocks(self, b: &mut KernelBuilder) -> [Var; 2] {
        let (steps, share) = (Expr::from(self.steps).wide(), Expr::from(self.share).wide());
        let begin = Expr::from(self.nth).wide() * steps.clone();
        let block = |step: Expr| (step / share.clone()).cast(Elem::I32);
        let first = b.let_("first_block", block(begin.clone()));
        let last = block(begin + steps - 1u64);
        [first, b.let_("sharing", last - first + 1)]
    }
}

/// Number of blocks to launch: as many as can be resident. The number of blocks per tile is limited
/// by the number of K steps and by [`schedule::most_sharing`]. The limit has no effect if there are
/// at least as many tiles as resident blocks.
pub(crate) fn blocks(resident: Expr, tiles: Expr, terms: &Expr, bk: u32) -> Expr {
    let of_tile = schedule::k_steps(terms.clone(), bk).min(schedule::most_sharing(terms));
    resident.min(tiles * of_tile)
}

/// Maximum number of partial tiles per block: one of a tile that another block begins, and one of a
/// tile that the block begins itself.
pub(crate) const PARTS_OF_BLOCK: u32 = 2;
