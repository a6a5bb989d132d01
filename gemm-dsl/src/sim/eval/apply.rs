//! Evaluation of functions: a frame of variables for each application.

use super::super::code::{Apply, Datum};
use super::super::lanes::{Lanes, WARP, WideLanes};
use super::super::machine::{Machine, Registers};
use super::super::observe::Stopped;

/// The variables of the functions being evaluated, the innermost last.
#[derive(Default)]
pub(in crate::sim) struct Frames {
    lanes: Vec<Lanes>,
    wides: Vec<WideLanes>,
    preds: Vec<u32>,
    /// Where the variables of the innermost function start.
    base: [usize; 3],
}

impl Frames {
    pub(super) fn lane(&self, local: u32) -> &Lanes {
        &self.lanes[self.base[0] + local as usize]
    }

    pub(super) fn wide(&self, local: u32) -> &WideLanes {
        &self.wides[self.base[1] + local as usize]
    }

    pub(super) fn pred(&self, local: u32) -> u32 {
        self.preds[self.base[2] + local as usize]
    }

    fn top(&self) -> [usize; 3] {
        [self.lanes.len(), self.wides.len(), self.preds.len()]
    }
}

/// The value of an expression.
pub(super) enum Outcome {
    Lane(Lanes),
    Wide(WideLanes),
    Pred(u32),
}

impl<'l> Machine<'l> {
    /// The value of a function, in a frame that is gone afterwards.
    pub(super) fn apply(
        &mut self,
        apply: &Apply,
        regs: &Registers,
        mask: u32,
    ) -> Result<Outcome, Stopped> {
        let function = &self.code.functions[apply.function as usize];
        // Operands may apply functions themselves: those are done when the next is pushed.
        let base = self.frames.top();
        for arg in &apply.args {
            match self.datum(arg, regs, mask)? {
                Outcome::Lane(value) => self.frames.lanes.push(value),
                Outcome::Wide(value) => self.frames.wides.push(value),
                Outcome::Pred(value) => self.frames.preds.push(value),
            }
        }
        let outer = std::mem::replace(&mut self.frames.base, base);
        let [lanes, wides, preds] = base;
        self.frames.lanes.resize(lanes + function.slots.lanes as usize, Lanes::ZERO);
        self.frames.wides.resize(wides + function.slots.wides as usize, [0; WARP]);
        self.frames.preds.resize(preds + function.slots.preds as usize, 0);
        self.profile.hit(function.site, mask);
        for (local, value) in &function.body {
            let local = *local as usize;
            match self.datum(value, regs, mask)? {
                Outcome::Lane(value) => self.frames.lanes[lanes + local] = value,
                Outcome::Wide(value) => self.frames.wides[wides + local] = value,
                Outcome::Pred(value) => self.frames.preds[preds + local] = value,
            }
        }
        let value = self.datum(&function.value, regs, mask)?;
        self.frames.lanes.truncate(lanes);
        self.frames.wides.truncate(wides);
        self.frames.preds.truncate(preds);
        self.frames.base = outer;
        Ok(value)
    }

    fn datum(&mut self, datum: &Datum, regs: &Registers, mask: u32) -> Result<Outcome, Stopped> {
        Ok(match datum {
            Datum::Lane(lane) => {
                let mut value = Lanes::ZERO;
                self.compute(lane, regs, mask, &mut value)?;
                Outcome::Lane(value)
            }
            Datum::Wide(wide) => {
                let mut value = [0; WARP];
                self.wide(wide, regs, mask, &mut value)?;
                Outcome::Wide(value)
            }
            Datum::Pred(pred) => Outcome::Pred(self.pred(pred, regs, mask)?),
        })
    }
}
