//! Race check of a warp's access against shadow memory.

use super::clock::Clocks;
use super::shadow::{Reads, Shadow, ShadowWord};
use crate::mask::{ALL, WARP, lanes_of};
use crate::race::access_history::{Agent, UnorderedAccess};
use crate::race::model::{ORDINARY, TMA, Timeline};
use crate::race::vector_clock::VectorClock;

/// Access of a warp on one of its timelines. Its lanes may access different words.
pub(crate) struct Check<'a> {
    clocks: &'a Clocks,
    block: u32,
    warp: u32,
    on: Timeline,
    /// Timeline whose proxy the access uses.
    sees: Timeline,
    writes: bool,
    row: usize,
    /// For a TMA copy, the mbarrier whose agent makes the access.
    slot: Option<usize>,
    /// Acquired clock and own clock, if they are the same in all lanes.
    common: Option<(&'a VectorClock, u32)>,
}

/// Access that is not ordered after an earlier access.
pub(crate) struct Conflict {
    pub(crate) lane: u32,
    /// Distance of the word from the first word of the access.
    pub(crate) offset: u32,
    pub(crate) earlier: UnorderedAccess,
}

impl<'a> Check<'a> {
    #[inline]
    pub(crate) fn new(
        clocks: &'a Clocks,
        block: u32,
        warp: u32,
        on: Timeline,
        writes: bool,
    ) -> Self {
        let (row, common) = (clocks.row(warp, on), clocks.common(warp, on));
        Self { clocks, block, warp, on, sees: on, writes, row, slot: None, common }
    }

    /// Creates the check for an asynchronous store of a lane of the warp, which an mbarrier counts.
    pub(crate) fn by_async_store(clocks: &'a Clocks, block: u32, warp: u32, slot: usize) -> Self {
        let common = clocks.common(warp, ORDINARY);
        let copy = Self::by_copy(clocks, block, warp, slot);
        Self { sees: ORDINARY, common, ..copy }
    }

    /// Creates the check for the writes of a TMA copy, which a lane of the warp issues and an
    /// mbarrier counts.
    pub(crate) fn by_copy(clocks: &'a Clocks, block: u32, warp: u32, slot: usize) -> Self {
        Self { slot: Some(slot), ..Self::new(clocks, block, warp, TMA, true) }
    }

    /// Checks and records a read by the warp as a whole. All lanes must be ordered after the
    /// writes. The read is recorded for the first lane.
    pub(crate) fn read_as_one(
        &self,
        shadow: &mut Shadow,
        at: usize,
        width: u32,
    ) -> Result<(), Conflict> {
        let seen = self.clocks.acquired_by_all(self.warp, self.on);
        for offset in 0..width {
            let word = shadow.words[at + offset as usize];
            if word.epoch == 0 || seen.is_some_and(|seen| seen.covers(word.agent, word.epoch)) {
                continue;
            }
            let place = WordAccess { check: self, at: at + offset as usize, offset, lanes: ALL };
            place.ordered_after(word.agent, word.epoch, true)?;
        }
        let epoch = self.clocks.epoch(self.warp as usize * WARP, self.on);
        // The order was already checked above.
        _ = shadow.read(at, width as usize, self.row, Reads { epoch, lanes: 1 }, |_| true);
        Ok(())
    }

    /// Checks and records an access of some lanes to `width` words, starting at `at`.
    #[inline]
    pub(crate) fn access(
        &self,
        shadow: &mut Shadow,
        at: usize,
        width: u32,
        lanes: u32,
    ) -> Result<(), Conflict> {
        if !self.writes
            && self.on == ORDINARY
            && let Some((seen, epoch)) = self.common
        {
            // Fast path: most accesses are ordinary reads with the same order for all lanes.
            let ordered = |word: &ShadowWord| seen.covers(word.agent, word.epoch);
            let read = Reads { epoch, lanes };
            if shadow.read(at, width as usize, self.row, read, ordered).is_ok() {
                return Ok(());
            }
        }
        for offset in 0..width {
            let place = WordAccess { check: self, at: at + offset as usize, offset, lanes };
            place.ordered_after_write(shadow)?;
            if self.writes {
                place.ordered_after_reads(shadow)?;
                place.write(shadow)?;
            } else {
                place.read(shadow);
            }
        }
        Ok(())
    }
}

/// Access of some lanes to one word.
struct WordAccess<'a> {
    check: &'a Check<'a>,
    at: usize,
    offset: u32,
    lanes: u32,
}

impl WordAccess<'_> {
    fn thread(&self, lane: usize) -> usize {
        self.check.warp as usize * WARP + lane
    }

    /// Returns a conflict if some lane is not ordered after an epoch of an agent.
    fn ordered_after(&self, agent: u32, epoch: u32, wrote: bool) -> Result<(), Conflict> {
        let Check { clocks, sees, .. } = *self.check;
        let ordered = |lane| clocks.ordered(self.thread(lane), sees, agent as usize, epoch);
        match lanes_of(self.lanes).find(|&lane| !ordered(lane)) {
            None => Ok(()),
            Some(lane) => Err(self.conflict(lane as u32, agent, epoch, wrote)),
        }
    }

    fn conflict(&self, lane: u32, agent: u32, epoch: u32, wrote: bool) -> Conflict {
        let agent = Agent { block: self.check.block, number: agent };
        Conflict { lane, offset: self.offset, earlier: UnorderedAccess { agent, epoch, wrote } }
    }

    #[inline]
    fn ordered_after_write(&self, shadow: &Shadow) -> Result<(), Conflict> {
        let word = shadow.words[self.at];
        match self.check.common {
            _ if word.epoch == 0 => Ok(()),
            Some((seen, _)) if seen.covers(word.agent, word.epoch) => Ok(()),
            _ => self.ordered_after(word.agent, word.epoch, true),
        }
    }

    #[inline]
    fn ordered_after_reads(&self, shadow: &mut Shadow) -> Result<(), Conflict> {
        for row in shadow.readers(self.at) {
            let (newest, older) = shadow.reads_of(self.at, row);
            for reads in std::iter::once(&newest).chain(older) {
                if self.check.common.is_some_and(|(seen, _)| seen.covers_row(row, reads.epoch)) {
                    continue;
                }
                for reader in lanes_of(reads.lanes) {
                    let agent = row * WARP + reader;
                    self.ordered_after(agent as u32, reads.epoch, false)?;
                }
            }
        }
        Ok(())
    }

    fn read(&self, shadow: &mut Shadow) {
        let Check { clocks, on, row, .. } = *self.check;
        for lane in lanes_of(self.lanes) {
            let epoch = clocks.epoch(self.thread(lane), on);
            // The caller has already checked the order.
            _ = shadow.read(self.at, 1, row, Reads { epoch, lanes: 1 << lane }, |_| true);
        }
    }

    #[inline]
    fn write(&self, shadow: &mut Shadow) -> Result<(), Conflict> {
        let Check { clocks, on, row, .. } = *self.check;
        let lane = self.lanes.trailing_zeros() as usize;
        let (agent, epoch) = match self.check.slot {
            Some(slot) => (clocks.agent(slot, on), clocks.epoch(slot, on)),
            None => ((row * WARP + lane) as u32, clocks.epoch(self.thread(lane), on)),
        };
        shadow.write(self.at, agent, epoch);
        // Two lanes that write the same word in one statement are not ordered either.
        match self.lanes & (self.lanes - 1) {
            0 => Ok(()),
            others => Err(self.conflict(others.trailing_zeros(), agent, epoch, true)),
        }
    }
}
