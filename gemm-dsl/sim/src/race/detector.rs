//! Race detector. If two accesses of a word include a write, synchronisation must order them.
//!
//! The order is happens-before according to the vector clocks of [`super::clock`]. The order in
//! which the simulator executes warps and lanes does not count. Every word of shared memory, and of
//! global buffers that the kernel writes, has shadow state for the accesses of a block. Blocks that
//! do not synchronise are not ordered, and [`crate::race::grid`] finds words that two of them
//! access. [`crate::race::access_history`] handles words that atomics access.

use super::check::{Check, Conflict};
use super::clock::Clocks;
use super::shadow::{PAGE, PagedShadow, Shadow};
use crate::error::{EarlierAccess, FaultKind};
use crate::launch::Launch;
use crate::lower::code::Code;
use crate::mask::{WARP, lanes_of, turns};
use crate::observe::{AtomicRequest, BoxedTrap, Observer, Request, Sync, trap};
use crate::race::access_history::{Access, AccessHistory, Agent, UnorderedAccess};
use crate::race::grid;
use crate::race::grid::GridRace;
use crate::race::model::{Model, TMA, Timeline, WGMMA, model_of};
use crate::race::release_sequence::{AtomicAccess, BlockReleases};
use crate::race::vector_clock::BarrierClock;
use crate::region::{ElementId, Region};
use gemm_dsl::ir::Space;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Detector of races between blocks.
#[derive(Clone)]
pub(crate) enum InterBlock<'l> {
    /// Blocks that do not synchronise with each other.
    Isolated(&'l GridRace),
    /// Blocks that synchronise by atomics on global memory.
    Synchronising(Rc<RefCell<AccessHistory>>),
}

/// Race detector of one cluster after another. A cluster is treated as one block of all its
/// threads, numbered consecutively.
pub(crate) struct Race<'l> {
    launch: &'l Launch<'l>,
    code: &'l Code<'l>,
    between: InterBlock<'l>,
    pub(crate) model: &'static Model,
    /// Number of threads per block, rounded up to whole warps. `threads` is the number per cluster.
    /// If there are more mbarriers than threads, it is the number of mbarriers instead, because
    /// agents of TMA copies are numbered by mbarrier.
    threads_of_block: usize,
    threads: u32,
    block: u32,
    pub(crate) clocks: Clocks,
    /// For each mbarrier, the thread that issued its last copy.
    issuers: Vec<u32>,
    /// Clocks gathered at named barriers in their current rounds.
    gathered: HashMap<u32, BarrierClock>,
    /// Release sequences between threads of the block.
    block_releases: BlockReleases,
    /// Access history of shared arrays with atomics.
    history: AccessHistory,
    /// Shadow of the shared memory of the running warp's block.
    pub(crate) shared: Shadow,
    global: PagedShadow,
}

impl<'l> Race<'l> {
    pub(crate) fn new(launch: &'l Launch<'l>, code: &'l Code<'l>, between: InterBlock<'l>) -> Self {
        let mbarriers = launch.cluster() * launch.mbarriers();
        let threads_of_block = launch.warps() * WARP as u32;
        let threads = (launch.cluster() * threads_of_block).max(mbarriers);
        let model = model_of(launch.kernel);
        let clocks = Clocks::new(model, threads);
        let rows = clocks.rows();
        Self {
            launch,
            code,
            between,
            model,
            threads_of_block: threads_of_block as usize,
            threads,
            block: 0,
            clocks,
            issuers: vec![0; mbarriers as usize],
            gathered: HashMap::new(),
            block_releases: BlockReleases::default(),
            history: AccessHistory::default(),
            shared: Shadow::new(rows),
            global: PagedShadow::new(rows),
        }
    }

    /// Creates a shadow for the shared memory of another block. It has no pages until the block
    /// starts.
    pub(crate) fn shadow(&self) -> Shadow {
        Shadow::new(self.clocks.rows())
    }

    pub(crate) fn pages(&self) -> usize {
        (self.launch.shared.elements as usize).div_ceil(PAGE)
    }

