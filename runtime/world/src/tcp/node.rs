//! Connected process: the inbox of its rank, its connections, and their reader and writer threads.
//!
//! Rank 0's process has a connection to each other rank. Any other process has one connection, to
//! rank 0's process. Only rank 0's process forwards messages, decides which rank was lost first,
//! and tells all ranks.

use super::frame::Frame;
use super::link::{Connection, FrameHandler, Start, nonsense};
use super::{LONGEST, Limits};
use crate::channel::{RankLoss, Tag, last_in_chain};
use crate::error::LossReason;
use crate::inbox::{Inbox, Next};
use std::io::Result;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After a loss, the time that a rank waits for rank 0's decision, and the time that rank 0's
/// process waits until all ranks are told.
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
    threads: usize,
    /// For each rank, the rank for which it has waited for some time. Only rank 0's process knows
    /// the waits of all ranks.
    waits: Vec<Option<usize>>,
    /// True for each connection whose writer has written its first bytes, or has ended.
    begun: Vec<bool>,
    /// True for each connection whose writer has written the notice of a loss, or has ended.
    told: Vec<bool>,
}

/// Counts a thread as ended, even after a panic.
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
    /// Returns the system's error if a thread cannot be started. The threads started before have
    /// then ended.
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

    /// Waits until the first bytes are written to all peers, but not longer than
    /// [`Limits::silence`]. All ranks are then connected, so rank 0 may end.
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

    /// Ignores poisoning: no code under the lock can panic halfway through a change.
    fn lock(&self) -> MutexGuard<'_, NodeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a condition holds, at most for the given time.
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

    /// Returns the connection that leads to a rank.
    fn link_to(&self, rank: usize) -> Option<&Connection> {
        if self.rank == 0 { self.links.get(rank.checked_sub(1)?) } else { self.links.first() }
    }

    /// Passes a message to this process's inbox, or to the connection that leads to its receiver.
    pub(super) fn route(&self, to: usize, from: usize, tag: Tag, bytes: Vec<u8>) {
        if to == self.rank {
            self.lock().inbox.push(from, tag, bytes);
            self.changed.notify_all();
        } else if let Some(link) = self.link_to(to) {
            link.post(Frame::Message { to, from, tag, bytes });
        }
    }

    /// Takes the next message of a rank under a tag.
    pub(super) fn take(
        &self,
        from: usize,
        tag: Tag,
        deadline: Instant,
    ) -> std::result::Result<Vec<u8>, RankLoss> {
        let began = Instant::now();
        // A rank that waits long reports for which rank it waits, well before its deadline.
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
        // The report of a late rank must precede the notice that this rank has stopped waiting.
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

    /// Reports that this rank has waited for `of` for some time, or with `None` that it has stopped
    /// waiting.
    fn says_wait(&self, state: &mut NodeState, of: Option<usize>) {
        state.waits[self.rank] = of;
        if self.rank != 0 {
            self.links.iter().for_each(|link| link.post(Frame::Waits(of)));
        }
    }

    /// Returns the loss of the rank to blame for a timeout. If the late rank itself waits for
    /// another rank, that rank is to blame, and so on.
    fn cause(&self, broken: RankLoss) -> RankLoss {
        if self.rank != 0 || !matches!(broken.why, LossReason::Late(_)) {
            return broken;
        }
        let state = self.lock();
        let waits = |rank: usize| state.waits.get(rank).copied().flatten();
        RankLoss { rank: last_in_chain(broken.rank, self.ranks, waits), ..broken }
    }

    /// Reports a lost rank to rank 0's process. Returns the first loss as decided by rank 0's
    /// process, or `broken` if this process does not answer in time.
    pub(super) fn report(&self, broken: RankLoss) -> RankLoss {
        if self.rank != 0 && self.broken().is_none() {
            self.links.iter().for_each(|link| link.post(Frame::LossReason(broken.clone())));
            self.wait_until(self.verdict(), |state| state.inbox.broken().is_some());
        }
        self.lose(self.cause(broken.clone()));
        self.tell(self.broken().unwrap_or(broken))
    }

    /// Waits until all other ranks were told of the loss, and returns it. The caller may then end
    /// the process.
    pub(super) fn tell(&self, broken: RankLoss) -> RankLoss {
        if self.rank == 0 {
            self.wait_until(self.verdict(), |state| state.told.iter().all(|told| *told));
            // A later call does not wait again for ranks that do not read.
            self.lock().told.fill(true);
        }
        broken
    }

    fn verdict(&self) -> Duration {
        VERDICT.min(self.limits.silence)
    }

    /// Records a lost rank. If it is the first, rank 0's process tells all others.
    fn lose(&self, broken: RankLoss) {
        let mut state = self.lock();
        // The notices are queued under the lock, because a thread that sees the loss may close the
        // connections.
        if state.inbox.lose(broken.clone()) && self.rank == 0 {
            self.links.iter().for_each(|link| link.post(Frame::LossReason(broken.clone())));
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(super) fn leave(&self) {
        let mut state = self.lock();
        if !state.inbox.has_left(self.rank) {
            state.inbox.leave(self.rank);
            self.links.iter().for_each(|link| link.post(Frame::Left(self.rank)));
        }
    }

    /// Reads until the connection ends.
    fn read(&self, place: usize) {
        let Some(link) = self.links.get(place) else {
            return;
        };
        let why = link.read(self, self.limits.silence);
        // A rank that has left may disconnect. Rank 0's process may disconnect once this rank has
        // left.
        let well = if self.rank == 0 { self.has_left(link.peer) } else { self.has_left(self.rank) };
        if !well {
            self.lose(RankLoss { rank: link.peer, why });
        }
        if self.rank == 0 {
            link.close();
        } else {
            // Ends the writer, which has no peer left.
            link.cut();
        }
    }

    /// Ends all reading and writing.
    pub(super) fn cut(&self) {
        self.links.iter().for_each(Connection::cut);
        self.links.iter().for_each(Connection::close);
    }

    /// Ends this rank's participation: writes queued frames, waits in rank 0's process for the
    /// other ranks, and ends all threads.
    pub(super) fn end(&self) {
        let left = self.has_left(self.rank);
        let broken = |state: &NodeState| state.inbox.broken().is_some();
        if self.rank == 0 {
            if left {
                // The other ranks may work for any length of time. A lost rank is detected by its
                // silence.
                self.wait_until(LONGEST, |state| broken(state) || state.inbox.is_last(0));
            } else {
                self.lose(RankLoss { rank: 0, why: LossReason::Gone });
            }
            self.links.iter().for_each(Connection::close);
            self.wait_until(self.verdict(), |state| state.threads == 0);
        } else if left {
            self.links.iter().for_each(Connection::close);
            // Rank 0's process closes its side of the connection in response.
            self.wait_until(self.limits.linger, |state| broken(state) || state.threads == 0);
        }
        self.cut();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A thread that panicked has ended too.
            _ = thread.join();
        }
    }
}

impl FrameHandler for Node {
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

/// Returns the index of a peer's connection. Rank 0's process has one per rank from rank 1 on, any
/// other process a single one.
fn place(peer: usize) -> usize {
    peer.saturating_sub(1)
}
