//! A process that is connected: what has come to its rank, its connections, and the threads that read and write them.
//!
//! Rank 0's process has a connection to each other rank, any other process one, to that of rank 0. What is different about
//! rank 0's is that it hands on messages, and that it decides which rank was lost first and tells all.

use super::frame::Frame;
use super::link::{Around, Connection, Start, nonsense};
use super::{LONGEST, Limits};
use crate::channel::{RankLoss, Tag, last_in_chain};
use crate::error::LossReason;
use crate::inbox::{Inbox, Next};
use std::io::Result;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a rank that has seen another one lost waits for what rank 0 says of it, and rank 0's process for those that it
/// has told, at most.
const VERDICT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Node {
    rank: usize,
    ranks: usize,
    limits: Limits,
    state: Mutex<NodeState>,
    changed: Condvar,
    links: Vec<Connection>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct NodeState {
    inbox: Inbox,
    /// How many threads have not ended.
    threads: usize,
    /// For which rank each has waited for some time, as far as this process knows: rank 0's of all.
    waits: Vec<Option<usize>>,
    /// By connection, whether its writer has written what is said first, or has ended.
    begun: Vec<bool>,
    /// By connection, whether its writer has written what rank was lost, or has ended.
    told: Vec<bool>,
}

/// Counts a thread as ended, however it ends.
struct ThreadGuard(Arc<Node>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.0.lock().threads -= 1;
        self.0.changed.notify_all();
    }
}

impl Node {
    /// Starts the threads of all connections.
    ///
    /// # Errors
    /// Where one cannot be started; those that were have ended then.
    pub(super) fn start(
        rank: usize,
        ranks: usize,
        starts: Vec<Start>,
        limits: &Limits,
    ) -> Result<Arc<Self>> {
        let links = starts.into_iter().map(|start| Connection::new(start, limits.silence));
        let (links, queues): (Vec<Connection>, Vec<_>) =
            links.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let node = Arc::new(Self {
            rank,
            ranks,
            limits: limits.clone(),
            state: Mutex::new(NodeState {
                inbox: Inbox::new(rank, ranks),
                threads: 0,
                waits: vec![None; ranks],
                begun: vec![false; links.len()],
                told: vec![false; links.len()],
            }),
            changed: Condvar::new(),
            links,
            threads: Mutex::new(Vec::new()),
        });
        for (place, frames) in queues.into_iter().enumerate() {
            let writes = node.spawn("write", move |node| {
                if let Some(link) = node.links.get(place) {
                    link.write(node, &frames, node.limits.heartbeat);
                }
            });
            let reads = writes.and_then(|()| node.spawn("read", move |node| node.read(place)));
            if let Err(error) = reads {
                node.cut();
                return Err(error);
            }
        }
        Ok(node)
    }

    /// Waits until all others have been said what is said first, but not for one that does not listen: whoever ends then has
    /// let them in.
    pub(super) fn begin(&self) {
        self.wait_until(self.limits.silence, |state| state.begun.iter().all(|begun| *begun));
    }

