//! Enclosing loops of each instruction, for traces.

use crate::lower::code::LoopIndex;
use std::collections::HashMap;

pub(super) struct EnclosingLoops {
    /// True if some block is recorded.
    is_wanted: bool,
    loops: Vec<(usize, LoopIndex)>,
    /// Number of the current set of loops; `None` until it is requested.
    number: Option<u32>,
    numbers: HashMap<Vec<(usize, LoopIndex)>, u32>,
}

impl EnclosingLoops {
    pub(super) fn new(is_wanted: bool) -> Self {
        let numbers = HashMap::from([(Vec::new(), 0)]);
        Self { is_wanted, loops: Vec::new(), number: Some(0), numbers }
    }

    /// Enters a loop, or an iteration of an unrolled loop.
    pub(super) fn enter(&mut self, var: usize, round: LoopIndex) {
        self.loops.push((var, round));
        self.number = None;
    }

    pub(super) fn leave(&mut self) {
        self.loops.pop();
        self.number = None;
    }

    /// Number of the current set of enclosing loops among all such sets.
    pub(super) fn number(&mut self, known: &mut Vec<Vec<(usize, LoopIndex)>>) -> u32 {
        if !self.is_wanted {
            return 0;
        }
        let loops = &self.loops;
        let number = self.number.unwrap_or_else(|| {
            *self.numbers.entry(loops.clone()).or_insert_with(|| {
                known.push(loops.clone());
                known.len() as u32 - 1
            })
        });
        self.number = Some(number);
        number
    }
}