    /// Last writer of an element of a shared array, if any.
    pub(crate) fn writer(&self, at: ElementId) -> Option<EarlierAccess> {
        let ElementId { buffer, element } = at;
        if self.code.atomics[buffer] {
            let agent = self.history.writer(at)?;
            return Some(self.earlier(agent, true));
        }
        let word = self.launch.regions[buffer].shadow + element;
        let word = self.shared.words.get(word as usize)?;
        let agent = Agent { block: self.block, number: word.agent };
        (word.epoch > 0).then(|| self.earlier(agent, true))
    }

    /// Thread and timeline of an access.
    fn thread_of(&self, agent: Agent) -> (u32, Timeline) {
        let (number, timeline) = self.clocks.thread_of(agent.number);
        let issuer = self.issuers.get(number as usize).filter(|_| timeline == TMA);
        (issuer.copied().unwrap_or(number), timeline)
    }

    fn earlier(&self, agent: Agent, wrote: bool) -> EarlierAccess {
        let (thread, timeline) = self.thread_of(agent);
        let (block, thread) = self.launch.whereabouts(agent.block, thread);
        EarlierAccess {
            block: self.launch.block(block),
            thread: self.launch.thread(thread),
            wrote,
            by: self.model.timelines[timeline.0].by,
        }
    }

    #[cold]
    fn report(&self, request: &Request<'_>, word: u32, conflict: &Conflict) -> BoxedTrap {
        self.race_trap(request.region, request.warp, request.kind.writes(), word, conflict)
    }

    #[cold]
    fn race_trap(
        &self,
        region: &Region,
        warp: u32,
        writes: bool,
        word: u32,
        conflict: &Conflict,
    ) -> BoxedTrap {
        let place = region.element(word + conflict.offset);
        let UnorderedAccess { agent, epoch, wrote } = conflict.earlier;
        let earlier = self.earlier(agent, wrote);
        let (thread, timeline) = self.thread_of(agent);
        // A TMA copy is completed by an mbarrier, not by a wait of the thread that issued it.
        let is_own = timeline != TMA;
        let in_flight = self.model.timelines[timeline.0].grouped
            && agent.block == self.block
            && !(is_own && self.clocks.has_awaited(agent.number, epoch));
        // This thread is not even ordered after the issue of a copy whose group another thread has
        // only just closed. The copy overwrites the element instead of supplying the data to read,
        // so this is an ordinary race.
        let overwrites = is_own
            && thread != warp * WARP as u32 + conflict.lane
            && self.clocks.has_just_closed(agent.number, epoch);
        let kind = if in_flight && wrote && !writes && !overwrites {
            FaultKind::CopyNotAwaited { place, earlier }
        } else {
            FaultKind::Race { place, writes, earlier }
        };
        trap(conflict.lane, kind)
    }

    /// Checks and records a TMA write to a shared array. A lane has issued the copy, and an
    /// mbarrier counts it.
    pub(crate) fn tma_write(
        &mut self,
        warp: u32,
        lane: usize,
        region: &Region,
        elements: Range<u32>,
        slot: usize,
    ) -> Result<(), BoxedTrap> {
        self.counted_write(warp, lane, region, elements, slot, |clocks, block| {
            Check::by_copy(clocks, block, warp, slot)
        })
    }

    /// Checks and records an asynchronous store of a lane to a shared array, which an mbarrier
    /// counts. Unlike a copy, it uses the generic proxy.
    pub(crate) fn async_store(
        &mut self,
        warp: u32,
        lane: usize,
        region: &Region,
        elements: Range<u32>,
        slot: usize,
    ) -> Result<(), BoxedTrap> {
        self.counted_write(warp, lane, region, elements, slot, |clocks, block| {
            Check::by_async_store(clocks, block, warp, slot)
        })
    }

