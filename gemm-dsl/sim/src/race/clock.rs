//! Vector clocks: what each thread of a block knows to be over.
//!
//! An agent is a timeline of a thread (see [`crate::race::model`]); agents are numbered by timeline, then
//! by thread, so that the agents of a warp's timeline are a *row* of 32. The epoch of an ordinary
//! access is the thread's clock, which ticks when the thread gives what it has done to others; the
//! epoch of an asynchronous one is the number of its group.
//!
//! Invariant: nobody knows more of a thread's timeline than the thread itself. So a thread's own
//! components are kept beside what it has learnt, and threads that have met share one [`AcquiredClock`].

use crate::mask::WARP;
use crate::race::model::{AcquireRule, AwaitRule, MeetRule, Model, Timeline, WAITS};
use crate::race::vector_clock::{
    AcquiredClock, BarrierClock, BlockClocks, JoinedClock, PendingRelease, ReleaseClock,
    VectorClock, raise,
};
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

/// The clocks of a block.
pub(crate) struct Clocks {
    model: &'static Model,
    /// Threads, rounded up to whole warps: those that do not exist never do anything.
    threads: usize,
    /// What each thread has learnt: of each proxy's view, of each thread.
    acquired: Vec<Rc<AcquiredClock>>,
    /// Each thread's own clock; epochs of accesses start at 1.
    own: Vec<u32>,
    /// Of each timeline and thread, the groups that are closed, and those that were when the thread's clock
    /// ticked last.
    closed: Vec<u32>,
    ticked: Vec<u32>,
    /// Of each proxy's view and each agent, what its own thread knows of it to be over.
    known: Vec<u32>,
    /// Of each proxy's view, of each warp, whether its lanes have seen the same and have the same clock.
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

    /// Rows of 32 agents.
    pub(crate) fn rows(&self) -> usize {
        self.model.timelines.len() * self.threads / WARP
    }

    /// The row of a timeline of a warp.
    #[inline]
    pub(crate) fn row(&self, warp: u32, of: Timeline) -> usize {
        of.0 * (self.threads / WARP) + warp as usize
    }

    /// The thread of an agent, and which of its timelines it is.
    pub(crate) fn thread_of(&self, agent: u32) -> (u32, Timeline) {
        let threads = self.threads as u32;
        (agent % threads, Timeline((agent / threads) as usize))
    }

    /// The agent that is a timeline of a thread.
    pub(crate) fn agent(&self, thread: usize, of: Timeline) -> u32 {
        (of.0 * self.threads + thread) as u32
    }

    /// The epoch of what a thread does now on a timeline.
    #[inline(always)]
    pub(crate) fn epoch(&self, thread: usize, of: Timeline) -> u32 {
        match self.model.timelines[of.0].grouped {
            true => self.closed[of.0 * self.threads + thread] + 1,
            false => self.own[thread],
        }
    }

    /// The number of an agent's timeline. Most ask for the first: that needs no division.
    #[inline]
    fn timeline(&self, agent: usize) -> usize {
        if agent < self.threads { 0 } else { agent / self.threads }
    }

    /// What an agent's own thread knows of it to be over, in the view of a proxy. Of what it does in
    /// order, and by the same way, that is everything.
    fn own_known(&self, view: usize, agent: usize) -> u32 {
        let track = self.model.timelines[self.timeline(agent)];
        match !track.grouped && track.proxy == view {
            true => u32::MAX,
            false => self.known[view * self.closed.len() + agent],
        }
    }

    /// Whether an agent's own thread has waited for one of its epochs.
    pub(crate) fn has_awaited(&self, agent: u32, epoch: u32) -> bool {
        self.own_known(0, agent as usize) >= epoch
    }

    /// Whether an epoch of an agent comes before what a thread does next on a timeline.
    #[inline]
    pub(crate) fn ordered(&self, thread: usize, on: Timeline, agent: usize, epoch: u32) -> bool {
        let view = self.model.timelines[on.0].proxy;
        if agent == thread + self.timeline(agent) * self.threads {
            self.own_known(view, agent) >= epoch
        } else {
            self.acquired[view * self.threads + thread].here.covers(agent as u32, epoch)
        }
    }

    /// Whether an epoch of an agent of another block comes before what a thread does next.
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

    /// What all lanes of a warp have seen, in the view that a timeline has, and their clock, where these
    /// are the same in all.
    #[inline]
    pub(crate) fn common(&self, warp: u32, on: Timeline) -> Option<(&VectorClock, u32)> {
        let view = self.model.timelines[on.0].proxy * self.threads;
        let first = warp as usize * WARP;
        let alike = self.alike[view / WARP + warp as usize];
        alike.then(|| (&self.acquired[view + first].here, self.own[first]))
    }

    /// Threads that arrive add what they have done and know, and their clocks tick: what they do next
    /// is no part of it.
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

    /// Whether nobody knows more of a thread's timelines than the thread, in a view. Where there are
    /// others, somebody else may have brought them together.
    fn is_own(&self, view: usize) -> bool {
        self.model.timelines.iter().all(|track| track.proxy == view)
    }

