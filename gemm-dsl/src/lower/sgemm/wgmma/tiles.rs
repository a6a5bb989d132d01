//! Tiles of C that a block computes: its own tile, or under `persistent` every n-th tile, where n
//! is the number of blocks.

use super::WgmmaFrame;
use crate::ir::{Change, For, KernelBuilder, Unroll, Var};
use crate::lower::sgemm::common::groups;
use crate::lower::sgemm::common::problem::GemmProblem;
use crate::lower::sgemm::common::schedule::{self, Origin, TileCounts, TileExtents};
use crate::lower::sgemm::common::sharing::{TileDistribution, TileSharers};

/// Tiles of C that a block computes.
#[expect(clippy::large_enum_variant, reason = "a kernel has one")]
pub(super) enum OutputTiles {
    /// One tile per block or cluster.
    Own(OutputTile),
    /// Tiles of a persistent block or cluster.
    Each {
        /// Number of tiles, and number of blocks or clusters that share them.
        all: TileSharers,
        counts: TileCounts,
        /// Number of K tiles that passed through the ring before the current tile of C, modulo
        /// twice the number of stages.
        k_tiles_done: Var,
    },
}

#[derive(Clone, Copy)]
pub(super) struct OutputTile {
    pub origin: Origin,
    /// First row of the tile of the block's cluster.
    first_row: Var,
    /// Problem of the tile's GEMM.
    pub problem: GemmProblem,
    /// Index of the tile, if it is not the block's index.
    pub nth: Option<Var>,
    /// Number of K tiles that passed through the ring before those of this tile.
    pub k_tiles_done: Option<Var>,
}

impl OutputTile {
    /// The tile of a block, given that of its cluster.
    fn new(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>, of_cluster: Origin) -> Self {
        let origin = own(b, frame, of_cluster);
        let problem = frame.problem.for_product(b, origin.batch).in_group(origin.end_of_group);
        Self { origin, first_row: of_cluster.row, problem, nth: None, k_tiles_done: None }
    }

    /// Emits `body` if the tile of the cluster exists. All threads of the cluster agree on it.
    fn if_exists(&self, b: &mut KernelBuilder, body: impl FnOnce(&mut KernelBuilder)) {
        groups::if_exists(b, self.first_row, self.origin.end_of_group, body);
    }
}

impl OutputTiles {
    pub fn declare(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>) -> Self {
        let (plan, problem) = (frame.plan, &frame.problem);
        let tile = of_cluster(frame);
        match problem.distribution {
            Some(TileDistribution::StreamK(_)) => {
                unreachable!("check: `stream_k` excludes `mma: wgmma`")
            }
            None => {
                let number = frame.cluster.map(|(blocks, _)| {
                    let counts = TileCounts::declare(b, plan, problem, tile.clone());
                    (b.let_("cluster", schedule::cluster(blocks)), counts)
                });
                let of_cluster = schedule::origin(b, plan, problem, tile, None, number);
                Self::Own(OutputTile::new(b, frame, of_cluster))
            }
            Some(TileDistribution::Persistent(all)) => {
                b.comment("Number of tiles of C along M and N.");
                let counts = TileCounts::declare(b, plan, problem, tile);
                b.comment(
                    "Number of K tiles so far, modulo 2 * STAGES. It determines the stage of the \
                     next one and the parity of its phase.",
                );
                let k_tiles_done = b.mut_("k_tiles_done", 0);
                Self::Each { all, counts, k_tiles_done }
            }
        }
    }

    /// Emits `body` for each tile, for threads that all execute it.
    pub fn each(
        &self,
        b: &mut KernelBuilder,
        frame: &WgmmaFrame<'_>,
        rounds: Var,
        body: impl FnOnce(&mut KernelBuilder, &OutputTile),
    ) {
        let (all, counts, k_tiles_done) = match self {
            Self::Own(tile) => return tile.if_exists(b, |b| body(b, tile)),
            Self::Each { all, counts, k_tiles_done } => (all, counts, k_tiles_done),
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
            let numbered = Some((nth, *counts));
            let of_cluster = schedule::origin(b, plan, problem, tile, None, numbered);
            let tile = OutputTile {
                nth: Some(nth),
                k_tiles_done: Some(*k_tiles_done),
                ..OutputTile::new(b, frame, of_cluster)
            };
            tile.if_exists(b, |b| {
                body(b, &tile);
                let fills = frame.stage_count() * 2;
                b.assign(*k_tiles_done, (*k_tiles_done + rounds) % fills);
            });
        });
    }
}

/// Rows and columns of a cluster's tile, which consists of the tiles of its blocks, stacked along
/// M.
fn of_cluster(frame: &WgmmaFrame<'_>) -> TileExtents {
    let rows = match frame.cluster {
        None => frame.bm.into(),
        Some((blocks, _)) => blocks * frame.bm,
    };
    TileExtents { rows, cols: frame.bn.into() }
}

/// Origin of this block's tile inside the tile of its cluster.
fn own(b: &mut KernelBuilder, frame: &WgmmaFrame<'_>, origin: Origin) -> Origin {
    match frame.cluster {
        None => origin,
        Some((_, rank)) => {
            let row = b.let_("own_row", origin.row + rank * frame.bm);
            Origin { row, ..origin }
        }
    }
}
