//! Vector clocks: the epochs that each thread of a block knows to be complete.
//!
//! An agent is a timeline of a thread (see [`crate::race::model`]). Agents are numbered by
//! timeline, then by thread, so the agents of a warp's timeline form a *row* of 32. The epoch of an
//! ordinary access is the thread's clock, which ticks when the thread releases its accesses to
//! other threads. The epoch of an asynchronous access is the number of its group.
//!
//! Invariant: no thread knows more of another thread's timeline than that thread itself. A thread's
//! knowledge of itself is therefore stored separately from its acquired clock, and threads that
//! have met share one [`AcquiredClock`].

use crate::mask::WARP;
use crate::race::model::{AcquireRule, AwaitRule, MeetRule, Model, Timeline, WAITS};
use crate::race::vector_clock::{
    AcquiredClock, BarrierClock, BlockClocks, JoinedClock, PendingRelease, ReleaseClock,
    VectorClock, raise,
};
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

/// Vector clocks of a block.
pub(crate) struct Clocks {
    model: &'static Model,
    /// Number of threads, rounded up to whole warps. The additional threads never act.
    threads: usize,
    /// Acquired clock of each thread, for each proxy view.
    acquired: Vec<Rc<AcquiredClock>>,
    /// Own clock of each thread. Epochs of accesses start at 1.
    own: Vec<u32>,
    /// Number of closed groups for each timeline and thread. `ticked` contains these numbers at the
    /// last tick of the thread's clock.
    closed: Vec<u32>,
    ticked: Vec<u32>,
    /// Last epoch of each agent that its own thread knows to be complete, for each proxy view.
    known: Vec<u32>,
    /// For each proxy view and warp, true if all lanes have the same acquired clock and own clock.
    alike: Vec<bool>,
}

impl Clocks {
    pub(crate) fn new(model: &'static Model, threads: u32) -> Self {
        let threads = (threads as usize).next_multiple_of(WARP);
        let agents = model.timelines.len() * threads;
        let here = VectorClock::new(vec![0; agents]);
        let nothing = Rc::new(AcquiredClock { here, ..AcquiredClock::default() });
        Self {
            model,
            threads,
            acquired: vec![nothing; model.proxies * threads],
            own: vec![1; threads],
            closed: vec![0; agents],
            ticked: vec![0; agents],
            known: vec![0; model.proxies * agents],
            alike: vec![true; model.proxies * threads / WARP],
        }
    }

    /// Number of rows of 32 agents.
    pub(crate) fn rows(&self) -> usize {
        self.model.timelines.len() * self.threads / WARP
    }

    /// Row of a warp's timeline.
    #[inline]
    pub(crate) fn row(&self, warp: u32, of: Timeline) -> usize {
        of.0 * (self.threads / WARP) + warp as usize
    }

    /// Thread and timeline of an agent.
    pub(crate) fn thread_of(&self, agent: u32) -> (u32, Timeline) {
        let threads = self.threads as u32;
        (agent % threads, Timeline((agent / threads) as usize))
    }

    /// Agent of a thread's timeline.
    pub(crate) fn agent(&self, thread: usize, of: Timeline) -> u32 {
        (of.0 * self.threads + thread) as u32
    }

    /// Epoch of a thread's current accesses on a timeline.
    #[inline(always)]
    pub(crate) fn epoch(&self, thread: usize, of: Timeline) -> u32 {
        match self.model.timelines[of.0].grouped {
            true => self.closed[of.0 * self.threads + thread] + 1,
            false => self.own[thread],
        }
    }

    /// Timeline of an agent. Timeline 0 is the most frequent, and needs no division.
    #[inline]
    fn timeline(&self, agent: usize) -> usize {
        if agent < self.threads { 0 } else { agent / self.threads }
    }

