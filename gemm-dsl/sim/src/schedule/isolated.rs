//! Execution of blocks that do not synchronise with other blocks. If threads of a block synchronise
//! by atomics, the block runs in several thread interleavings, whose results must agree.

use crate::counters::Profile;
use crate::error::SimError;
use crate::exec::budget::Budget;
use crate::exec::interleaving::{INTERLEAVINGS, Interleaving, more};
use crate::exec::undo_log::UndoLog;
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::race::detector::InterBlock;
use crate::region::ElementId;
use crate::schedule::block::Block;
use gemm_dsl::ir::Space;

pub(crate) struct IsolatedBlocks<'l> {
    launch: &'l Launch<'l>,
    /// State for the first run of each block, whose counters are reported.
    first: Block<'l>,
    /// State for the runs in other interleavings, if the kernel has atomics on shared memory.
    again: Option<Block<'l>>,
}

impl<'l> IsolatedBlocks<'l> {
    pub(crate) fn new(
        launch: &'l Launch<'l>,
        code: &'l Code<'l>,
        between: InterBlock<'l>,
        budget: &'l Budget,
    ) -> Self {
        let block = |between| Block::new(launch, code, between, budget);
        let asks = launch.kernel.has_atomics(Space::Shared) && !launch.unchecked;
        let again = asks.then(|| block(between.clone()));
        Self { launch, first: block(between), again }
    }

    /// Runs a block in all interleavings. The results are those of the first interleaving.
    pub(crate) fn run(&mut self, number: u32) -> Result<(), SimError> {
        let Some(again) = &mut self.again else {
            return self.first.run(number);
        };
        self.first.machine.undo_log = Some(UndoLog::default());
        self.first.run(number)?;
        let mut undo_log = self.first.machine.undo_log.take().unwrap_or_default();
        let regions = &self.launch.regions;
        let results = undo_log.contents(regions);
        let more = more(again.warps()).iter().copied().map(Interleaving::Shuffled);
        for turns in INTERLEAVINGS[1..].iter().copied().chain(more) {
            undo_log.restore(regions);
            again.take(turns);
            again.machine.undo_log = Some(undo_log);
            again.run(number).map_err(|error| error.in_turns(turns.name()))?;
            undo_log = again.machine.undo_log.take().unwrap_or_default();
            let is_result = |region: usize| !self.launch.kernel.buffers[region].unordered;
            if let Some((ElementId { buffer, element }, bits)) =
                undo_log.differing(regions, &results, is_result)
            {
                return Err(SimError::InterleavingDependent {
                    kernel: self.launch.kernel.name.clone(),
                    block: self.launch.block(self.launch.of_cluster(number, 0)),
                    place: Box::new(regions[buffer].element(element)),
                    turns: turns.name(),
                    bits,
                });
            }
        }
        undo_log.restore(regions);
        results.restore(regions);
        Ok(())
    }

    /// Returns the counters of all blocks that have run, in their first interleavings.
    pub(crate) fn finish(self) -> Profile {
        self.first.finish()
    }
}
