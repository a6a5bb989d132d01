//! Which tiles of C a block computes: its own, or, `persistent`, all whose numbers are so far apart as there are blocks.

use super::WgmmaFrame;
use crate::ir::{Change, For, KernelBuilder, Unroll, Var};
use crate::lower::sgemm::shared::problem::GemmProblem;
use crate::lower::sgemm::shared::schedule::{self, Origin, TileCounts, TileExtents};
use crate::lower::sgemm::shared::sharing::{SharedTiles, TileSharers};

/// The tiles of a block.
#[expect(clippy::large_enum_variant, reason = "a kernel has one")]
pub(super) enum OutputTiles {
    /// Its own.
    Own(OutputTile),
    /// As many as there are for it.
    Each {
        /// How many there are, and how many blocks, or clusters, share them.
        all: TileSharers,
        counts: TileCounts,
        /// Tiles of K that have gone through the ring before those of a tile of C, as far as the ring tells them apart.
        before: Var,
    },
}

/// A tile of C.
#[derive(Clone, Copy)]
pub(super) struct OutputTile {
    pub origin: Origin,
    /// The problem of its product.
    pub problem: GemmProblem,
    /// Its number, where that is not the one of the block.
    pub nth: Option<Var>,
    /// Tiles of K that have gone through the ring before its own.
    pub before: Option<Var>,
}

impl OutputTiles {
    pub fn declare(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>) -> Self {
        let (plan, problem) = (frame.plan, &frame.problem);
        let tile = of_cluster(frame);
        match problem.shared {
            Some(SharedTiles::Stream(_)) => unreachable!("check: `stream_k` is no key of theirs"),
            None => {
                let number = frame.cluster.map(|(blocks, _)| {
                    let counts = TileCounts::declare(b, plan, problem, tile.clone());
                    (b.let_("cluster", schedule::cluster(blocks)), counts)
                });
                let origin = schedule::origin(b, plan, problem, tile, None, number);
                let origin = own(b, frame, origin);
                let problem = problem.for_product(b, origin.batch);
                Self::Own(OutputTile { origin, problem, nth: None, before: None })
            }
            Some(SharedTiles::Whole(all)) => {
                b.comment("Tiles of C along its rows and along its columns.");
                let counts = TileCounts::declare(b, plan, problem, tile);
                let before = b.mut_("before", 0);
                Self::Each { all, counts, before }
            }
        }
    }

    /// Does something for each of them, by threads that all do.
    pub fn each(
        &self,
        b: &mut KernelBuilder,
        frame: &WgmmaFrame<'_>,
        rounds: Var,
        body: impl FnOnce(&mut KernelBuilder, &OutputTile),
    ) {
        let (all, counts, before) = match self {
            Self::Own(tile) => return body(b, tile),
            Self::Each { all, counts, before } => (all, counts, before),
        };
        let (plan, problem) = (frame.plan, &frame.problem);
        let tile = of_cluster(frame);
        let first = match frame.cluster {
            None => schedule::block(),
            Some((blocks, _)) => schedule::cluster(blocks),
        };
        let head = For::below(first, all.tiles)
            .change(Change::Add(all.sharers.into()))
            .unroll(Unroll::By(1));
        b.loop_("tile", head, |b, nth| {
            let origin = schedule::origin(b, plan, problem, tile, None, Some((nth, *counts)));
            let origin = own(b, frame, origin);
            let problem = problem.for_product(b, origin.batch);
            body(b, &OutputTile { origin, problem, nth: Some(nth), before: Some(*before) });
            let turns = frame.stage_count() * 2;
            b.comment("Tiles that have gone through the ring, as far as stages and parities tell them apart.");
            b.assign(*before, (*before + rounds) % turns);
        });
    }
}

/// Rows and columns of the tile of a cluster: of all its blocks' tiles, one below the other.
fn of_cluster(frame: &WgmmaFrame<'_>) -> TileExtents {
    let rows = match frame.cluster {
        None => frame.bm.into(),
        Some((blocks, _)) => blocks * frame.bm,
    };
    TileExtents { rows, cols: frame.bn.into() }
}

/// This block's tile in that of its cluster.
fn own(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>, origin: Origin) -> Origin {
    match frame.cluster {
        None => origin,
        Some((_, rank)) => {
            let row = b.let_("own_row", origin.row + rank * frame.bm);
            Origin { row, ..origin }
        }
    }
}
