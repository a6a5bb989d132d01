//! Parameters for the distribution of C's tiles and of K among blocks.

use crate::ir::{Extent, KernelBuilder, Scalar, Ty};
use crate::plan::{MAX_SPLIT, SgemmPlan};
use crate::spec::Sharing;

/// Distribution of the tiles of C among blocks or clusters, with its parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TileDistribution {
    /// Stream-K: all blocks compute the same number of whole tiles, and share the remaining tiles
    /// by steps along K.
    StreamK(TileSharers),
    /// Persistent kernel: each block or cluster loops over whole tiles.
    Persistent(TileSharers),
}

impl TileDistribution {
    /// Declares the parameters. Returns `None` if the plan gives each block its own tile.
    pub fn declare(b: &mut KernelBuilder, plan: &SgemmPlan) -> Option<Self> {
        let of = match (plan.sharing(), plan.persistent()) {
            (Sharing::Stream, _) => Self::StreamK,
            (Sharing::Whole | Sharing::Partitions(_) | Sharing::AutoPartitions, true) => {
                Self::Persistent
            }
            (Sharing::Whole | Sharing::Partitions(_) | Sharing::AutoPartitions, false) => {
                return None;
            }
        };
        Some(of(TileSharers::declare(b, plan)))
    }

    pub fn sharers(self) -> TileSharers {
        match self {
            Self::StreamK(of) | Self::Persistent(of) => of,
        }
    }
}

/// Parameters from which a block or cluster computes its share of the tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSharers {
    /// Number of tiles of C over the whole batch.
    pub tiles: Scalar,
    /// Number of blocks or clusters that share the tiles.
    pub sharers: Scalar,
}

impl TileSharers {
    fn declare(b: &mut KernelBuilder, plan: &SgemmPlan) -> Self {
        let resident = match plan.blocks_per_sm() {
            1 => "SMs".to_owned(),
            blocks => format!("{blocks} * SMs"),
        };
        let of = if plan.batch().is_some() { "C over the batch" } else { "C" };
        b.title(match (plan.cluster(), plan.sharing()) {
            (1, Sharing::Stream) => format!(
                "TILES is the number of tiles of {of}. BLOCKS blocks share them, at most \
                 {resident}."
            ),
            (1, _) => {
                format!("TILES is the number of tiles of {of}. BLOCKS is min(TILES, {resident}).")
            }
            (blocks, _) => format!(
                "TILES is the number of tiles of {of}, each computed by one cluster. CLUSTERS is \
                 min(TILES, max({resident} / {blocks}, 1))."
            ),
        });
        let tiles = b.extent("TILES", Ty::I32, Extent::TILES);
        let sharers = match plan.cluster() {
            1 => b.extent("BLOCKS", Ty::I32, Extent::BLOCKS),
            _ => b.extent("CLUSTERS", Ty::I32, Extent::CLUSTERS),
        };
        Self { tiles, sharers }
    }
}

/// Upper bound of the number of split-K partitions. No kernel reaches it: a spec allows one less,
/// and `split_k: auto` at most 8192.
pub(crate) const MAX_PARTITIONS: u32 = MAX_SPLIT + 1;

/// Maximum number of columns of C. The number of tiles in a group of tile rows must fit in an
/// `int`, even if the group has more rows than C.
pub(crate) fn most_columns(plan: &SgemmPlan) -> u64 {
    let (_, bn) = plan.block_tile();
    let tiles = i32::MAX as u32 / plan.raster().unwrap_or(1);
    u64::from(tiles) * u64::from(bn)
}