    /// Last epoch of an agent that its own thread knows to be complete, in a proxy view. A timeline
    /// without groups executes in order, so all of its epochs count if it uses the same proxy.
    fn own_known(&self, view: usize, agent: usize) -> u32 {
        let track = self.model.timelines[self.timeline(agent)];
        match !track.grouped && track.proxy == view {
            true => u32::MAX,
            false => self.known[view * self.closed.len() + agent],
        }
    }

    /// Returns true if the agent's own thread has waited for this epoch.
    pub(crate) fn has_awaited(&self, agent: u32, epoch: u32) -> bool {
        self.own_known(0, agent as usize) >= epoch
    }

    /// Returns true if an epoch of an agent happens before the next access of a thread on a
    /// timeline.
    #[inline]
    pub(crate) fn ordered(&self, thread: usize, on: Timeline, agent: usize, epoch: u32) -> bool {
        let view = self.model.timelines[on.0].proxy;
        if agent == thread + self.timeline(agent) * self.threads {
            self.own_known(view, agent) >= epoch
        } else {
            self.acquired[view * self.threads + thread].here.covers(agent as u32, epoch)
        }
    }

    /// Returns true if an epoch of an agent in another block happens before the next access of a
    /// thread.
    pub(crate) fn knows(
        &self,
        thread: usize,
        on: Timeline,
        block: u32,
        agent: u32,
        epoch: u32,
    ) -> bool {
        let view = self.model.timelines[on.0].proxy;
        let blocks = &self.acquired[view * self.threads + thread].blocks;
        blocks.get(block).is_some_and(|acquired| acquired.covers(agent, epoch))
    }

    /// Acquired clock and own clock, if all lanes of a warp have the same ones in the proxy view of
    /// a timeline. `None` if the lanes differ.
    #[inline]
    pub(crate) fn common(&self, warp: u32, on: Timeline) -> Option<(&VectorClock, u32)> {
        let view = self.model.timelines[on.0].proxy * self.threads;
        let first = warp as usize * WARP;
        let alike = self.alike[view / WARP + warp as usize];
        alike.then(|| (&self.acquired[view + first].here, self.own[first]))
    }

    /// Releases: adds the knowledge and accesses of arriving threads to a barrier clock. The clocks
    /// of these threads tick, so their later accesses are not included.
    pub(crate) fn give(&mut self, givers: Range<usize>, into: &mut BarrierClock) {
        for view in 0..self.model.proxies {
            self.give_view(view, givers.clone(), into);
        }
        self.tick(givers);
    }

    fn give_view(&self, view: usize, givers: Range<usize>, into: &mut BarrierClock) {
        let acquired = &self.acquired[view * self.threads..][givers.clone()];
        let (Some(first), agents) = (acquired.first(), self.closed.len()) else { return };
        match into.0.get_mut(view) {
            Some(sum) => sum.add(first.here.agents(), &first.blocks),
            None => into.0.push(JoinedClock::new(first)),
        }
        let sum = &mut into.0[view];
        for pair in acquired.windows(2) {
            if !Rc::ptr_eq(&pair[0], &pair[1]) {
                sum.add(pair[1].here.agents(), &pair[1].blocks);
            }
        }
        for (t, track) in self.model.timelines.iter().enumerate() {
            let at = t * self.threads;
            let of = at + givers.start..at + givers.end;
            let known = match !track.grouped && track.proxy == view {
                true => &self.own[givers.clone()],
                false => &self.known[view * agents..][of.clone()],
            };
            if self.is_own(view) {
                sum.agents[of].copy_from_slice(known);
            } else {
                raise(&mut sum.agents[of], known);
            }
        }
    }

    /// Returns true if no thread can know more of a thread's timelines than the thread itself, in
    /// this view. With several proxies another thread can, because it may have merged the views.
    fn is_own(&self, view: usize) -> bool {
        self.model.timelines.iter().all(|track| track.proxy == view)
    }