    fn spawn(
        self: &Arc<Self>,
        does: &str,
        body: impl FnOnce(&Self) + Send + 'static,
    ) -> Result<()> {
        self.lock().threads += 1;
        let ended = ThreadGuard(Arc::clone(self));
        let name = format!("gemm-{does}-{}", self.rank);
        let thread = thread::Builder::new().name(name).spawn(move || body(&ended.0))?;
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    /// A thread that panics with it leaves a state that is whole: nothing that is done with it calls what could.
    fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something holds, for so long at most.
    fn wait_until(&self, time: Duration, holds: impl Fn(&NodeState) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |state| !holds(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn broken(&self) -> Option<RankLoss> {
        self.lock().inbox.broken().cloned()
    }

    pub(super) fn has_left(&self, rank: usize) -> bool {
        self.lock().inbox.has_left(rank)
    }

    /// The connection that leads to a rank.
    fn link_to(&self, rank: usize) -> Option<&Connection> {
        if self.rank == 0 { self.links.get(rank.checked_sub(1)?) } else { self.links.first() }
    }

    /// Hands a message on: to the inbox here, or to the connection that leads to who is to have it.
    pub(super) fn route(&self, to: usize, from: usize, tag: Tag, bytes: Vec<u8>) {
        if to == self.rank {
            self.lock().inbox.push(from, tag, bytes);
            self.changed.notify_all();
        } else if let Some(link) = self.link_to(to) {
            link.post(Frame::Message { to, from, tag, bytes });
        }
    }

    /// The next message of a rank under a tag.
    pub(super) fn take(
        &self,
        from: usize,
        tag: Tag,
        deadline: Instant,
    ) -> std::result::Result<Vec<u8>, RankLoss> {
        let began = Instant::now();
        // Whoever waits for long says for whom, well before its time is over.
        let says = began + self.limits.heartbeat.min(deadline.duration_since(began) / 2);
        let mut has_said = false;
        let mut state = self.lock();
        let outcome = loop {
            let now = Instant::now();
            match state.inbox.next(from, tag) {
                Next::Message(bytes) => break Ok(bytes),
                Next::RankLoss(broken) => break Err(Ok(broken)),
                Next::Left => break Err(Err(LossReason::Finished)),
                Next::Nothing if now >= deadline => {
                    break Err(Err(LossReason::Late(now.duration_since(began))));
                }
                Next::Nothing if now >= says && !has_said => {
                    has_said = true;
                    self.says_wait(&mut state, Some(from));
                }
                Next::Nothing => {}
            }
            let until = if has_said { deadline } else { says };
            let waited = self.changed.wait_timeout(state, until.saturating_duration_since(now));
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        };
        // What it says of one that is late is heard before that it does not wait any more.
        let ended = |node: &Self| {
            if has_said {
                node.says_wait(&mut node.lock(), None);
            }
        };
        drop(state);
        match outcome {
            Ok(bytes) => {
                ended(self);
                Ok(bytes)
            }
            Err(Ok(broken)) => Err(self.tell(broken)),
            Err(Err(why)) => {
                let lost = self.report(RankLoss { rank: from, why });
                ended(self);
                Err(lost)
            }
        }
    }

    /// This rank has waited for another one for some time, or does not wait any more.
    fn says_wait(&self, state: &mut NodeState, of: Option<usize>) {
        state.waits[self.rank] = of;
        if self.rank != 0 {
            self.links.iter().for_each(|link| link.post(Frame::Waits(of)));
        }
    }

    /// Of a rank that another one has waited for in vain: if that waits for a third one itself, it is that one that is late, or
    /// who that one waits for.
    fn cause(&self, broken: RankLoss) -> RankLoss {
        if self.rank != 0 || !matches!(broken.why, LossReason::Late(_)) {
            return broken;
        }
        let state = self.lock();
        let waits = |rank: usize| state.waits.get(rank).copied().flatten();
        RankLoss { rank: last_in_chain(broken.rank, self.ranks, waits), ..broken }
    }

    /// A rank is lost, as far as this one knows: the first that was, as rank 0's process says, or as this one knows where
    /// that says nothing.
    pub(super) fn report(&self, broken: RankLoss) -> RankLoss {
        if self.rank != 0 && self.broken().is_none() {
            self.links.iter().for_each(|link| link.post(Frame::LossReason(broken.clone())));
            self.wait_until(self.verdict(), |state| state.inbox.broken().is_some());
        }
        self.lose(self.cause(broken.clone()));
        self.tell(self.broken().unwrap_or(broken))
    }

    /// What this rank is told, when all others are: it may end its process.
    pub(super) fn tell(&self, broken: RankLoss) -> RankLoss {
        if self.rank == 0 {
            self.wait_until(self.verdict(), |state| state.told.iter().all(|told| *told));
            // Those that do not listen are waited for once.
            self.lock().told.fill(true);
        }
        broken
    }

    fn verdict(&self) -> Duration {
        VERDICT.min(self.limits.silence)
    }

    /// A rank is lost. Rank 0's process tells all others, if it is the first.
    fn lose(&self, broken: RankLoss) {
        let mut state = self.lock();
        // Under the lock: whoever sees the loss may close the connections, and then nothing is told any more.
        if state.inbox.lose(broken.clone()) && self.rank == 0 {
            self.links.iter().for_each(|link| link.post(Frame::LossReason(broken.clone())));
        }
        drop(state);
        self.changed.notify_all();
    }

    /// This rank leaves.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        if !state.inbox.has_left(self.rank) {
            state.inbox.leave(self.rank);
            self.links.iter().for_each(|link| link.post(Frame::Left(self.rank)));
        }
    }

    /// A reader: until the connection ends.
    fn read(&self, place: usize) {
        let Some(link) = self.links.get(place) else {
            return;
        };
        let why = link.read(self, self.limits.silence);
        // Who has left may go. Where it is this rank that has, rank 0's process may too.
        let well = if self.rank == 0 { self.has_left(link.peer) } else { self.has_left(self.rank) };
        if !well {
            self.lose(RankLoss { rank: link.peer, why });
        }
        if self.rank == 0 {
            link.close();
        } else {
            // Nobody is there to whom something could be said.
            link.cut();
        }
    }

    /// Nothing is read or written any more.
    pub(super) fn cut(&self) {
        self.links.iter().for_each(Connection::cut);
        self.links.iter().for_each(Connection::close);
    }

    /// The end of this rank's part: what is queued is written, rank 0's process waits for the others, and then all threads
    /// have ended.
    pub(super) fn end(&self) {
        let left = self.has_left(self.rank);
        let broken = |state: &NodeState| state.inbox.broken().is_some();
        if self.rank == 0 {
            if left {
                // However long they work: who is gone is silent, and is found out.
                self.wait_until(LONGEST, |state| broken(state) || state.inbox.is_last(0));
            } else {
                self.lose(RankLoss { rank: 0, why: LossReason::Gone });
            }
            self.links.iter().for_each(Connection::close);
            self.wait_until(self.verdict(), |state| state.threads == 0);
        } else if left {
            self.links.iter().for_each(Connection::close);
            // Rank 0's process answers the end of what is written with the end of what it writes.
            self.wait_until(self.limits.linger, |state| broken(state) || state.threads == 0);
        }
        self.cut();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // One that has panicked has ended too.
            _ = thread.join();
        }
    }
}

