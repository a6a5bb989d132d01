//! Parameters by which blocks share the tiles of C and the terms of K.

use crate::ir::{Extent, KernelBuilder, Scalar, Ty};
use crate::plan::{MAX_SPLIT, SgemmPlan};

/// The parameters by which a block, or a cluster, knows which tiles are its own, each of them whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersistentTiles {
    /// Tiles of C, of a batch of all its products.
    pub tiles: Scalar,
    /// Blocks that share them, or clusters.
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

/// The parameters by which a block knows its share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamK {
    /// Tiles of C, of a batch of all its products.
    pub tiles: Scalar,
    /// Blocks that share them.
    pub blocks: Scalar,
}

impl StreamK {
    pub(crate) fn declare(b: &mut KernelBuilder) -> Self {
        let tiles = b.extent("TILES", Ty::I32, Extent::TILES);
        let blocks = b.extent("BLOCKS", Ty::I32, Extent::BLOCKS);
        Self { tiles, blocks }
    }
}

/// More ranges than any kernel has: neither as many as a spec may say, nor as the root of 2^31 terms.
pub(crate) const MOST_RANGES: u32 = MAX_SPLIT + 1;

/// The most columns of C: the tiles of a group of tile rows are counted in an `int`, also where the
/// group is larger than C.
pub(crate) fn most_columns(plan: &SgemmPlan) -> u64 {
    let (_, bn) = plan.block_tile();
    let tiles = i32::MAX as u32 / plan.raster().unwrap_or(1);
    u64::from(tiles) * u64::from(bn)
}