    /// Updates a thread's knowledge of its own timelines from its acquired clock.
    fn learn(&mut self, view: usize, thread: usize) {
        let agents = self.closed.len();
        let acquired = &self.acquired[view * self.threads + thread];
        for agent in (thread..agents).step_by(self.threads) {
            let known = &mut self.known[view * agents + agent];
            *known = (*known).max(acquired.here.agents()[agent]);
        }
    }

    /// Returns true if the agent's own thread closed this group after the last tick of its clock.
    /// Then no other thread is ordered even after the issue of the group.
    pub(crate) fn has_just_closed(&self, agent: u32, epoch: u32) -> bool {
        let agent = agent as usize;
        self.ticked[agent] < epoch && epoch <= self.closed[agent]
    }

    fn tick(&mut self, threads: Range<usize>) {
        for (t, _) in self.model.timelines.iter().enumerate().filter(|(_, track)| track.grouped) {
            let of = t * self.threads + threads.start..t * self.threads + threads.end;
            self.ticked[of.clone()].copy_from_slice(&self.closed[of]);
        }
        let own = &mut self.own[threads];
        let next = own.iter().copied().fold(0, u32::max) + 1;
        own.fill(next);
    }

    /// Acquires: replaces the clocks of `takers` by the gathered clock. The takers have contributed
    /// to this clock, so it includes everything that they knew.
    pub(crate) fn take(
        &mut self,
        rule: &MeetRule,
        takers: &[Range<usize>],
        mut gathered: BarrierClock,
    ) {
        if rule.across {
            bring_together(rule.views, &mut gathered);
        }
        for (view, sum) in gathered.0.into_iter().enumerate() {
            if !rule.views.contains(&view) {
                continue;
            }
            let known = Rc::new(sum.known());
            let of = &mut self.acquired[view * self.threads..][..self.threads];
            for taker in takers {
                of[taker.clone()].iter_mut().for_each(|slot| *slot = Rc::clone(&known));
            }
            if !self.is_own(view) {
                takers.iter().cloned().flatten().for_each(|thread| self.learn(view, thread));
            }
        }
        let warps = self.threads / WARP;
        for taker in takers {
            if taker.start.is_multiple_of(WARP) && taker.end.is_multiple_of(WARP) {
                // Lanes that have met know the same, and their clocks have ticked together.
                let of = taker.start / WARP..taker.end / WARP;
                rule.views.iter().for_each(|v| self.alike[v * warps..][of.clone()].fill(true));
            } else {
                self.compare(taker.clone());
            }
        }
    }

    /// Synchronises threads at a barrier at which no other threads take part.
    pub(crate) fn meet(&mut self, threads: Range<usize>) {
        let mut gathered = BarrierClock::default();
        self.give(threads.clone(), &mut gathered);
        self.take(&self.model.barrier, &[threads], gathered);
    }

    pub(crate) fn all(&self) -> Range<usize> {
        0..self.threads
    }

    /// Closes a thread's group on a timeline.
    pub(crate) fn close(&mut self, thread: usize, of: Timeline) {
        self.closed[of.0 * self.threads + thread] += 1;
    }

    /// Records a wait, which forms a group of its own. Returns the agent and epoch by which other
    /// threads can know of the wait.
    pub(crate) fn waits(&mut self, rule: &AwaitRule, thread: usize) -> (u32, u32) {
        self.close(thread, WAITS);
        self.wait(rule, thread, 0);
        (self.agent(thread, WAITS), self.closed[WAITS.0 * self.threads + thread])
    }

    /// Completes all groups of a thread except the `pending` newest.
    pub(crate) fn wait(&mut self, rule: &AwaitRule, thread: usize, pending: u32) {
        for of in rule.over {
            let agent = of.0 * self.threads + thread;
            let over = self.closed[agent].saturating_sub(pending);
            for view in rule.views {
                let known = &mut self.known[view * self.closed.len() + agent];
                *known = (*known).max(over);
            }
        }
    }

