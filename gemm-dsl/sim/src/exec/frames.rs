//! Frames: the variables of the functions that a warp evaluates.

use super::lanes::{Lanes, WideLanes};
use crate::lower::code::Slots;
use crate::mask::WARP;

/// The value of an expression.
pub(crate) enum Outcome {
    Lane(Lanes),
    Wide(WideLanes),
    Pred(u32),
}

/// Where the variables of a function start.
#[derive(Clone, Copy, Default)]
pub(crate) struct FrameBase {
    lanes: usize,
    wides: usize,
    preds: usize,
}

/// The variables of the functions being evaluated, the innermost last.
#[derive(Default)]
pub(crate) struct Frames {
    lanes: Vec<Lanes>,
    wides: Vec<WideLanes>,
    preds: Vec<u32>,
    /// That of the innermost function.
    base: FrameBase,
}

impl Frames {
    pub(crate) fn lane(&self, local: u32) -> &Lanes {
        &self.lanes[self.base.lanes + local as usize]
    }

    pub(crate) fn wide(&self, local: u32) -> &WideLanes {
        &self.wides[self.base.wides + local as usize]
    }

    pub(crate) fn pred(&self, local: u32) -> u32 {
        self.preds[self.base.preds + local as usize]
    }

    /// Where the next function's variables will start.
    pub(crate) fn top(&self) -> FrameBase {
        FrameBase { lanes: self.lanes.len(), wides: self.wides.len(), preds: self.preds.len() }
    }

    /// Adds a parameter of the next function.
    pub(crate) fn push(&mut self, value: Outcome) {
        match value {
            Outcome::Lane(value) => self.lanes.push(value),
            Outcome::Wide(value) => self.wides.push(value),
            Outcome::Pred(value) => self.preds.push(value),
        }
    }

    /// Turns to the function whose parameters were pushed from a base on; gives that of the caller.
    pub(crate) fn enter(&mut self, base: FrameBase, slots: Slots) -> FrameBase {
        self.lanes.resize(base.lanes + slots.lanes as usize, Lanes::ZERO);
        self.wides.resize(base.wides + slots.wides as usize, [0; WARP]);
        self.preds.resize(base.preds + slots.preds as usize, 0);
        std::mem::replace(&mut self.base, base)
    }

    /// Gives a variable of the innermost function its value.
    pub(crate) fn set(&mut self, local: u32, value: Outcome) {
        let local = local as usize;
        match value {
            Outcome::Lane(value) => self.lanes[self.base.lanes + local] = value,
            Outcome::Wide(value) => self.wides[self.base.wides + local] = value,
            Outcome::Pred(value) => self.preds[self.base.preds + local] = value,
        }
    }

    /// Turns back to the caller.
    pub(crate) fn leave(&mut self, caller: FrameBase) {
        self.lanes.truncate(self.base.lanes);
        self.wides.truncate(self.base.wides);
        self.preds.truncate(self.base.preds);
        self.base = caller;
    }
}
