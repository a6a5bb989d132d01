//! Which loops an instruction is in, for who watches it.

use crate::lower::code::LoopIndex;
use std::collections::HashMap;

/// The loops around what is lowered.
pub(super) struct EnclosingLoops {
    /// Whether anybody wants to know.
    is_wanted: bool,
    loops: Vec<(usize, LoopIndex)>,
    /// The number of these loops, if it has been asked for.
    number: Option<u32>,
    numbers: HashMap<Vec<(usize, LoopIndex)>, u32>,
}

impl EnclosingLoops {
    pub(super) fn new(is_wanted: bool) -> Self {
        let numbers = HashMap::from([(Vec::new(), 0)]);
        Self { is_wanted, loops: Vec::new(), number: Some(0), numbers }
    }

    /// A loop begins, or a round of one that is unrolled.
    pub(super) fn enter(&mut self, var: usize, round: LoopIndex) {
        self.loops.push((var, round));
        self.number = None;
    }

    pub(super) fn leave(&mut self) {
        self.loops.pop();
        self.number = None;
    }

    /// The number of the loops that there are around here, among all such sets.
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