impl Around for Node {
    fn arrived(&self, peer: usize, frame: Frame) -> std::result::Result<(), LossReason> {
        let speaks_for = |rank| if self.rank == 0 { rank == peer } else { rank < self.ranks };
        match frame {
            Frame::Alive => {}
            Frame::Message { to, from, tag, bytes }
                if speaks_for(from) && to < self.ranks && (self.rank == 0 || to == self.rank) =>
            {
                self.route(to, from, tag, bytes);
            }
            Frame::Left(rank) if speaks_for(rank) => {
                let mut state = self.lock();
                state.inbox.leave(rank);
                if self.rank == 0 {
                    let others = self.links.iter().filter(|link| link.peer != rank);
                    others.for_each(|link| link.post(Frame::Left(rank)));
                }
                drop(state);
                self.changed.notify_all();
            }
            Frame::Waits(of) if self.rank == 0 && of.is_none_or(|of| of < self.ranks) => {
                self.lock().waits[peer] = of;
            }
            Frame::LossReason(broken) if broken.rank < self.ranks => self.lose(self.cause(broken)),
            _ => return Err(nonsense()),
        }
        Ok(())
    }

    fn is_broken(&self) -> bool {
        self.lock().inbox.broken().is_some()
    }

    fn has_told(&self, peer: usize) {
        if let Some(told) = self.lock().told.get_mut(place(peer)) {
            *told = true;
        }
        self.changed.notify_all();
    }

    fn has_begun(&self, peer: usize) {
        if let Some(begun) = self.lock().begun.get_mut(place(peer)) {
            *begun = true;
        }
        self.changed.notify_all();
    }
}

/// Which connection leads to a rank: rank 0's process has its own in the order of ranks, from 1 on; any other one alone.
fn place(peer: usize) -> usize {
    peer.saturating_sub(1)
}
