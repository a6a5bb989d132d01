//! Selection of the k greatest or smallest elements (`topk`).

use super::{Faults, ReducePlan, messages};
use crate::spec::{LaunchForm, Over, ReduceSpec, Tree};
use crate::target::arch::WARP;

/// Maximum number of elements that a selection keeps: two in each lane of a warp.
const MOST_KEPT: u32 = 2 * WARP;

/// Default for the maximum number of blocks that select from one array. One block merges their
/// selections.
pub(super) const BLOCKS: u32 = 256;

/// Maximum number of elements of a lane that are compared before candidates are merged, for
/// candidates of at most 8 bytes, and for larger ones. The candidates of 32 warps then fit in
/// 48 KiB of shared memory.
const CHUNKS: [u32; 2] = [4, 2];

/// Reports errors in a spec with `topk`.
pub(super) fn check(spec: &ReduceSpec, faults: &mut Faults) {
    let Some(k) = spec.topk else { return };
    faults.require(k <= MOST_KEPT, || messages::too_many_kept(k, MOST_KEPT));
    let over = spec.over;
    faults.require(matches!(over, Over::All | Over::Rows), || messages::topk_over(over));
    let group = spec.group.filter(|group| *group != WARP && *group != spec.block);
    if let (Some(group), Over::Rows, true) = (group, over, faults.sound(&["group", "block"])) {
        faults.0.push(messages::topk_of_group(group, spec.block));
    }
    let in_registers = "warps merge their selections in registers and shared memory";
    let by_launch = "a second launch merges the selections of blocks";
    let excluded = [
        ("finish", spec.finish.is_some(), "the results are elements"),
        ("tree", spec.tree != Tree::Sequential, in_registers),
        ("unroll_last_warp", spec.unroll_last_warp, in_registers),
        ("shuffle", spec.shuffle, in_registers),
        ("run", spec.run.is_some(), by_launch),
        ("launch", spec.launch == Some(LaunchForm::Once), by_launch),
    ];
    for (key, _, because) in excluded.into_iter().filter(|(_, given, _)| *given) {
        let entry = if key == "launch" { "launch: once" } else { key };
        faults.0.push(messages::beside_topk(key, entry, because));
    }
}

impl ReducePlan {
    /// Number of elements that a result consists of, if the reduction selects several.
    pub fn topk(&self) -> Option<u32> {
        self.spec.topk
    }

    /// Number of elements that a lane compares before its warp merges candidates.
    pub fn chunk(&self) -> u32 {
        let bytes: u32 = self.parts.iter().map(|part| part.elem.size()).sum();
        self.vector().min(CHUNKS[usize::from(bytes > 8)])
    }
}
