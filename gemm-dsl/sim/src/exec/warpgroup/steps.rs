//! What the warps of a warpgroup execute together: one sequence, to which the first that comes adds.

use super::WARPS;
use crate::tensor_core::MmaOperand;
use std::collections::VecDeque;
use std::rc::Rc;

/// What warps of a warpgroup execute together: the number of the statement, and what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpgroupStep {
    pub(crate) stmt: u32,
    pub(crate) operands: [u32; 2],
    pub(crate) accumulates: bool,
}

/// The operands of a matrix instruction, row by row.
#[derive(Debug)]
pub(crate) struct OperandTiles {
    pub(crate) a: Vec<MmaOperand>,
    pub(crate) b: Vec<MmaOperand>,
}

#[derive(Debug, Default)]
struct Warpgroup {
    /// What some of its warps have executed, and others not yet, behind so many steps of all.
    steps: VecDeque<(WarpgroupStep, Option<Rc<OperandTiles>>)>,
    dropped: u64,
    /// How many steps each warp has executed, and whether it has left.
    done: [u64; WARPS],
    left: [bool; WARPS],
}

/// The warpgroups of a block.
#[derive(Debug, Default)]
pub(crate) struct Warpgroups(Vec<Warpgroup>);

/// A warp comes to something else than the others: the statement that they have come to, or that they have left.
pub(crate) struct WarpgroupDivergence(pub(crate) Option<u32>);

impl Warpgroups {
    pub(crate) fn begin(&mut self, warps: usize) {
        self.0.clear();
        self.0.resize_with(warps.div_ceil(WARPS), Warpgroup::default);
    }

    /// A warp comes to a step of its warpgroup: the operands, if another warp has read them.
    pub(crate) fn step(
        &mut self,
        warp: u32,
        step: WarpgroupStep,
    ) -> Result<&mut Option<Rc<OperandTiles>>, WarpgroupDivergence> {
        let (group, member) = (&mut self.0[warp as usize / WARPS], warp as usize % WARPS);
        let at = (group.done[member] - group.dropped) as usize;
        if at == group.steps.len() {
            if group.left.contains(&true) {
                return Err(WarpgroupDivergence(None));
            }
            group.steps.push_back((step, None));
        } else if group.steps[at].0 != step {
            return Err(WarpgroupDivergence(Some(group.steps[at].0.stmt)));
        }
        group.done[member] += 1;
        Ok(&mut group.steps[at].1)
    }

    /// Keeps the operands of the step that a warp has executed last.
    pub(crate) fn remember(&mut self, warp: u32, tiles: &Rc<OperandTiles>) {
        let (group, member) = (&mut self.0[warp as usize / WARPS], warp as usize % WARPS);
        let at = (group.done[member] - group.dropped) as usize - 1;
        group.steps[at].1 = Some(Rc::clone(tiles));
    }

    /// Forgets what all warps have executed.
    pub(crate) fn forget(&mut self, warp: u32) {
        let group = &mut self.0[warp as usize / WARPS];
        while group.done.iter().all(|done| *done > group.dropped) {
            group.steps.pop_front();
            group.dropped += 1;
        }
    }

    /// A warp leaves the kernel: the statement of a step that others have executed and it has not.
    pub(crate) fn leave(&mut self, warp: u32) -> Option<u32> {
        let group = &mut self.0[warp as usize / WARPS];
        let member = warp as usize % WARPS;
        group.left[member] = true;
        let at = (group.done[member] - group.dropped) as usize;
        group.steps.get(at).map(|(step, _)| step.stmt)
    }
}
