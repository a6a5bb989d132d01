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
use super::observe::{Observer, Request, Stopped, Sync, stop};
use super::shadow::{PAGE, Shadow};
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
        let touch = Touch {
            block: self.block,
            thread,
            stmt: request.stmt,
        };
        let writes = request.kind.writes();
        self.grid
            .touch(request.buffer, word as usize, writes, touch);
    }

    #[cold]
    fn report(&self, request: &Request<'_>, word: u32, conflict: &Conflict) -> Stopped {
        let place = request.region.element(word.into());
        let earlier = self.earlier(conflict.agent, conflict.wrote);
        let (issuer, by_copy) = self.clocks.thread_of(conflict.agent);
        let in_flight = by_copy && !self.clocks.has_awaited(issuer, conflict.epoch);
        let writes = request.kind.writes();
        let kind = if in_flight && conflict.wrote && !writes {
            FaultKind::CopyNotAwaited { place, earlier }
        } else {
            FaultKind::Race {
                place,
                writes,
                earlier,
            }
        };
        stop(conflict.lane, kind)
    }
}

/// Checks and records the access of some lanes to one word.
#[inline]
fn check(
    clocks: &Clocks,
    shadow: &mut Shadow,
    at: usize,
    request: &Request<'_>,
    lanes: u32,
) -> Result<(), Conflict> {
    let warp = request.warp;
    let first = warp as usize * WARP;
    let word = shadow.words[at];
    if word.epoch > 0 && !clocks.surely(warp, word.agent as usize, word.epoch) {
        let behind =
            lanes_of(lanes).find(|l| !clocks.ordered(first + l, word.agent as usize, word.epoch));
        if let Some(lane) = behind {
            return Err(Conflict {
                lane: lane as u32,
                agent: word.agent,
                epoch: word.epoch,
                wrote: true,
            });
        }
    }
    if !request.kind.writes() {
        record_read(clocks, shadow, at, request, lanes);
        return Ok(());
    }
    let mut rows = word.readers;
    while rows != 0 {
        let row = rows.trailing_zeros() as usize;
        rows &= rows - 1;
        check_reads(clocks, shadow, at, row, warp, lanes)?;
    }
    let row = match request.kind.by_copy() {
        true => clocks.copy_row(warp),
        false => clocks.thread_row(warp),
    };
    let lane = lanes.trailing_zeros() as usize;
    let epoch = match request.kind.by_copy() {
        true => clocks.open_group(first + lane),
        false => clocks.now(first + lane),
    };
    let agent = (row * WARP + lane) as u32;
    shadow.write(at, agent, epoch);
    // Two lanes that write one word in one statement are not ordered either.
    let others = lanes & (lanes - 1);
    if others != 0 {
        return Err(Conflict {
            lane: others.trailing_zeros(),
            agent,
            epoch,
            wrote: true,
        });
    }
    Ok(())
}

fn check_reads(
    clocks: &Clocks,
    shadow: &mut Shadow,
    at: usize,
    row: usize,
    warp: u32,
    lanes: u32,
) -> Result<(), Conflict> {
    let (newest, older) = shadow.reads_of(at, row);
    if older.is_empty() && clocks.surely_row(warp, row, newest.epoch) {
        return Ok(());
    }
    for reads in std::iter::once(&newest).chain(older) {
        for reader in lanes_of(reads.lanes) {
            let agent = row * WARP + reader;
            let first = warp as usize * WARP;
            let behind = lanes_of(lanes).find(|l| !clocks.ordered(first + l, agent, reads.epoch));
            if let Some(lane) = behind {
                return Err(Conflict {
                    lane: lane as u32,
                    agent: agent as u32,
                    epoch: reads.epoch,
                    wrote: false,
                });
            }
        }
    }
    Ok(())
}

#[inline]
fn record_read(clocks: &Clocks, shadow: &mut Shadow, at: usize, request: &Request<'_>, lanes: u32) {
    let warp = request.warp;
    let first = warp as usize * WARP;
    if request.kind.by_copy() {
        let row = clocks.copy_row(warp);
        for lane in lanes_of(lanes) {
            shadow.read(at, row, clocks.open_group(first + lane), 1 << lane);
        }
        return;
    }
    let row = clocks.thread_row(warp);
    if let Some(epoch) = clocks.common(warp) {
        shadow.read(at, row, epoch, lanes);
    } else {
        for lane in lanes_of(lanes) {
            shadow.read(at, row, clocks.now(first + lane), 1 << lane);
        }
    }
}

impl Observer for Race<'_> {
    fn begin(&mut self, block: u32) {
        self.block = block;
        self.clocks = Clocks::new(self.threads);
        self.shared
            .reset((self.launch.shared_words as usize).div_ceil(PAGE));
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
                    for word in word..word + request.width {
                        let at = (request.region.base + word) as usize;
                        check(&self.clocks, &mut self.shared, at, request, lanes)
                            .map_err(|c| self.report(request, word, &c))?;
                    }
                }
            }
            Space::Global if self.grid.watches(request.buffer) => {
                for &(word, lanes) in request.groups.as_slice() {
                    for word in word..word + request.width {
                        let at = self.global_word(request.buffer, word);
                        check(&self.clocks, &mut self.global, at, request, lanes)
                            .map_err(|c| self.report(request, word, &c))?;
                        self.touch(request, word, lanes);
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
            Sync::Wait {
                warp,
                mask,
                pending,
            } => {
                let first = warp as usize * WARP;
                lanes_of(mask).for_each(|l| self.clocks.wait(first + l, pending));
            }
        }
    }
}