    /// Checks and records a write that an mbarrier counts, by the check that `by` creates from the
    /// clocks and the block.
    fn counted_write(
        &mut self,
        warp: u32,
        lane: usize,
        region: &Region,
        elements: Range<u32>,
        slot: usize,
        by: impl for<'a> FnOnce(&'a Clocks, u32) -> Check<'a>,
    ) -> Result<(), BoxedTrap> {
        self.issuers[slot] = warp * WARP as u32 + lane as u32;
        let check = by(&self.clocks, self.block);
        let (at, width) = (region.shadow + elements.start, elements.end - elements.start);
        let found = check.access(&mut self.shared, at as usize, width, 1 << lane);
        found.map_err(|conflict| self.race_trap(region, warp, true, elements.start, &conflict))
    }

    /// Checks and records a matrix instruction's read of a shared array.
    pub(crate) fn wgmma_read(
        &mut self,
        warp: u32,
        region: &Region,
        elements: Range<u32>,
    ) -> Result<(), BoxedTrap> {
        let check = Check::new(&self.clocks, self.block, warp, WGMMA, false);
        let (at, width) = (region.shadow + elements.start, elements.end - elements.start);
        let found = check.read_as_one(&mut self.shared, at as usize, width);
        found.map_err(|conflict| self.race_trap(region, warp, false, elements.start, &conflict))
    }

    /// Merges the proxy views of threads at a proxy fence.
    pub(crate) fn proxy_fence(&mut self, threads: impl Iterator<Item = usize>) {
        threads.for_each(|thread| self.clocks.meet_itself(&self.model.fence, thread));
    }

    /// Closes a warp's group of matrix instructions.
    pub(crate) fn close_wgmma(&mut self, warp: u32) {
        self.clocks.close(warp as usize * WARP, WGMMA);
    }

    /// Completes all groups of matrix instructions of a warp except the `pending` newest.
    pub(crate) fn await_wgmma(&mut self, warp: u32, pending: u32) {
        self.clocks.wait_together(&self.model.wgmma, warp, pending);
    }

    /// Checks and records accesses in the access history, lane by lane in the order of the request.
    fn meeting(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap> {
        let found = match self.synchronising(request.buffer) {
            Some(history) => self.meet_in(&mut history.borrow_mut(), request),
            None => {
                let mut history = std::mem::take(&mut self.history);
                let found = self.meet_in(&mut history, request);
                self.history = history;
                found
            }
        };
        found.map_err(|(word, conflict)| self.report(request, word, &conflict))
    }

    /// Access history of a global buffer, if blocks synchronise.
    fn synchronising(&self, buffer: usize) -> Option<Rc<RefCell<AccessHistory>>> {
        match &self.between {
            InterBlock::Synchronising(history)
                if self.launch.regions[buffer].space == Space::Global =>
            {
                Some(Rc::clone(history))
            }
            _ => None,
        }
    }

    /// Applies the acquire and release effects of atomics.
    fn synchronise(&mut self, atomics: &AtomicRequest<'_>) {
        let synchronising = self.synchronising(atomics.buffer);
        let mut synchronising = synchronising.as_ref().map(|history| history.borrow_mut());
        let history = synchronising.as_deref_mut().unwrap_or(&mut self.history);
        for lane in turns(atomics.mask, atomics.reversed) {
            let atomic = AtomicAccess {
                at: ElementId { buffer: atomics.buffer, element: atomics.elements[lane] },
                block: self.block,
                thread: atomics.warp as usize * WARP + lane,
                order: atomics.order,
                scope: atomics.scope,
                wrote: atomics.wrote >> lane & 1 == 1,
            };
            history.releases.synchronise(&atomic, &mut self.clocks, &mut self.block_releases);
        }
    }

    fn meet_in(
        &self,
        history: &mut AccessHistory,
        request: &Request<'_>,
    ) -> Result<(), (u32, Conflict)> {
        let first = request.warp as usize * WARP;
        let (clocks, block) = (&self.clocks, self.block);
        let exclusive = self.launch.kernel.buffers[request.buffer].exclusive;
        for &(word, lanes) in request.groups.as_slice() {
            let order = || turns(lanes, request.reversed);
            for (offset, lane) in (0..request.width).flat_map(|o| order().map(move |l| (o, l))) {
                let at = ElementId { buffer: request.buffer, element: word + offset };
                let thread = first + lane;
                let (on, touch) = (request.kind.timeline(), request.kind.touch());
                let access = Access { clocks, block, thread, on, touch, exclusive };
                let earlier = history.access(at, &access);
                earlier
                    .map_err(|earlier| (word, Conflict { lane: lane as u32, offset, earlier }))?;
            }
        }
        Ok(())
    }
}

