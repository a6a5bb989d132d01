//! Race detector: two accesses of one word, one of them a write, must be ordered by
//! synchronisation.
//!
//! Order is happens-before by the vector clocks of [`super::clock`]; that warps happen to run one
//! after the other, or lanes together, orders nothing. Inside a block every word of shared memory
//! and of the global buffers that the kernel writes has a shadow; between the blocks of a launch
//! nothing is ordered, and [`super::grid_race`] finds what two of them touch.

use super::clock::Clocks;
use super::error::{Earlier, FaultKind};
use super::grid_race::{GridRace, Touch};
use super::lanes::{WARP, lanes_of};
use super::launch::Launch;
use super::observe::{Kind, Observer, Request, Stopped, Sync, stop};
use super::shadow::{PAGE, Reads, Shadow, Word};
use crate::ir::{Scope, Space};
use std::collections::HashMap;

/// The race detector of one block after the other.
pub(super) struct Race<'l> {
    launch: &'l Launch<'l>,
    grid: &'l GridRace,
    threads: u32,
    block: u32,
    clocks: Clocks,
    shared: Shadow,
    global: Shadow,
    /// The page in `global` of each page of a buffer.
    pages: HashMap<(usize, u32), u32>,
    /// The page found last.
    last: Option<((usize, u32), u32)>,
}

/// An access that is not ordered after an earlier one.
struct Conflict {
    lane: u32,
    /// The word, counted from the first of the access.
    offset: u32,
    agent: u32,
    epoch: u32,
    wrote: bool,
}

impl<'l> Race<'l> {
    pub(super) fn new(launch: &'l Launch<'l>, grid: &'l GridRace) -> Self {
        let threads = launch.kernel.geometry.threads();
        let clocks = Clocks::new(threads);
        let rows = clocks.rows();
        Self {
            launch,
            grid,
            threads,
            block: 0,
            clocks,
            shared: Shadow::new(rows),
            global: Shadow::new(rows),
            pages: HashMap::new(),
            last: None,
        }
    }

    /// The thread that has written a word of shared memory last, if one has.
    pub(super) fn writer(&self, shared_word: u32) -> Option<Earlier> {
        let word = self.shared.words.get(shared_word as usize)?;
        (word.epoch > 0).then(|| self.earlier(word.agent, true))
    }

    fn earlier(&self, agent: u32, wrote: bool) -> Earlier {
        let (thread, by_copy) = self.clocks.thread_of(agent);
        Earlier {
            block: self.launch.block(self.block),
            thread: self.launch.thread(thread),
            wrote,
            by_copy,
        }
    }

    /// The word in the shadow of global memory.
    fn global_word(&mut self, buffer: usize, word: u32) -> usize {
        let key = (buffer, word / PAGE as u32);
        let page = match self.last {
            Some((last, page)) if last == key => page,
            _ => {
                let global = &mut self.global;
                *self.pages.entry(key).or_insert_with(|| global.grow())
            }
        };
        self.last = Some((key, page));
        page as usize * PAGE + word as usize % PAGE
    }

    fn touch(&self, request: &Request<'_>, word: u32, lanes: u32) {
        let thread = request.warp * WARP as u32 + lanes.trailing_zeros();
        let touch = Touch { block: self.block, thread, stmt: request.stmt };
        let writes = request.kind.writes();
        self.grid.touch(request.buffer, word as usize, writes, touch);
    }

    #[cold]
    fn report(&self, request: &Request<'_>, word: u32, conflict: &Conflict) -> Stopped {
        let place = request.region.element((word + conflict.offset).into());
        let earlier = self.earlier(conflict.agent, conflict.wrote);
        let (issuer, by_copy) = self.clocks.thread_of(conflict.agent);
        let in_flight = by_copy && !self.clocks.has_awaited(issuer, conflict.epoch);
        let writes = request.kind.writes();
        let kind = if in_flight && conflict.wrote && !writes {
            FaultKind::CopyNotAwaited { place, earlier }
        } else {
            FaultKind::Race { place, writes, earlier }
        };
        stop(conflict.lane, kind)
    }
}

/// Checks and records an access to words of one shadow: for the words of one group of lanes, `at`
/// is where the first is found.
#[inline]
fn check(
    clocks: &Clocks,
    shadow: &mut Shadow,
    at: usize,
    request: &Request<'_>,
    lanes: u32,
) -> Result<(), Conflict> {
    let width = request.width as usize;
    if request.kind == Kind::Read
        && let Some((seen, epoch)) = clocks.common(request.warp)
    {
        // Most accesses are of this kind and are ordered for all lanes alike.
        let row = clocks.thread_row(request.warp);
        let ordered = |word: &Word| seen.covers(word.agent, word.epoch);
        let read = Reads { epoch, lanes };
        if shadow.read(at, width, row, read, ordered).is_ok() {
            return Ok(());
        }
    }
    for offset in 0..width {
        let place =
            Place { clocks, at: at + offset, offset: offset as u32, warp: request.warp, lanes };
        place.ordered_after_write(shadow)?;
        if request.kind.writes() {
            place.ordered_after_reads(shadow)?;
            place.write(shadow, request.kind.by_copy())?;
        } else {
            place.read(shadow, request.kind.by_copy());
        }
    }
    Ok(())
}

