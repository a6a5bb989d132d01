//! Stack frames for the variables of functions.

use super::lanes::{Lanes, WideLanes};
use crate::lower::code::Slots;
use crate::mask::WARP;

pub(crate) enum Outcome {
    Lane(Lanes),
    Wide(WideLanes),
    Pred(u32),
}

/// Position in each stack at which a function's variables start.
#[derive(Clone, Copy, Default)]
pub(crate) struct FrameBase {
    lanes: usize,
    wides: usize,
    preds: usize,
}

/// Variables of the functions that are being called; those of the innermost function are last.
#[derive(Default)]
pub(crate) struct Frames {
    lanes: Vec<Lanes>,
    wides: Vec<WideLanes>,
    preds: Vec<u32>,
    /// Start of the innermost function's frame.
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

    /// Start of the frame for the next function.
    pub(crate) fn top(&self) -> FrameBase {
        FrameBase { lanes: self.lanes.len(), wides: self.wides.len(), preds: self.preds.len() }
    }

    /// Pushes an argument of the next function.
    pub(crate) fn push(&mut self, value: Outcome) {
        match value {
            Outcome::Lane(value) => self.lanes.push(value),
            Outcome::Wide(value) => self.wides.push(value),
            Outcome::Pred(value) => self.preds.push(value),
        }
    }

    /// Enters a function whose arguments were pushed from `base` on. Returns the start of the
    /// caller's frame.
    pub(crate) fn enter(&mut self, base: FrameBase, slots: Slots) -> FrameBase {
        self.lanes.resize(base.lanes + slots.lanes as usize, Lanes::ZERO);
        self.wides.resize(base.wides + slots.wides as usize, [0; WARP]);
        self.preds.resize(base.preds + slots.preds as usize, 0);
        std::mem::replace(&mut self.base, base)
    }

    pub(crate) fn set(&mut self, local: u32, value: Outcome) {
        let local = local as usize;
        match value {
            Outcome::Lane(value) => self.lanes[self.base.lanes + local] = value,
            Outcome::Wide(value) => self.wides[self.base.wides + local] = value,
            Outcome::Pred(value) => self.preds[self.base.preds + local] = value,
        }
    }

    /// Drops the current frame and returns to the caller's frame.
    pub(crate) fn leave(&mut self, caller: FrameBase) {
        self.lanes.truncate(self.base.lanes);
        self.wides.truncate(self.base.wides);
        self.preds.truncate(self.base.preds);
        self.base = caller;
    }
}
