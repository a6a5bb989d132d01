//! Steps that all warps of a warpgroup must execute. The first warp that arrives at a step appends
//! it.

use super::WARPS;
use crate::tensor_core::{Lines, MmaOperand};
use std::collections::VecDeque;
use std::rc::Rc;

/// Step of a warpgroup: its statement and operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarpgroupStep {
    pub(crate) stmt: u32,
    pub(crate) operands: [u32; 2],
    pub(crate) accumulates: bool,
}

/// Operands of a matrix instruction: A row by row, and the columns of B.
#[derive(Debug)]
pub(crate) struct OperandTiles {
    pub(crate) a: Vec<MmaOperand>,
    pub(crate) b: Lines,
}

#[derive(Debug, Default)]
struct Warpgroup {
    /// Steps that some warps have executed, but not all. `dropped` is the number of earlier steps,
    /// which all warps have executed.
    steps: VecDeque<(WarpgroupStep, Option<Rc<OperandTiles>>)>,
    dropped: u64,
    /// Number of steps that each warp has executed. `left` is true for a warp that has exited.
    done: [u64; WARPS],
    left: [bool; WARPS],
}

#[derive(Debug, Default)]
pub(crate) struct Warpgroups(Vec<Warpgroup>);

/// Divergence of the warps in a warpgroup. It contains the statement that the other warps have
/// reached, or `None` if some have exited.
pub(crate) struct WarpgroupDivergence(pub(crate) Option<u32>);

impl Warpgroups {
    pub(crate) fn begin(&mut self, warps: usize) {
        self.0.clear();
        self.0.resize_with(warps.div_ceil(WARPS), Warpgroup::default);
    }

    /// Advances a warp by one step. Returns the step's operands if another warp has already decoded
    /// them.
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

    /// Marks a warp as exited. Returns the statement of a step that other warps have executed, but
    /// this warp has not.
    pub(crate) fn leave(&mut self, warp: u32) -> Option<u32> {
        let group = &mut self.0[warp as usize / WARPS];
        let member = warp as usize % WARPS;
        group.left[member] = true;
        let at = (group.done[member] - group.dropped) as usize;
        group.steps.get(at).map(|(step, _)| step.stmt)
    }
}
