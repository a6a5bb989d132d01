//! Evaluation of function calls, each in its own frame.

use super::super::frames::Outcome;
use super::super::lanes::Lanes;
use super::super::machine::{Machine, Registers};
use crate::lower::code::expr::{Apply, Datum};
use crate::mask::WARP;
use crate::observe::BoxedTrap;

impl<'l> Machine<'l> {
    /// Evaluates a function in a new frame, which is dropped afterwards.
    pub(super) fn apply(
        &mut self,
        apply: &Apply,
        regs: &Registers,
        mask: u32,
    ) -> Result<Outcome, BoxedTrap> {
        let function = &self.code.functions[apply.function as usize];
        // Arguments may contain calls. The frames of these calls are dropped before the next
        // argument is pushed.
        let base = self.frames.top();
        for arg in &apply.args {
            let value = self.datum(arg, regs, mask)?;
            self.frames.push(value);
        }
        let caller = self.frames.enter(base, function.slots);
        self.executes(function.site, mask);
        for (local, value) in &function.body {
            let value = self.datum(value, regs, mask)?;
            self.frames.set(*local, value);
        }
        let value = self.datum(&function.value, regs, mask)?;
        self.frames.leave(caller);
        Ok(value)
    }

    fn datum(&mut self, datum: &Datum, regs: &Registers, mask: u32) -> Result<Outcome, BoxedTrap> {
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