    /// Returns the clock that a thread of `block` releases to a word. It consists of the thread's
    /// knowledge and all its accesses.
    pub(crate) fn release(&mut self, block: u32, thread: usize) -> ReleaseClock {
        let pending_release = self.pending_release(thread);
        self.compare(thread..thread + 1);
        pending_release.left(block).clone()
    }

    /// Returns a clock that a thread may release later, with its current knowledge and all its
    /// accesses. The thread's clock ticks, so the caller must call [`Self::compare`] for its warp.
    pub(crate) fn pending_release(&mut self, thread: usize) -> PendingRelease {
        let agents = self.closed.len();
        let learnt =
            (0..self.model.proxies).map(|view| &self.acquired[view * self.threads + thread]);
        let own = (0..self.model.proxies).map(|view| {
            let own = self.model.timelines.iter().enumerate().map(|(t, track)| {
                let agent = t * self.threads + thread;
                match !track.grouped && track.proxy == view {
                    true => (agent, self.own[thread]),
                    false => (agent, self.known[view * agents + agent]),
                }
            });
            own.collect()
        });
        let (learnt, own) = (learnt.cloned().collect(), own.collect());
        let pending_release = PendingRelease { learnt, own, left: OnceCell::new() };
        self.tick(thread..thread + 1);
        pending_release
    }

    /// Acquires a released clock for a thread of `block`.
    pub(crate) fn acquire(&mut self, block: u32, thread: usize, left: &ReleaseClock) {
        for &view in self.model.acquire.views {
            let slot = &mut self.acquired[view * self.threads + thread];
            let blocks = slot.blocks.and(&left.0[view]);
            if blocks.is(&slot.blocks) {
                // This clock contains nothing new.
                continue;
            }
            let mut agents = slot.here.agents().to_vec();
            blocks.get(block).iter().for_each(|own| raise(&mut agents, own.agents()));
            *slot = Rc::new(AcquiredClock { here: VectorClock::new(agents), blocks });
            if !self.is_own(view) {
                self.learn(view, thread);
            }
            self.compare(thread..thread + 1);
        }
    }

    /// Last epoch of an agent that a thread has acquired, in the view of ordinary accesses.
    pub(crate) fn learnt(&self, thread: usize, agent: u32) -> u32 {
        self.acquired[thread].here.agents()[agent as usize]
    }

    /// Acquired clock, if all lanes of a warp have the same one in the proxy view of a timeline.
    /// `None` if the lanes differ. Their own clocks may differ.
    pub(crate) fn acquired_by_all(&self, warp: u32, on: Timeline) -> Option<&VectorClock> {
        let view = self.model.timelines[on.0].proxy * self.threads;
        let lanes = &self.acquired[view + warp as usize * WARP..][..WARP];
        let alike = lanes.windows(2).all(|pair| Rc::ptr_eq(&pair[0], &pair[1]));
        lanes.first().filter(|_| alike).map(|known| &known.here)
    }

    /// Releases a thread's knowledge and accesses at an arrival without a wait.
    pub(crate) fn arrive(&mut self, thread: usize, into: &mut BarrierClock) {
        self.give(thread..thread + 1, into);
        self.compare(thread..thread + 1);
    }

    /// Releases only what a thread knows of asynchronous work, at a relaxed arrival.
    pub(crate) fn arrive_relaxed(&mut self, thread: usize, into: &mut BarrierClock) {
        let mut all = BarrierClock::default();
        self.give(thread..thread + 1, &mut all);
        for (view, sum) in all.0.iter_mut().enumerate() {
            for (of, track) in sum.agents.chunks_mut(self.threads).zip(self.model.timelines) {
                if !track.relaxed {
                    of.fill(0);
                }
            }
            sum.blocks = BlockClocks::default();
            match into.0.get_mut(view) {
                Some(known) => raise(&mut known.agents, &sum.agents),
                None => into.0.push(sum.clone()),
            }
        }
        self.compare(thread..thread + 1);
    }

