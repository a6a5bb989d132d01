//! Parameters for the distribution of C's tiles and of K among blocks.

use crate::ir::{Extent, KernelBuilder, Scalar, Ty};
use crate::plan::{MAX_SPLIT, SgemmPlan};

/// Parameters of a persistent kernel, whose blocks or clusters loop over whole tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistentTiles {
    /// Tiles of C over the whole batch.
    pub tiles: Scalar,
    /// Blocks or clusters that share the tiles.
    pub sharers: Scalar,
}

impl PersistentTiles {
    pub fn declare(b: &mut KernelBuilder, plan: &SgemmPlan) -> Self {
        let tiles = b.extent("TILES", Ty::I32, Extent::TILES);
        let sharers = match plan.cluster() {
            1 => b.extent("BLOCKS", Ty::I32, Extent::BLOCKS),
            _ => b.extent("CLUSTERS", Ty::I32, Extent::CLUSTERS),
        };
        Self { tiles, sharers }
    }
}

/// Parameters of stream-K, from which a block computes its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamK {
    /// Tiles of C over the whole batch.
    pub tiles: Scalar,
    /// Blocks that share the tiles.
    pub blocks: Scalar,
}

impl StreamK {
    pub(crate) fn declare(b: &mut KernelBuilder) -> Self {
        let tiles = b.extent("TILES", Ty::I32, Extent::TILES);
        let blocks = b.extent("BLOCKS", Ty::I32, Extent::BLOCKS);
        Self { tiles, blocks }
    }
}

/// Upper bound on the number of split-K partitions, which no kernel reaches: a spec allows one
/// less, and `split_k: auto` at most 8192.
pub(crate) const MOST_RANGES: u32 = MAX_SPLIT + 1;

/// Maximum number of columns of C. The tiles of a group of tile rows are counted in an `int`, even
/// if the group is larger than C.
pub(crate) fn most_columns(plan: &SgemmPlan) -> u64 {
    let (_, bn) = plan.block_tile();
    let tiles = i32::MAX as u32 / plan.raster().unwrap_or(1);
    u64::from(tiles) * u64::from(bn)
}
