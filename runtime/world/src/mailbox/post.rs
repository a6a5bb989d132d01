//! What the ranks of one process share: their inboxes, what is under way, and who waits for whom.

use super::delivery::{Delivery, Fault, FaultKind, Random};
use super::{MOMENT, PATIENCE};
use crate::channel::{RankLoss, Tag, last_in_chain};
use crate::error::LossReason;
use crate::inbox::{Inbox, Next};
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// From whom, to whom, under which tag.
pub(super) type Route = (usize, usize, Tag);

/// What the ranks share, behind one lock: who waits for whom has to be seen as a whole.
#[derive(Debug)]
pub(super) struct Post {
    state: Mutex<PostState>,
    /// By rank, whose thread waits for it.
    changed: Vec<Condvar>,
    /// By rank, how often something has changed for it: for those who look out, without the lock.
    news: Vec<AtomicU64>,
    /// Whether ranks look out before they sleep.
    look_out: bool,
}

#[derive(Debug)]
pub(super) struct PostState {
    /// What is visible, by rank.
    inboxes: Vec<Inbox>,
    /// What is not, in the order in which it was sent.
    under_way: Vec<(Route, Vec<u8>)>,
    /// What each rank is blocked for. What becomes visible to it ends that, before its thread knows.
    waits: Vec<Option<Route>>,
    /// How many calls each rank has made.
    calls: Vec<u64>,
    faults: Vec<Fault>,
    shuffles: bool,
    random: Random,
}

impl PostState {
    /// The first rank that was lost.
    pub(super) fn broken(&self) -> Option<&RankLoss> {
        self.inboxes.first()?.broken()
    }

    /// Whether a rank has left.
    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.inboxes.first().is_some_and(|inbox| inbox.has_left(rank))
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Counts a call of a rank: what goes wrong at it.
    pub(super) fn call(&mut self, rank: usize) -> Vec<FaultKind> {
        let call = self.calls[rank];
        self.calls[rank] += 1;
        let now = self.faults.iter().filter(|fault| (fault.rank, fault.call) == (rank, call));
        now.map(|fault| fault.kind.clone()).collect()
    }

    fn is_under_way(&self, channel: Route) -> bool {
        self.under_way.iter().any(|(other, _)| *other == channel)
    }

    /// Whether every rank that has not left waits for a message.
    fn all_wait(&self) -> bool {
        let waits = |(rank, wait): (usize, &Option<Route>)| wait.is_some() || self.has_left(rank);
        self.waits.iter().enumerate().all(waits)
    }

    /// Who keeps one waiting that waits for a rank.
    fn cause(&self, of: usize) -> usize {
        let waits = |rank: usize| self.waits[rank].filter(|channel| !self.is_under_way(*channel));
        last_in_chain(of, self.waits.len(), |rank| waits(rank).map(|(next, ..)| next))
    }

    /// Those that wait in a ring with one that waits, each for the next, and for nothing that is under way.
    fn ring(&self, first: usize) -> Option<Vec<Route>> {
        let mut ring: Vec<Route> = Vec::new();
        let mut rank = first;
        loop {
            let channel = self.waits[rank]?;
            if self.is_under_way(channel) || ring.len() > self.waits.len() {
                return None;
            }
            ring.push(channel);
            rank = channel.0;
            if rank == first {
                return Some(ring);
            }
        }
    }
}

/// Who waits for whom, from the lowest rank on.
fn deadlock(mut ring: Vec<Route>) -> RankLoss {
    let lowest = ring.iter().enumerate().min_by_key(|(_, (_, rank, _))| *rank);
    let (place, rank) = lowest.map_or((0, 0), |(place, (_, rank, _))| (place, *rank));
    ring.rotate_left(place);
    let who = |(from, rank, tag): &Route| format!("rank {rank} for rank {from} ({tag})");
    let text = ring.iter().map(who).collect::<Vec<_>>().join(", ");
    RankLoss { rank, why: LossReason::Deadlock(text) }
}

impl Post {
    pub(super) fn new(ranks: usize, delivery: Delivery, look_out: bool) -> Self {
        let state = PostState {
            inboxes: (0..ranks).map(|rank| Inbox::new(rank, ranks)).collect(),
            under_way: Vec::new(),
            waits: vec![None; ranks],
            calls: vec![0; ranks],
            faults: delivery.faults,
            shuffles: delivery.seed.is_some(),
            random: Random::new(delivery.seed.unwrap_or(0)),
        };
        Self {
            state: Mutex::new(state),
            changed: (0..ranks).map(|_| Condvar::new()).collect(),
            news: (0..ranks).map(|_| AtomicU64::new(0)).collect(),
            look_out,
        }
    }

