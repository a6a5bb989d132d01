//! An access of some lanes to words that have a shadow: whether it comes after those that the shadow
//! remembers.

use super::clock::Clocks;
use super::lanes::{WARP, lanes_of};
use super::shadow::{Reads, Shadow, Word};
use super::timeline::{ORDINARY, Timeline};
use super::words::{Agent, Unordered};

/// Lanes of a warp that access the same words, one after the other in memory.
pub(super) struct Group {
    pub(super) warp: u32,
    pub(super) lanes: u32,
    /// The number of words.
    pub(super) width: u32,
    pub(super) on: Timeline,
    pub(super) writes: bool,
}

/// An access that is not ordered after an earlier one.
pub(super) struct Conflict {
    pub(super) lane: u32,
    /// The word, counted from the first of the access.
    pub(super) offset: u32,
    pub(super) earlier: Unordered,
}

/// Checks and records an access, of which the first word is found at `at`.
#[inline]
pub(super) fn check(
    (clocks, block): (&Clocks, u32),
    shadow: &mut Shadow,
    at: usize,
    group: &Group,
) -> Result<(), Conflict> {
    let width = group.width as usize;
    if !group.writes
        && group.on == ORDINARY
        && let Some((seen, epoch)) = clocks.common(group.warp, ORDINARY)
    {
        // Most accesses are of this kind and are ordered for all lanes alike.
        let row = clocks.row(group.warp, ORDINARY);
        let ordered = |word: &Word| seen.covers(word.agent, word.epoch);
        let read = Reads { epoch, lanes: group.lanes };
        if shadow.read(at, width, row, read, ordered).is_ok() {
            return Ok(());
        }
    }
    for offset in 0..width {
        let place = Place { clocks, block, at: at + offset, offset: offset as u32, group };
        place.ordered_after_write(shadow)?;
        if group.writes {
            place.ordered_after_reads(shadow)?;
            place.write(shadow)?;
        } else {
            place.read(shadow);
        }
    }
    Ok(())
}

/// One word and the lanes of a warp that access it.
struct Place<'a> {
    clocks: &'a Clocks,
    block: u32,
    at: usize,
    offset: u32,
    group: &'a Group,
}

impl Place<'_> {
    fn thread(&self, lane: usize) -> usize {
        self.group.warp as usize * WARP + lane
    }

    /// Fails if a lane does not come after an epoch of an agent.
    fn ordered_after(&self, agent: u32, epoch: u32, wrote: bool) -> Result<(), Conflict> {
        let (clocks, on) = (self.clocks, self.group.on);
        let ordered = |lane| clocks.ordered(self.thread(lane), on, agent as usize, epoch);
        match lanes_of(self.group.lanes).find(|&lane| !ordered(lane)) {
            None => Ok(()),
            Some(lane) => Err(self.conflict(lane as u32, agent, epoch, wrote)),
        }
    }

    fn conflict(&self, lane: u32, agent: u32, epoch: u32, wrote: bool) -> Conflict {
        let agent = Agent { block: self.block, number: agent };
        Conflict { lane, offset: self.offset, earlier: Unordered { agent, epoch, wrote } }
    }

    fn ordered_after_write(&self, shadow: &Shadow) -> Result<(), Conflict> {
        let word = shadow.words[self.at];
        match self.clocks.common(self.group.warp, self.group.on) {
            Some((seen, _)) if seen.covers(word.agent, word.epoch) => Ok(()),
            _ if word.epoch == 0 => Ok(()),
            _ => self.ordered_after(word.agent, word.epoch, true),
        }
    }

    fn ordered_after_reads(&self, shadow: &mut Shadow) -> Result<(), Conflict> {
        let common = self.clocks.common(self.group.warp, self.group.on);
        for row in shadow.readers(self.at) {
            let (newest, older) = shadow.reads_of(self.at, row);
            for reads in std::iter::once(&newest).chain(older) {
                if common.is_some_and(|(seen, _)| seen.covers_row(row, reads.epoch)) {
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
        let row = self.clocks.row(self.group.warp, self.group.on);
        for lane in lanes_of(self.group.lanes) {
            let epoch = self.clocks.epoch(self.thread(lane), self.group.on);
            let lanes = 1 << lane;
            // That it is ordered has been seen to.
            _ = shadow.read(self.at, 1, row, Reads { epoch, lanes }, |_| true);
        }
    }

    fn write(&self, shadow: &mut Shadow) -> Result<(), Conflict> {
        let lane = self.group.lanes.trailing_zeros() as usize;
        let epoch = self.clocks.epoch(self.thread(lane), self.group.on);
        let agent = self.clocks.agent(self.thread(lane), self.group.on);
        shadow.write(self.at, agent, epoch);
        // Two lanes that write one word in one statement are not ordered either.
        match self.group.lanes & (self.group.lanes - 1) {
            0 => Ok(()),
            others => Err(self.conflict(others.trailing_zeros(), agent, epoch, true)),
        }
    }
}