    /// A thread learns what others have found out of its own timelines.
    fn learn(&mut self, view: usize, thread: usize) {
        let agents = self.closed.len();
        let acquired = &self.acquired[view * self.threads + thread];
        for agent in (thread..agents).step_by(self.threads) {
            let known = &mut self.known[view * agents + agent];
            *known = (*known).max(acquired.here.agents()[agent]);
        }
    }

    /// Whether an agent's own thread has closed this group since its clock ticked last: nobody else can
    /// know even that what is in it has been issued.
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

    /// Threads take over what has been gathered. They are among those that gave it, so it holds all
    /// that each of them knew.
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
                // Lanes that have met know the same, and their clocks ticked together.
                let of = taker.start / WARP..taker.end / WARP;
                rule.views.iter().for_each(|v| self.alike[v * warps..][of.clone()].fill(true));
            } else {
                self.compare(taker.clone());
            }
        }
    }

    /// The threads meet at a barrier, and nobody else is waited for.
    pub(crate) fn meet(&mut self, threads: Range<usize>) {
        let mut gathered = BarrierClock::default();
        self.give(threads.clone(), &mut gathered);
        self.take(&self.model.barrier, &[threads], gathered);
    }

    /// All threads of the block.
    pub(crate) fn all(&self) -> Range<usize> {
        0..self.threads
    }

    /// A thread closes its group on a timeline.
    pub(crate) fn close(&mut self, thread: usize, of: Timeline) {
        self.closed[of.0 * self.threads + thread] += 1;
    }

    /// A thread waits, which is a group by itself: the agent and the epoch by which others know of it.
    pub(crate) fn waits(&mut self, rule: &AwaitRule, thread: usize) -> (u32, u32) {
        self.close(thread, WAITS);
        self.wait(rule, thread, 0);
        (self.agent(thread, WAITS), self.closed[WAITS.0 * self.threads + thread])
    }

    /// A thread waits for all but its `pending` newest groups.
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

    /// What a thread of block `block` leaves in a word: what it knows, and all that it has done.
    pub(crate) fn release(&mut self, block: u32, thread: usize) -> ReleaseClock {
        let pending_release = self.pending_release(thread);
        self.compare(thread..thread + 1);
        pending_release.left(block).clone()
    }

    /// What a thread may leave in words later: what it knows now, and all that it has done. Its clock ticks,
    /// so its warp is to be compared.
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

    /// A thread of block `block` takes over what others have left.
    pub(crate) fn acquire(&mut self, block: u32, thread: usize, left: &ReleaseClock) {
        for &view in self.model.acquire.views {
            let slot = &mut self.acquired[view * self.threads + thread];
            let blocks = slot.blocks.and(&left.0[view]);
            if blocks.is(&slot.blocks) {
                // It has found all that before.
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

    /// The last epoch of an agent that a thread has learnt to be over, in the view of statements.
    pub(crate) fn learnt(&self, thread: usize, agent: u32) -> u32 {
        self.acquired[thread].here.agents()[agent as usize]
    }

    /// What all lanes of a warp have seen, in the view that a timeline has, where that is the same in all.
    pub(crate) fn acquired_by_all(&self, warp: u32, on: Timeline) -> Option<&VectorClock> {
        let view = self.model.timelines[on.0].proxy * self.threads;
        let lanes = &self.acquired[view + warp as usize * WARP..][..WARP];
        let alike = lanes.windows(2).all(|pair| Rc::ptr_eq(&pair[0], &pair[1]));
        lanes.first().filter(|_| alike).map(|known| &known.here)
    }

    /// Threads arrive: they add what they have done and know, and do not wait.
    pub(crate) fn arrive(&mut self, thread: usize, into: &mut BarrierClock) {
        self.give(thread..thread + 1, into);
        self.compare(thread..thread + 1);
    }

    /// The same of what they know of asynchronous work alone.
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

    /// A thread meets itself.
    pub(crate) fn meet_itself(&mut self, rule: &MeetRule, thread: usize) {
        let mut gathered = BarrierClock::default();
        self.give(thread..thread + 1, &mut gathered);
        let itself = thread..thread + 1;
        self.take(rule, std::slice::from_ref(&itself), gathered);
    }

    /// Threads of a warp take over what others have gathered.
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

    /// A warp waits for all but its `pending` newest groups, which are its first lane's: all its lanes know then.
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

    /// Changes what threads of a warp know in a view. Those that knew the same do so again.
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

    /// Finds out again which of the warps that the threads belong to are alike.
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

/// What is known in one view becomes known in the others.
fn bring_together(views: &[usize], gathered: &mut BarrierClock) {
    let Some((&first, others)) = views.split_first() else { return };
    let mut sum = gathered.0[first].clone();
    for &view in others {
        sum.add(&gathered.0[view].agents, &gathered.0[view].blocks);
    }
    views.iter().for_each(|&view| gathered.0[view] = sum.clone());
}
