//! Sequence of steps that the warps of a warpgroup execute together. The first warp to arrive
//! appends to it.

use super::WARPS;
use crate::tensor_core::MmaOperand;
use std::collections::VecDeque;
use std::rc::Rc;

/// Step of a warpgroup: its statement and its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpgroupStep {
    pub(crate) stmt: u32,
    pub(crate) operands: [u32; 2],
    pub(crate) accumulates: bool,
}

/// Operands of a matrix instruction, row by row.
#[derive(Debug)]
pub(crate) struct OperandTiles {
    pub(crate) a: Vec<MmaOperand>,
    pub(crate) b: Vec<MmaOperand>,
}

#[derive(Debug, Default)]
struct Warpgroup {
    /// Steps that some warps have executed and others have not. `dropped` is the number of steps
    /// executed by all.
    steps: VecDeque<(WarpgroupStep, Option<Rc<OperandTiles>>)>,
    dropped: u64,
    /// Executed steps of each warp. `left` is true if the warp has exited.
    done: [u64; WARPS],
    left: [bool; WARPS],
}

#[derive(Debug, Default)]
pub(crate) struct Warpgroups(Vec<Warpgroup>);

/// Divergence within a warpgroup: the statement that the other warps have reached, or `None` if
/// some have exited.
pub(crate) struct WarpgroupDivergence(pub(crate) Option<u32>);

impl Warpgroups {
    pub(crate) fn begin(&mut self, warps: usize) {
        self.0.clear();
        self.0.resize_with(warps.div_ceil(WARPS), Warpgroup::default);
    }

    /// Advances a warp by one step. Returns the operands if another warp has already decoded them.
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

    /// Stores the operands of the warp's last step.
    pub(crate) fn remember(&mut self, warp: u32, tiles: &Rc<OperandTiles>) {
        let (group, member) = (&mut self.0[warp as usize / WARPS], warp as usize % WARPS);
        let at = (group.done[member] - group.dropped) as usize - 1;
        group.steps[at].1 = Some(Rc::clone(tiles));
    }

    /// Drops the steps that all warps have executed.
    pub(crate) fn forget(&mut self, warp: u32) {
        let group = &mut self.0[warp as usize / WARPS];
        while group.done.iter().all(|done| *done > group.dropped) {
            group.steps.pop_front();
            group.dropped += 1;
        }
    }

    /// Marks a warp as exited. Returns the statement of a step that other warps have executed and
    /// this one has not.
    pub(crate) fn leave(&mut self, warp: u32) -> Option<u32> {
        let group = &mut self.0[warp as usize / WARPS];
        let member = warp as usize % WARPS;
        group.left[member] = true;
        let at = (group.done[member] - group.dropped) as usize;
        group.steps.get(at).map(|(step, _)| step.stmt)
    }
}
