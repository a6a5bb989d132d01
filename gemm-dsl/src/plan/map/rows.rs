//! Kernels of whole rows: how many threads compute a row, and what they keep of it.

use super::MapPlan;
use crate::expr::{RowExpression, RowPartKind};
use crate::target::arch::{BLOCK_THREADS, CLUSTER_BLOCKS, WARP};

/// Bytes of operands that a thread keeps in registers by default.
const KEPT_BYTES: u32 = 128;

/// Default for the maximum number of items of a thread.
const MAX_ITEMS: u32 = 8;

/// Maximum number of items that a thread loads together if it reads the row several times.
const MAX_LOADED: u32 = 4;

/// Maximum number of columns of a row.
pub(crate) const MAX_COLUMNS: u32 = 1 << 30;

/// Rows of some lengths, which the same kernels compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowClass {
    /// Threads of a block that compute a row together: a warp or all.
    pub(crate) team: u32,
    /// Threads of a block.
    pub(crate) block: u32,
    /// Blocks that compute a row together, as a cluster; 1 without clusters.
    pub(crate) cluster: u32,
    /// Items that a thread loads together.
    pub(crate) items: u32,
    /// Longest row of the class that fits in the registers of its threads; `None` if threads read
    /// the row once for each pass.
    pub(crate) longest: Option<u32>,
}

impl RowClass {
    /// Suffix of the names of the kernels.
    pub(crate) fn suffix(self, plan: &MapPlan) -> String {
        match (self.longest, self.team) {
            (None, _) => "_long".to_owned(),
            _ if self.cluster > 1 => format!("_cluster_{}", self.cluster),
            (_, team) if team == plan.block() => String::new(),
            (_, WARP) => "_short".to_owned(),
            (_, team) if team < plan.block() => format!("_{team}_narrow"),
            (_, team) => format!("_{team}_wide"),
        }
    }

    /// Rows of a block.
    pub(crate) fn rows(self) -> u32 {
        self.block / self.team
    }
}

impl MapPlan {
    /// Expression with folds, split into parts, if the kernel folds over rows.
    pub(crate) fn rows(&self) -> Option<RowExpression> {
        self.spec().rows()
    }

    /// Classes of rows of a kernel that folds over rows, from the shortest rows to the longest.
    pub(crate) fn row_classes(&self) -> Vec<RowClass> {
        let (block, items) = (self.block(), self.items());
        let wide = (4 * block).min(BLOCK_THREADS);
        let kept_by = |team: u32, block: u32, cluster: u32| {
            let longest = (cluster * team * items).saturating_mul(self.vector()).min(MAX_COLUMNS);
            RowClass { team, block, cluster, items, longest: Some(longest) }
        };
        let kept = |team, block| kept_by(team, block, 1);
        let mut classes = Vec::new();
        if block > WARP {
            classes.push(kept(WARP, block));
        }
        // Most threads have elements if a row is longer than half of the class's longest row.
        let mut team = 2 * WARP;
        while team < block {
            classes.push(kept(team, team));
            team *= 2;
        }
        let mut team = block;
        while team <= wide {
            classes.push(kept(team, team));
            team *= 2;
        }
        let mut cluster = 2;
        while cluster <= CLUSTER_BLOCKS {
            classes.push(kept_by(wide, wide, cluster));
            cluster *= 2;
        }
        let items = items.min(MAX_LOADED);
        classes.push(RowClass { team: wide, block: wide, cluster: 1, items, longest: None });
        classes
    }
}

/// Default for the number of items of a thread.
pub(super) fn items(expression: &RowExpression, vector: u32, loaded: u32) -> u32 {
    let keeps = |kind: &RowPartKind| matches!(kind, RowPartKind::Fold { kept: Some(_), .. });
    let computed = expression.parts.iter().filter(|part| keeps(&part.kind));
    let computed: u32 = computed.map(|part| part.typing.float.elem().size()).sum();
    (KEPT_BYTES / (vector * loaded.max(computed).max(1))).clamp(1, MAX_ITEMS)
}
