//! Ranks of one process: what they say goes through memory, in an order and with the faults that a [`Delivery`] says.
//!
//! A message that was sent is *under way* until it becomes visible to who is to have it. Without a seed that is at once.
//! With one, each message that is sent makes a few of those under way visible, drawn at random, the first under its tag
//! before the second; and a rank that waits for one makes messages visible, drawn at random, until it has it: at once
//! where nobody else does anything, else after [`PATIENCE`]. So no message is held back for long, and calls that come in
//! the same order see the same.
//!
//! A rank that waits may look out for a moment, [`MOMENT`], before it sleeps: what the others send to one that sleeps wakes it
//! tens of microseconds later.
//!
//! A hang is found when it comes about, and exactly: ranks that wait for one another in a ring, for messages none of which
//! is under way, wait for ever. As a rank waits for one rank at a time, each hang has such a ring in it, or a rank in it
//! that has left.

mod delivery;
mod post;

pub use delivery::{Delivery, Fault, FaultKind};

use super::error::LossReason;
use crate::channel::{Channel, RankLoss, Tag};
use delivery::corrupt;
use post::{Post, PostState};
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a rank waits for a message that is under way before it goes and gets it.
const PATIENCE: Duration = Duration::from_micros(200);

/// How long a rank looks out for a message before it sleeps.
const MOMENT: Duration = Duration::from_micros(50);

/// The ends of all ranks, in their order. Where each has a processor it looks out for what it waits for, for a moment.
pub(crate) fn mailboxes(ranks: usize, delivery: Delivery) -> Vec<Arc<dyn Channel>> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    mailboxes_that(ranks, delivery, ranks < processors)
}

/// The same, which look out or not.
pub(crate) fn mailboxes_that(
    ranks: usize,
    delivery: Delivery,
    look_out: bool,
) -> Vec<Arc<dyn Channel>> {
    let post = Arc::new(Post::new(ranks, delivery, look_out));
    let end = |rank| Arc::new(Mailbox { rank, post: Arc::clone(&post) }) as Arc<dyn Channel>;
    (0..ranks).map(end).collect()
}

/// The end of one rank.
#[derive(Debug)]
struct Mailbox {
    rank: usize,
    post: Arc<Post>,
}

impl Mailbox {
    /// Counts a call, and does what the plan of faults has for it: whether its message changes.
    fn call(&self) -> Result<bool, RankLoss> {
        let faults = self.post.lock().call(self.rank);
        let mut corrupts = false;
        for fault in faults {
            match fault {
                FaultKind::Delay(time) => thread::sleep(time),
                FaultKind::Corrupt => corrupts = true,
                FaultKind::Die => return Err(self.fail(LossReason::Gone)),
                FaultKind::Fail(with) => return Err(self.fail(LossReason::Failed(with))),
            }
        }
        Ok(corrupts)
    }

    /// This rank is lost.
    fn fail(&self, why: LossReason) -> RankLoss {
        self.post.lose(&mut self.post.lock(), RankLoss { rank: self.rank, why })
    }

    /// Why this rank can say nothing to another one, or hear nothing of it.
    fn is_impossible(&self, state: &PostState, other: usize) -> Option<RankLoss> {
        if let Some(broken) = state.broken() {
            return Some(broken.clone());
        }
        let why = if state.has_left(self.rank) {
            LossReason::Finished
        } else if other >= self.ranks() {
            LossReason::Failed(format!("it spoke to rank {other} in a world of {}", self.ranks()))
        } else {
            return None;
        };
        Some(RankLoss { rank: self.rank, why })
    }
}

impl Channel for Mailbox {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.post.ranks()
    }

    fn send(&self, to: usize, tag: Tag, mut bytes: Vec<u8>) -> Result<(), RankLoss> {
        let corrupts = self.call()?;
        let mut state = self.post.lock();
        if let Some(broken) = self.is_impossible(&state, to) {
            return Err(self.post.lose(&mut state, broken));
        }
        if corrupts {
            corrupt(&mut bytes, state.random());
        }
        self.post.send(&mut state, (self.rank, to, tag), bytes);
        Ok(())
    }

    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, RankLoss> {
        let began = Instant::now();
        let corrupts = self.call()?;
        let mut state = self.post.lock();
        if let Some(broken) = self.is_impossible(&state, from) {
            return Err(self.post.lose(&mut state, broken));
        }
        let mut bytes = self.post.take(state, (from, self.rank, tag), began, deadline)?;
        if corrupts {
            corrupt(&mut bytes, self.post.lock().random());
        }
        Ok(bytes)
    }

    fn broken(&self) -> Option<RankLoss> {
        self.post.lock().broken().cloned()
    }

    fn abort(&self, broken: RankLoss) {
        self.post.lose(&mut self.post.lock(), broken);
    }

    fn leave(&self) {
        self.post.leave(&mut self.post.lock(), self.rank);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        let mut state = self.post.lock();
        if !state.has_left(self.rank) {
            self.post.lose(&mut state, RankLoss { rank: self.rank, why: LossReason::Gone });
        }
    }
}