impl Request<'_> {
    fn check<'a>(&self, clocks: &'a Clocks, block: u32) -> Check<'a> {
        Check::new(clocks, block, self.warp, self.kind.timeline(), self.kind.writes())
    }
}

impl Observer for Race<'_> {
    fn begin(&mut self, cluster: u32) {
        self.block = cluster;
        self.clocks = Clocks::new(self.model, self.threads);
        self.gathered.clear();
        let synchronising = self.code.atomics.contains(&true);
        self.block_releases.begin(if synchronising { self.clocks.all().len() } else { 0 });
        self.history.clear();
        self.shared.reset(self.pages());
        self.global.reset();
    }

    #[inline]
    fn access(&mut self, request: &Request<'_>) -> Result<(), BoxedTrap> {
        match (request.region.space, &self.between) {
            (Space::Register, _) => {}
            (Space::Shared, _) if self.code.atomics[request.buffer] => self.meeting(request)?,
            (Space::Shared, _) => {
                let check = request.check(&self.clocks, self.block);
                for &(word, lanes) in request.groups.as_slice() {
                    let at = (request.region.shadow + word) as usize;
                    check
                        .access(&mut self.shared, at, request.width, lanes)
                        .map_err(|c| self.report(request, word, &c))?;
                }
            }
            (Space::Global, InterBlock::Synchronising(_)) => {
                // Buffers that are never written cannot race.
                if self.code.stored[request.buffer] {
                    self.meeting(request)?;
                }
            }
            (Space::Global, &InterBlock::Isolated(grid)) if grid.watches(request.buffer) => {
                let check = request.check(&self.clocks, self.block);
                for &(word, lanes) in request.groups.as_slice() {
                    let thread = request.warp * WARP as u32 + lanes.trailing_zeros();
                    let on = request.kind.timeline();
                    let stmt = request.stmt;
                    let (block, thread) = self.launch.whereabouts(self.block, thread);
                    let touch = grid::GridAccess { block, thread, stmt, on };
                    for word in word..word + request.width {
                        let (shadow, at) = self.global.word(request.buffer, word);
                        check
                            .access(shadow, at, 1, lanes)
                            .map_err(|c| self.report(request, word, &c))?;
                        grid.touch(request.buffer, word as usize, request.kind.writes(), touch);
                    }
                }
            }
            (Space::Global, InterBlock::Isolated(_)) => {}
        }
        Ok(())
    }

    fn sync(&mut self, sync: Sync<'_>) {
        let threads = |warp: u32| warp as usize * WARP..(warp as usize + 1) * WARP;
        let lane = |warp: u32, lane: usize| warp as usize * WARP + lane;
        match sync {
            Sync::Cluster => self.clocks.meet(self.clocks.all()),
            Sync::Block(rank) => {
                let first = rank as usize * self.threads_of_block;
                self.clocks.meet(first..first + self.threads_of_block);
            }
            Sync::Warp(warp) => self.clocks.meet(threads(warp)),
            Sync::Arrive { barrier, warp } => {
                let gathered = self.gathered.entry(barrier).or_default();
                self.clocks.give(threads(warp), gathered);
            }
            Sync::Complete { barrier, warps } => {
                let gathered = self.gathered.remove(&barrier).unwrap_or_default();
                let takers: Vec<_> = warps.iter().map(|&warp| threads(warp)).collect();
                self.clocks.take(&self.model.barrier, &takers, gathered);
            }
            Sync::Atomic(atomics) => self.synchronise(atomics),
            Sync::Fence { warp, mask, scope } => {
                let threads = lanes_of(mask).map(|l| lane(warp, l));
                self.block_releases.fence(&mut self.clocks, self.block, threads, scope);
            }
            Sync::Commit { warp, mask } => {
                for thread in lanes_of(mask).map(|l| lane(warp, l)) {
                    self.model.commit.iter().for_each(|&of| self.clocks.close(thread, of));
                }
            }
            Sync::Wait { warp, mask, pending } => {
                for thread in lanes_of(mask).map(|l| lane(warp, l)) {
                    self.clocks.wait(&self.model.wait, thread, pending);
                }
            }
        }
    }
}
