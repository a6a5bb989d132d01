//! Shared state of the ranks of one process: inboxes, messages under way, and waiting ranks.

use super::delivery::{Delivery, Fault, FaultKind, Random};
use super::{MOMENT, PATIENCE};
use crate::channel::{RankLoss, Tag, last_in_chain};
use crate::error::LossReason;
use crate::inbox::{Inbox, Next};
use std::hint;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Sender, receiver and tag of a message.
pub(super) type Route = (usize, usize, Tag);

/// Shared state of the ranks. One lock protects all of it, because the search for deadlocks needs a
/// consistent state of all waits.
#[derive(Debug)]
pub(super) struct Post {
    state: Mutex<PostState>,
    /// Wakes the thread of each rank.
    changed: Vec<Condvar>,
    /// Count of changes for each rank, which spinning ranks read without the lock.
    news: Vec<AtomicU64>,
    /// True if ranks spin before they sleep.
    look_out: bool,
}

#[derive(Debug)]
pub(super) struct PostState {
    inboxes: Vec<Inbox>,
    /// Messages that are not visible yet, in the order in which they were sent.
    under_way: Vec<(Route, Vec<u8>)>,
    /// Route for which each rank waits. A delivery clears the route before the rank's thread wakes.
    waits: Vec<Option<Route>>,
    /// Number of calls by each rank.
    calls: Vec<u64>,
    faults: Vec<Fault>,
    shuffles: bool,
    random: Random,
}

impl PostState {
    pub(super) fn broken(&self) -> Option<&RankLoss> {
        self.inboxes.first()?.broken()
    }

    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.inboxes.first().is_some_and(|inbox| inbox.has_left(rank))
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Counts a call of a rank and returns its faults.
    pub(super) fn call(&mut self, rank: usize) -> Vec<FaultKind> {
        let call = self.calls[rank];
        self.calls[rank] += 1;
        let now = self.faults.iter().filter(|fault| (fault.rank, fault.call) == (rank, call));
        now.map(|fault| fault.kind.clone()).collect()
    }

    fn is_under_way(&self, channel: Route) -> bool {
        self.under_way.iter().any(|(other, _)| *other == channel)
    }

    /// Returns true if every rank that has not left waits for a message.
    fn all_wait(&self) -> bool {
        let waits = |(rank, wait): (usize, &Option<Route>)| wait.is_some() || self.has_left(rank);
        self.waits.iter().enumerate().all(waits)
    }

    /// Returns the rank that ultimately blocks the ranks that wait for `of`.
    fn cause(&self, of: usize) -> usize {
        let waits = |rank: usize| self.waits[rank].filter(|channel| !self.is_under_way(*channel));
        last_in_chain(of, self.waits.len(), |rank| waits(rank).map(|(next, ..)| next))
    }

    /// Returns the circle of waiting ranks that contains `first`, if none of the awaited messages
    /// is under way.
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

/// Describes a circle of waiting ranks, from the lowest rank on.
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

    /// Ignores poisoning: no code under the lock can panic halfway through a change.
    pub(super) fn lock(&self) -> MutexGuard<'_, PostState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a lost rank. Returns the first loss.
    pub(super) fn lose(&self, state: &mut PostState, broken: RankLoss) -> RankLoss {
        for inbox in &mut state.inboxes {
            inbox.lose(broken.clone());
        }
        state.under_way.clear();
        (0..self.ranks()).for_each(|rank| self.tell(rank));
        state.broken().cloned().unwrap_or(broken)
    }

    pub(super) fn leave(&self, state: &mut PostState, rank: usize) {
        for inbox in &mut state.inboxes {
            inbox.leave(rank);
        }
        (0..self.ranks()).for_each(|rank| self.tell(rank));
    }

    /// Sends a message. With a seed, some messages under way, perhaps this one, become visible.
    pub(super) fn send(&self, state: &mut PostState, channel: Route, bytes: Vec<u8>) {
        state.under_way.push((channel, bytes));
        if !state.shuffles {
            self.deliver(state);
            return;
        }
        while !state.under_way.is_empty() && state.random.below(3) != 0 {
            self.deliver(state);
        }
        // The receiver must learn that its message is under way.
        self.tell(channel.1);
    }

    /// Signals a change to a rank.
    fn tell(&self, rank: usize) {
        self.news[rank].fetch_add(1, Ordering::Release);
        self.changed[rank].notify_all();
    }

    /// Spins for at most [`MOMENT`] until something changes for a rank.
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

    /// Makes one randomly drawn message under way visible.
    fn deliver(&self, state: &mut PostState) {
        let drawn = state.random.below(state.under_way.len());
        let Some((channel, _)) = state.under_way.get(drawn) else {
            return;
        };
        // The first message of the drawn route, so that messages of a route keep their order.
        let first = state.under_way.iter().position(|(other, _)| other == channel);
        let (channel, bytes) = state.under_way.remove(first.unwrap_or(drawn));
        let (from, to, tag) = channel;
        state.inboxes[to].push(from, tag, bytes);
        if state.waits[to] == Some(channel) {
            state.waits[to] = None;
            self.tell(to);
        }
    }

    /// Takes the next message of a route, by the deadline.
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
            // If a rank waited its full time while its message was under way, it delivers the
            // message itself.
            waited |= under_way && timeout.timed_out();
        }
    }
}