    /// Synchronises a thread with itself, which merges its proxy views.
    pub(crate) fn meet_itself(&mut self, rule: &MeetRule, thread: usize) {
        let mut gathered = BarrierClock::default();
        self.give(thread..thread + 1, &mut gathered);
        let itself = thread..thread + 1;
        self.take(rule, std::slice::from_ref(&itself), gathered);
    }

    /// Acquires a barrier clock, for threads of one warp.
    pub(crate) fn find(
        &mut self,
        rule: &AcquireRule,
        threads: impl Iterator<Item = usize> + Clone,
        gathered: &BarrierClock,
    ) {
        for &view in rule.views {
            let Some(sum) = gathered.0.get(view) else { continue };
            self.update(view, threads.clone(), |known| {
                let mut agents = known.here.agents().to_vec();
                raise(&mut agents, &sum.agents);
                AcquiredClock {
                    here: VectorClock::new(agents),
                    blocks: known.blocks.and(&sum.blocks),
                }
            });
        }
    }

    /// Completes all groups of a warp except the `pending` newest. The groups belong to the warp's
    /// first lane, and all lanes acquire the completion.
    pub(crate) fn wait_together(&mut self, rule: &AwaitRule, warp: u32, pending: u32) {
        let first = warp as usize * WARP;
        for of in rule.over {
            let agent = of.0 * self.threads + first;
            let over = self.closed[agent].saturating_sub(pending);
            for &view in rule.views {
                self.update(view, first..first + WARP, |known| {
                    let mut agents = known.here.agents().to_vec();
                    agents[agent] = agents[agent].max(over);
                    AcquiredClock { here: VectorClock::new(agents), blocks: known.blocks.clone() }
                });
            }
        }
    }

    /// Changes the acquired clocks of threads of a warp in a view. Threads that shared a clock
    /// share the new one as well.
    fn update(
        &mut self,
        view: usize,
        threads: impl Iterator<Item = usize>,
        change: impl Fn(&AcquiredClock) -> AcquiredClock,
    ) {
        let mut changed: Vec<[Rc<AcquiredClock>; 2]> = Vec::new();
        let mut warp = None;
        for thread in threads {
            let slot = &mut self.acquired[view * self.threads + thread];
            let now = match changed.iter().find(|[before, _]| Rc::ptr_eq(before, slot)) {
                Some([_, now]) => Rc::clone(now),
                None => {
                    let now = Rc::new(change(slot));
                    changed.push([Rc::clone(slot), Rc::clone(&now)]);
                    now
                }
            };
            *slot = now;
            if !self.is_own(view) {
                self.learn(view, thread);
            }
            warp = Some(thread);
        }
        warp.into_iter().for_each(|thread| self.compare(thread..thread + 1));
    }

    /// Recomputes [`Self::alike`] for the warps of these threads.
    pub(crate) fn compare(&mut self, threads: Range<usize>) {
        for view in 0..self.model.proxies {
            for warp in threads.start / WARP..threads.end.div_ceil(WARP) {
                let lanes = warp * WARP..(warp + 1) * WARP;
                let acquired = self.acquired[view * self.threads..][lanes.clone()].windows(2);
                let own = self.own[lanes].windows(2);
                let warps = self.threads / WARP;
                self.alike[view * warps + warp] = acquired
                    .fold(true, |same, w| same & Rc::ptr_eq(&w[0], &w[1]))
                    && own.fold(true, |same, w| same & (w[0] == w[1]));
            }
        }
    }
}

/// Merges the given views of a clock.
fn bring_together(views: &[usize], gathered: &mut BarrierClock) {
    let Some((&first, others)) = views.split_first() else { return };
    let mut sum = gathered.0[first].clone();
    for &view in others {
        sum.add(&gathered.0[view].agents, &gathered.0[view].blocks);
    }
    views.iter().for_each(|&view| gathered.0[view] = sum.clone());
}
