//! Vector clocks: what each thread of a block knows of all agents.
//!
//! Agents are the threads and, for each thread, the asynchronous copies it issues. A thread's own
//! clock ticks when it releases, that is at each synchronisation it takes part in; a copy's epoch
//! is the number of its commit group. Agent `a` is thread `a` for `a < threads`, and the copies of
//! thread `a - threads` beyond.
//!
//! Invariant: nobody knows more of a thread than the thread itself, nor more of its copies than it
//! has waited for. A join therefore takes its members' own components, and of everyone else the
//! most that any member has seen. A synchronisation object of another kind needs only a join over
//! other members.

use super::lanes::WARP;
use std::ops::Range;
use std::rc::Rc;

/// What a thread has learnt of others by synchronisation.
pub(super) struct Seen {
    /// For each agent, the last epoch known to be over.
    agents: Box<[u32]>,
    /// For each row of 32 agents, the least of those.
    rows: Box<[u32]>,
}

impl Seen {
    /// Whether an epoch of an agent is known to be over. A thread knows more of itself.
    #[inline]
    pub(super) fn covers(&self, agent: u32, epoch: u32) -> bool {
        self.agents[agent as usize] >= epoch
    }

    /// As [`Seen::covers`] for all agents of a row.
    #[inline]
    pub(super) fn covers_row(&self, row: usize, epoch: u32) -> bool {
        self.rows[row] >= epoch
    }

    fn new(agents: Vec<u32>) -> Self {
        let least = |row: &[u32]| row.iter().copied().fold(u32::MAX, u32::min);
        Self { rows: agents.chunks(WARP).map(least).collect(), agents: agents.into() }
    }
}

/// The clocks of a block.
pub(super) struct Clocks {
    /// Threads, rounded up to whole warps: those that do not exist never do anything.
    threads: usize,
    seen: Vec<Rc<Seen>>,
    /// Each thread's own clock; epochs of accesses start at 1.
    own: Vec<u32>,
    /// Commit groups each thread has closed, and those of them it has waited for.
    committed: Vec<u32>,
    awaited: Vec<u32>,
    /// For each warp, whether its lanes have seen the same and have the same clock.
    alike: Vec<bool>,
}

impl Clocks {
    pub(super) fn new(threads: u32) -> Self {
        let threads = (threads as usize).next_multiple_of(WARP);
        let nothing = Rc::new(Seen::new(vec![0; 2 * threads]));
        Self {
            threads,
            seen: vec![nothing; threads],
            own: vec![1; threads],
            committed: vec![0; threads],
            awaited: vec![0; threads],
            alike: vec![true; threads / WARP],
        }
    }

    /// Rows of 32 agents.
    pub(super) fn rows(&self) -> usize {
        2 * self.threads / WARP
    }

    /// The row of the threads of a warp.
    pub(super) fn thread_row(&self, warp: u32) -> usize {
        warp as usize
    }

    /// The row of the copies of a warp.
    pub(super) fn copy_row(&self, warp: u32) -> usize {
        self.threads / WARP + warp as usize
    }

    /// The thread of an agent, and whether the agent is its copies.
    pub(super) fn thread_of(&self, agent: u32) -> (u32, bool) {
        let threads = self.threads as u32;
        if agent < threads { (agent, false) } else { (agent - threads, true) }
    }

    /// The clock of a thread, the epoch of its accesses.
    pub(super) fn now(&self, thread: usize) -> u32 {
        self.own[thread]
    }

    /// The group that a copy issued now belongs to.
    pub(super) fn open_group(&self, thread: usize) -> u32 {
        self.committed[thread] + 1
    }

    /// Whether a thread has waited for one of its groups.
    pub(super) fn has_awaited(&self, thread: u32, group: u32) -> bool {
        self.awaited[thread as usize] >= group
    }

    /// Whether an epoch of an agent comes before what the thread does next.
    #[inline]
    pub(super) fn ordered(&self, thread: usize, agent: usize, epoch: u32) -> bool {
        if agent == thread {
            true
        } else if agent == thread + self.threads {
            self.awaited[thread] >= epoch
        } else {
            self.seen[thread].agents[agent] >= epoch
        }
    }

    /// What all lanes of a warp have seen and their clock, where these are the same in all.
    #[inline]
    pub(super) fn common(&self, warp: u32) -> Option<(&Seen, u32)> {
        let first = warp as usize * WARP;
        self.alike[warp as usize].then(|| (&*self.seen[first], self.own[first]))
    }

    /// [`Clocks::join`] of all threads.
    pub(super) fn join_all(&mut self) {
        self.join(0..self.threads);
    }

    /// The members learn what each of them knows, and tick.
    pub(super) fn join(&mut self, members: Range<usize>) {
        let mut agents = match self.seen.get(members.start) {
            Some(first) => first.agents.to_vec(),
            None => return,
        };
        for pair in self.seen[members.clone()].windows(2) {
            if !Rc::ptr_eq(&pair[0], &pair[1]) {
                for (known, &other) in agents.iter_mut().zip(&pair[1].agents) {
                    *known = (*known).max(other);
                }
            }
        }
        for t in members.clone() {
            agents[t] = self.own[t];
            agents[self.threads + t] = self.awaited[t];
        }
        let joined = Rc::new(Seen::new(agents));
        for t in members.clone() {
            self.seen[t] = Rc::clone(&joined);
            self.own[t] += 1;
        }
        self.compare(members);
    }

    /// A thread closes its group of copies.
    pub(super) fn commit(&mut self, thread: usize) {
        self.committed[thread] += 1;
    }

    /// A thread waits for all but its `pending` newest groups.
    pub(super) fn wait(&mut self, thread: usize, pending: u32) {
        let over = self.committed[thread].saturating_sub(pending);
        self.awaited[thread] = self.awaited[thread].max(over);
    }

    /// Finds out again which of the warps that the threads belong to are alike.
    fn compare(&mut self, threads: Range<usize>) {
        for warp in threads.start / WARP..threads.end.div_ceil(WARP) {
            let lanes = warp * WARP..(warp + 1) * WARP;
            let seen = self.seen[lanes.clone()].windows(2);
            let own = self.own[lanes].windows(2);
            self.alike[warp] = seen.fold(true, |same, w| same & Rc::ptr_eq(&w[0], &w[1]))
                && own.fold(true, |same, w| same & (w[0] == w[1]));
        }
    }
}
