//! A block whose threads ask one another by atomics, and that no other block speaks to: it is run in
//! several turns, whose results must agree.

use super::code::Code;
use super::counters::Counters;
use super::error::SimError;
use super::journal::Journal;
use super::launch::Launch;
use super::meter::Meter;
use super::race::Between;
use super::schedule::{Block, Round};
use super::turns::TURNS;
use crate::ir::Space;

/// Runs isolated blocks, one after the other.
pub(super) struct Repeated<'l> {
    launch: &'l Launch<'l>,
    /// What runs a block for the first time, and counts.
    first: Block<'l>,
    /// What runs it in other turns, if the kernel has atomics.
    again: Option<Block<'l>>,
}

impl<'l> Repeated<'l> {
    pub(super) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: Between<'l>,
        meter: &'l Meter,
    ) -> Self {
        let block = |between| Block::new(launch, code, between, meter);
        let again = launch.kernel.has_atomics(Space::Shared).then(|| block(between.clone()));
        Self { launch, first: block(between), again }
    }

    /// Runs the block with this number in all turns. The results are those of the first.
    pub(super) fn run(&mut self, number: u32) -> Result<Round, SimError> {
        let Some(again) = &mut self.again else {
            return self.first.run(number).map_err(SimError::Fault);
        };
        self.first.machine.journal = Some(Journal::default());
        let end = self.first.run(number).map_err(SimError::Fault)?;
        let mut journal = self.first.machine.journal.take().unwrap_or_default();
        if end != Round::Done {
            return Ok(end);
        }
        let regions = &self.launch.regions;
        let results = journal.contents(regions);
        for &turns in &TURNS[1..] {
            journal.restore(regions);
            again.take(turns);
            again.machine.journal = Some(journal);
            let end = again.run(number).map_err(|mut fault| {
                fault.turns = Some(turns.name());
                SimError::Fault(fault)
            })?;
            journal = again.machine.journal.take().unwrap_or_default();
            if end != Round::Done {
                return Ok(end);
            }
            let is_result = |region: usize| !self.launch.kernel.buffers[region].unordered;
            if let Some(((region, element), bits)) = journal.differing(regions, &results, is_result)
            {
                return Err(SimError::TurnDependent {
                    kernel: self.launch.kernel.name.clone(),
                    block: self.launch.block(number),
                    place: Box::new(regions[region].element(element)),
                    turns: turns.name(),
                    bits,
                });
            }
        }
        journal.restore(regions);
        results.restore(regions);
        Ok(Round::Done)
    }

    /// Counters of the blocks that have run here, in their first turns.
    pub(super) fn finish(self) -> Counters {
        self.first.finish()
    }
}