    pub(super) fn ranks(&self) -> usize {
        self.changed.len()
    }

    /// A thread that panics in here leaves a state that is whole: nothing in here calls what could.
    pub(super) fn lock(&self) -> MutexGuard<'_, PostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A rank is lost. The first one that was.
    pub(super) fn lose(&self, state: &mut PostState, broken: RankLoss) -> RankLoss {
        for inbox in &mut state.inboxes {
            inbox.lose(broken.clone());
        }
        state.under_way.clear();
        (0..self.ranks()).for_each(|rank| self.tell(rank));
        state.broken().cloned().unwrap_or(broken)
    }

    /// A rank leaves.
    pub(super) fn leave(&self, state: &mut PostState, rank: usize) {
        for inbox in &mut state.inboxes {
            inbox.leave(rank);
        }
        (0..self.ranks()).for_each(|rank| self.tell(rank));
    }

    /// A message is under way, and others, or it, become visible.
    pub(super) fn send(&self, state: &mut PostState, channel: Route, bytes: Vec<u8>) {
        state.under_way.push((channel, bytes));
        if !state.shuffles {
            self.deliver(state);
            return;
        }
        while !state.under_way.is_empty() && state.random.below(3) != 0 {
            self.deliver(state);
        }
        // One that waits for it is to know that it is under way.
        self.tell(channel.1);
    }

    /// Something has changed for a rank.
    fn tell(&self, rank: usize) {
        self.news[rank].fetch_add(1, Ordering::Release);
        self.changed[rank].notify_all();
    }

    /// Looks out until something changes for a rank, for a moment.
    fn watch<'s>(
        &'s self,
        rank: usize,
        state: MutexGuard<'s, PostState>,
    ) -> MutexGuard<'s, PostState> {
        let seen = self.news[rank].load(Ordering::Acquire);
        drop(state);
        let end = Instant::now() + MOMENT;
        while self.news[rank].load(Ordering::Acquire) == seen && Instant::now() < end {
            hint::spin_loop();
        }
        self.lock()
    }

    /// One of the messages under way becomes visible.
    fn deliver(&self, state: &mut PostState) {
        let drawn = state.random.below(state.under_way.len());
        let Some((channel, _)) = state.under_way.get(drawn) else {
            return;
        };
        // The first of its tag.
        let first = state.under_way.iter().position(|(other, _)| other == channel);
        let (channel, bytes) = state.under_way.remove(first.unwrap_or(drawn));
        let (from, to, tag) = channel;
        state.inboxes[to].push(from, tag, bytes);
        if state.waits[to] == Some(channel) {
            state.waits[to] = None;
            self.tell(to);
        }
    }

    /// The next message of a channel, by the deadline.
    pub(super) fn take<'s>(
        &'s self,
        mut state: MutexGuard<'s, PostState>,
        channel: Route,
        began: Instant,
        deadline: Instant,
    ) -> Result<Vec<u8>, RankLoss> {
        let (from, rank, tag) = channel;
        let mut waited = false;
        let mut looks_out = self.look_out;
        loop {
            let next = state.inboxes[rank].next(from, tag);
            state.waits[rank] = None;
            let under_way = state.is_under_way(channel);
            let now = Instant::now();
            match next {
                Next::Message(bytes) => return Ok(bytes),
                Next::RankLoss(broken) => return Err(broken),
                Next::Left if !under_way => {
                    return Err(
                        self.lose(&mut state, RankLoss { rank: from, why: LossReason::Finished })
                    );
                }
                Next::Left | Next::Nothing => {}
            }
            if under_way && (waited || now >= deadline) {
                self.deliver(&mut state);
                continue;
            }
            if now >= deadline {
                let late = LossReason::Late(now.duration_since(began));
                let rank = state.cause(from);
                return Err(self.lose(&mut state, RankLoss { rank, why: late }));
            }
            state.waits[rank] = Some(channel);
            if let Some(ring) = state.ring(rank) {
                return Err(self.lose(&mut state, deadlock(ring)));
            }
            while state.all_wait() && !state.under_way.is_empty() {
                self.deliver(&mut state);
            }
            if state.waits[rank].is_none() {
                continue;
            }
            if looks_out {
                looks_out = false;
                state = self.watch(rank, state);
                continue;
            }
            let time = deadline.duration_since(now);
            let time = if under_way { PATIENCE.min(time) } else { time };
            let woken = self.changed[rank].wait_timeout(state, time);
            let (guard, timeout) = woken.unwrap_or_else(PoisonError::into_inner);
            state = guard;
            // One whose time was over while its message was under way goes and gets it.
            waited |= under_way && timeout.timed_out();
        }
    }
}
