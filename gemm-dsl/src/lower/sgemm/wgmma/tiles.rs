//! Which tiles of C a block computes: its own, or, `persistent`, all whose numbers are so far apart as there are blocks.

use super::Tensor;
use crate::ir::{Change, Expr, For, KernelBuilder, Unroll, Var};
use crate::lower::sgemm::shared::problem::Problem;
use crate::lower::sgemm::shared::schedule;
use crate::lower::sgemm::shared::schedule::{Counts, Origin, WholeTiles};

/// The tiles of a block.
#[expect(clippy::large_enum_variant, reason = "a kernel has one")]
pub(super) enum Tiles {
    /// Its own.
    Own(Tile),
    /// As many as there are for it.
    Each {
        /// How many there are, and how many blocks, or clusters, share them.
        all: WholeTiles,
        counts: Counts,
        /// Tiles of K that have gone through the ring before those of a tile of C, as far as the ring tells them apart.
        before: Var,
    },
}

/// A tile of C.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub origin: Origin,
    /// The problem of its product.
    pub problem: Problem,
    /// Its number, where that is not the one of the block.
    pub nth: Option<Var>,
    /// Tiles of K that have gone through the ring before its own.
    pub before: Option<Var>,
}

impl Tiles {
    pub fn declare(b: &mut KernelBuilder, tensor: &Tensor<'_>) -> Self {
        let (plan, problem) = (tensor.plan, &tensor.problem);
        let tile = of_cluster(tensor);
        match problem.persistent {
            None => {
                let number = tensor.cluster.map(|(blocks, _)| {
                    let counts = Counts::declare(b, plan, problem, tile.clone());
                    (b.let_("cluster", schedule::cluster(blocks)), counts)
                });
                let origin = schedule::origin(b, plan, problem, tile, None, number);
                let origin = own(b, tensor, origin);
                let problem = problem.of(b, origin.batch);
                Self::Own(Tile { origin, problem, nth: None, before: None })
            }
            Some(all) => {
                b.comment("Tiles of C along its rows and along its columns.");
                let counts = Counts::declare(b, plan, problem, tile);
                let before = b.mut_("before", 0);
                Self::Each { all, counts, before }
            }
        }
    }

    /// Does something for each of them, by threads that all do.
    pub fn each(
        &self,
        b: &mut KernelBuilder,
        tensor: &Tensor<'_>,
        rounds: Var,
        body: impl FnOnce(&mut KernelBuilder, &Tile),
    ) {
        let (all, counts, before) = match self {
            Self::Own(tile) => return body(b, tile),
            Self::Each { all, counts, before } => (all, counts, before),
        };
        let (plan, problem) = (tensor.plan, &tensor.problem);
        let tile = of_cluster(tensor);
        let first = match tensor.cluster {
            None => schedule::block(),
            Some((blocks, _)) => schedule::cluster(blocks),
        };
        let head = For::below(first, all.tiles)
            .change(Change::Add(all.sharers.into()))
            .unroll(Unroll::By(1));
        b.loop_("tile", head, |b, nth| {
            let origin = schedule::origin(b, plan, problem, tile, None, Some((nth, *counts)));
            let origin = own(b, tensor, origin);
            let problem = problem.of(b, origin.batch);
            body(b, &Tile { origin, problem, nth: Some(nth), before: Some(*before) });
            let turns = tensor.turns() * 2;
            b.comment("Tiles that have gone through the ring, as far as stages and parities tell them apart.");
            b.assign(*before, (*before + rounds) % turns);
        });
    }
}

/// Rows and columns of the tile of a cluster: of all its blocks' tiles, one below the other.
fn of_cluster(tensor: &Tensor<'_>) -> (Expr, Expr) {
    match tensor.cluster {
        None => (tensor.bm.into(), tensor.bn.into()),
        Some((blocks, _)) => (blocks * tensor.bm, tensor.bn.into()),
    }
}

/// This block's tile in that of its cluster.
fn own(b: &mut KernelBuilder, tensor: &Tensor<'_>, origin: Origin) -> Origin {
    match tensor.cluster {
        None => origin,
        Some((_, rank)) => {
            let row = b.let_("own_row", origin.row + rank * tensor.bm);
            Origin { row, ..origin }
        }
    }
}
