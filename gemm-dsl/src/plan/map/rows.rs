//! Kernels of whole rows: how many threads compute a row, and what they keep of it.

use super::MapPlan;
use crate::expr::{RowExpression, RowPartKind};
use crate::spec::Along;
use crate::target::arch::{BLOCK_THREADS, WARP};

/// Bytes of operands that a thread keeps in registers by default.
const KEPT_BYTES: u32 = 128;

/// Default for the maximum number of items of a thread.
const MAX_ITEMS: u32 = 8;

/// Maximum number of items that a thread loads together if it reads the row several times.
const MAX_LOADED: u32 = 4;

/// Blocks of a cluster, and its items per thread relative to those of a block.
const CLUSTERS: [(u32, u32); 3] = [(4, 1), (8, 1), (8, 2)];

/// Maximum number of bytes of a row that a block of a cluster keeps. Its shared memory holds as
/// many of the next row.
const CLUSTER_BYTES: u32 = 128 << 10;

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
    /// True if a block reads the row once for each pass, and folds it in the order of a cluster.
    pub(crate) in_parts: bool,
}

impl RowClass {
    /// Suffix of the names of the kernels.
    pub(crate) fn suffix(self, plan: &MapPlan) -> String {
        match (self.longest, self.team) {
            _ if self.in_parts => "_parts".to_owned(),
            (None, _) => "_long".to_owned(),
            _ if self.cluster > 1 && self.items > plan.items() => "_cluster_longer".to_owned(),
            _ if self.cluster > 1 => format!("_cluster_{}", self.cluster),
            (_, team) if team == plan.block() => String::new(),
            (_, WARP) => "_short".to_owned(),
            (_, team) if team < plan.block() => format!("_{team}_narrow"),
            (_, team) => format!("_{team}_wide"),
        }
    }

    /// Returns true if the row stays in the registers of its threads.
    pub(crate) fn keeps(self) -> bool {
        self.longest.is_some() && !self.in_parts
    }

    /// Clusters that are resident at once for each SM, times the blocks of a cluster.
    pub(crate) fn resident_blocks(self, plan: &MapPlan) -> u32 {
        (BLOCK_THREADS * plan.items() / (self.block * self.items)).max(1)
    }

    /// Minimum number of resident blocks per SM for which the compiler allots registers, if there
    /// is one.
    pub(crate) fn blocks_per_sm(self, plan: &MapPlan) -> Option<u32> {
        (self.cluster > 1).then(|| self.resident_blocks(plan))
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
        let kept = |team: u32, block: u32| {
            let longest = (team * items).saturating_mul(self.vector()).min(MAX_COLUMNS);
            let longest = Some(longest);
            RowClass { team, block, cluster: 1, items, longest, in_parts: false }
        };
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
        classes.extend(self.cluster_classes());
        let items = items.min(MAX_LOADED);
        let (team, block) = (wide, wide);
        let long = RowClass { team, block, cluster: 1, items, longest: None, in_parts: false };
        classes.push(long);
        classes
    }

    /// Classes of rows that a cluster keeps. A block has half of the threads of the largest block,
    /// so that two blocks share an SM: one computes while the other waits for its cluster.
    fn cluster_classes(&self) -> Vec<RowClass> {
        let block = ((4 * self.block()).min(BLOCK_THREADS) / 2).next_multiple_of(WARP);
        let elements = block * self.items() * self.vector();
        let bytes = elements * self.spec().bytes_of(|along| along == Along::Mn);
        let classes = CLUSTERS.into_iter().map(|(cluster, more)| {
            let (items, longest) = (more * self.items(), cluster * more * elements);
            let fits = more * bytes <= CLUSTER_BYTES && longest <= MAX_COLUMNS;
            let longest = Some(longest);
            let class = RowClass { team: block, block, cluster, items, longest, in_parts: false };
            (fits && (more == 1 || self.holds_little())).then_some(class)
        });
        classes.flatten().collect()
    }

    /// Returns true if a thread has registers for twice its items.
    fn holds_little(&self) -> bool {
        let held = self.spec().bytes_of(|along| along == Along::Mn);
        let kept = self.rows().map_or(0, |expression| computed_bytes(&expression));
        self.items() * self.vector() * held.max(kept) <= KEPT_BYTES
    }

    /// Class of the kernel that computes the rows of clusters on GPUs without clusters.
    pub(crate) fn parts_class(&self) -> Option<RowClass> {
        let class = self.cluster_classes().pop()?;
        let items = self.items().min(MAX_LOADED);
        Some(RowClass { cluster: 1, items, in_parts: true, ..class })
    }
}

/// Default for the number of items of a thread.
pub(super) fn items(expression: &RowExpression, vector: u32, loaded: u32) -> u32 {
    let computed = computed_bytes(expression);
    (KEPT_BYTES / (vector * loaded.max(computed).max(1))).clamp(1, MAX_ITEMS)
}

/// Bytes of the arguments of folds that a thread keeps for each element.
fn computed_bytes(expression: &RowExpression) -> u32 {
    let keeps = |kind: &RowPartKind| matches!(kind, RowPartKind::Fold { kept: Some(_), .. });
    let computed = expression.parts.iter().filter(|part| keeps(&part.kind));
    computed.map(|part| part.typing.float.elem().size()).sum()
}