/// One word and the lanes of a warp that access it.
struct Place<'a> {
    clocks: &'a Clocks,
    at: usize,
    offset: u32,
    warp: u32,
    lanes: u32,
}

impl Place<'_> {
    fn thread(&self, lane: usize) -> usize {
        self.warp as usize * WARP + lane
    }

    /// Fails if a lane does not come after an epoch of an agent.
    fn ordered_after(&self, agent: u32, epoch: u32, wrote: bool) -> Result<(), Conflict> {
        let ordered = |lane| self.clocks.ordered(self.thread(lane), agent as usize, epoch);
        match lanes_of(self.lanes).find(|&lane| !ordered(lane)) {
            None => Ok(()),
            Some(lane) => Err(self.conflict(lane as u32, agent, epoch, wrote)),
        }
    }

    fn conflict(&self, lane: u32, agent: u32, epoch: u32, wrote: bool) -> Conflict {
        Conflict { lane, offset: self.offset, agent, epoch, wrote }
    }

    fn ordered_after_write(&self, shadow: &Shadow) -> Result<(), Conflict> {
        let word = shadow.words[self.at];
        match self.clocks.common(self.warp) {
            Some((seen, _)) if seen.covers(word.agent, word.epoch) => Ok(()),
            _ if word.epoch == 0 => Ok(()),
            _ => self.ordered_after(word.agent, word.epoch, true),
        }
    }

    fn ordered_after_reads(&self, shadow: &mut Shadow) -> Result<(), Conflict> {
        let common = self.clocks.common(self.warp);
        let mut rows = shadow.words[self.at].readers;
        while rows != 0 {
            let row = rows.trailing_zeros() as usize;
            rows &= rows - 1;
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

    fn read(&self, shadow: &mut Shadow, by_copy: bool) {
        for lane in lanes_of(self.lanes) {
            let (row, epoch) = self.agent(lane, by_copy);
            let lanes = 1 << lane;
            // That it is ordered has been seen to.
            _ = shadow.read(self.at, 1, row, Reads { epoch, lanes }, |_| true);
        }
    }

    fn write(&self, shadow: &mut Shadow, by_copy: bool) -> Result<(), Conflict> {
        let lane = self.lanes.trailing_zeros() as usize;
        let (row, epoch) = self.agent(lane, by_copy);
        let agent = (row * WARP + lane) as u32;
        shadow.write(self.at, agent, epoch);
        // Two lanes that write one word in one statement are not ordered either.
        match self.lanes & (self.lanes - 1) {
            0 => Ok(()),
            others => Err(self.conflict(others.trailing_zeros(), agent, epoch, true)),
        }
    }

    /// The row and the epoch of the agent that accesses for a lane.
    fn agent(&self, lane: usize, by_copy: bool) -> (usize, u32) {
        let thread = self.thread(lane);
        match by_copy {
            true => (self.clocks.copy_row(self.warp), self.clocks.open_group(thread)),
            false => (self.clocks.thread_row(self.warp), self.clocks.now(thread)),
        }
    }
}

impl Observer for Race<'_> {
    fn begin(&mut self, block: u32) {
        self.block = block;
        self.clocks = Clocks::new(self.threads);
        self.shared.reset((self.launch.shared.elements as usize).div_ceil(PAGE));
        self.global.reset(0);
        self.pages.clear();
        self.last = None;
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), Stopped> {
        match request.region.space {
            Space::Register => {}
            Space::Shared => {
                for &(word, lanes) in request.groups.as_slice() {
                    let at = (request.region.shadow + word) as usize;
                    check(&self.clocks, &mut self.shared, at, request, lanes)
                        .map_err(|c| self.report(request, word, &c))?;
                }
            }
            Space::Global if self.grid.watches(request.buffer) => {
                for &(word, lanes) in request.groups.as_slice() {
                    for word in word..word + request.width {
                        let at = self.global_word(request.buffer, word);
                        let request = Request { width: 1, ..*request };
                        check(&self.clocks, &mut self.global, at, &request, lanes)
                            .map_err(|c| self.report(&request, word, &c))?;
                        self.touch(&request, word, lanes);
                    }
                }
            }
            // Nobody writes it.
            Space::Global => {}
        }
        Ok(())
    }

    fn sync(&mut self, sync: Sync) {
        match sync {
            Sync::Barrier(Scope::Block, _) => self.clocks.join_all(),
            Sync::Barrier(Scope::Warp, warp) => {
                let first = warp as usize * WARP;
                self.clocks.join(first..first + WARP);
            }
            Sync::Commit { warp, mask } => {
                let first = warp as usize * WARP;
                lanes_of(mask).for_each(|l| self.clocks.commit(first + l));
            }
            Sync::Wait { warp, mask, pending } => {
                let first = warp as usize * WARP;
                lanes_of(mask).for_each(|l| self.clocks.wait(first + l, pending));
            }
        }
    }
}
