//! Parameters for the distribution of C's tiles and of K among blocks.

use crate::ir::{Extent, KernelBuilder, Scalar, Ty};
use crate::plan::{MAX_SPLIT, SgemmPlan};
use crate::spec::Sharing;

/// Parameters of a persistent kernel, whose blocks or clusters loop over whole tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SharedTiles {
    /// Evenly: whole ones, and of those that are left steps along K.
    Stream(TileSharers),
    /// Each block, or cluster, goes through whole ones.
    Whole(TileSharers),
}

impl SharedTiles {
    /// Declares the parameters, if there are any.
    pub fn declare(b: &mut KernelBuilder, plan: &SgemmPlan) -> Option<Self> {
        let of = match (plan.sharing(), plan.persistent()) {
            (Sharing::Stream, _) => Self::Stream,
            (Sharing::Whole | Sharing::Ranges(_) | Sharing::AutoRanges, true) => Self::Whole,
            (Sharing::Whole | Sharing::Ranges(_) | Sharing::AutoRanges, false) => return None,
        };
        Some(of(TileSharers::declare(b, plan)))
    }

    /// Its parameters.
    pub fn sharers(self) -> TileSharers {
        match self {
            Self::Stream(of) | Self::Whole(of) => of,
        }
    }
}

/// The parameters by which a block, or a cluster, knows its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileSharers {
    /// Tiles of C, of a batch of all its products.
    pub tiles: Scalar,
    /// Blocks or clusters that share the tiles.
    pub sharers: Scalar,
}

impl TileSharers {
    fn declare(b: &mut KernelBuilder, plan: &SgemmPlan) -> Self {
        let tiles = b.extent("TILES", Ty::I32, Extent::TILES);
        let sharers = match plan.cluster() {
            1 => b.extent("BLOCKS", Ty::I32, Extent::BLOCKS),
            _ => b.extent("CLUSTERS", Ty::I32, Extent::CLUSTERS),
        };
        Self { tiles, sharers }
    }
}

/// More ranges than any kernel has: neither as many as a spec may say, nor as the root of 2^31
/// terms.
pub(crate) const MOST_RANGES: u32 = MAX_SPLIT + 1;

/// Maximum number of columns of C. The tiles of a group of tile rows are counted in an `int`, even
/// if the group is larger than C.
pub(crate) fn most_columns(plan: &SgemmPlan) -> u64 {
    let (_, bn) = plan.block_tile();
    let tiles = i32::MAX as u32 / plan.raster().unwrap_or(1);
    u64::from(tiles) * u64::from(bn)
}
