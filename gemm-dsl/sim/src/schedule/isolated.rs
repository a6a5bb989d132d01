//! A block whose threads ask one another by atomics, and that no other block speaks to: it is run in
//! several turns, whose results must agree.

use crate::counters::Profile;
use crate::error::SimError;
use crate::exec::budget::Meter;
use crate::exec::interleaving::{TURNS, Turns, more};
use crate::exec::undo_log::Journal;
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::race::detector::Between;
use crate::schedule::block::Block;
use gemm_dsl::ir::Space;

/// Runs isolated blocks, one after the other.
pub(crate) struct Repeated<'l> {
    launch: &'l Launch<'l>,
    /// What runs a block for the first time, and counts.
    first: Block<'l>,
    /// What runs it in other turns, if the kernel has atomics.
    again: Option<Block<'l>>,
}

impl<'l> Repeated<'l> {
    pub(crate) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: Between<'l>,
        meter: &'l Meter,
    ) -> Self {
        let block = |between| Block::new(launch, code, between, meter);
        let asks = launch.kernel.has_atomics(Space::Shared) && !launch.unchecked;
        let again = asks.then(|| block(between.clone()));
        Self { launch, first: block(between), again }
    }

    /// Runs the block with this number in all turns. The results are those of the first.
    pub(crate) fn run(&mut self, number: u32) -> Result<(), SimError> {
        let Some(again) = &mut self.again else {
            return self.first.run(number);
        };
        self.first.machine.journal = Some(Journal::default());
        self.first.run(number)?;
        let mut journal = self.first.machine.journal.take().unwrap_or_default();
        let regions = &self.launch.regions;
        let results = journal.contents(regions);
        let more = more(again.warps()).iter().copied().map(Turns::Shuffled);
        for turns in TURNS[1..].iter().copied().chain(more) {
            journal.restore(regions);
            again.take(turns);
            again.machine.journal = Some(journal);
            again.run(number).map_err(|error| error.in_turns(turns.name()))?;
            journal = again.machine.journal.take().unwrap_or_default();
            let is_result = |region: usize| !self.launch.kernel.buffers[region].unordered;
            if let Some(((region, element), bits)) = journal.differing(regions, &results, is_result)
            {
                return Err(SimError::TurnDependent {
                    kernel: self.launch.kernel.name.clone(),
                    block: self.launch.block(self.launch.of_cluster(number, 0)),
                    place: Box::new(regions[region].element(element)),
                    turns: turns.name(),
                    bits,
                });
            }
        }
        journal.restore(regions);
        results.restore(regions);
        Ok(())
    }

    /// What the blocks that have run here are charged with, in their first turns.
    pub(crate) fn finish(self) -> Profile {
        self.first.finish()
    }
}
