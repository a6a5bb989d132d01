//! In-memory messages between ranks of one process. A [`Delivery`] sets their order and injects
//! faults.
//!
//! A sent message is *under way* until it becomes visible to its receiver. Without a seed, a
//! message is visible at once. With a seed, each send makes a few randomly drawn messages visible,
//! in their order within a tag. A rank that waits for a message draws messages until its own
//! message is visible. It begins at once if all ranks wait, otherwise after [`PATIENCE`]. No
//! message is therefore delayed for long, and equal sequences of calls see equal orders.
//!
//! A waiting rank may spin for [`MOMENT`] before it sleeps, since waking a sleeping thread takes
//! tens of microseconds.
//!
//! A deadlock is detected as soon as it arises. Ranks wait for ever if they wait for each other in
//! a circle and none of the awaited messages is under way. A rank waits for one rank at a time, so
//! every deadlock contains such a circle or a rank that has left.

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

/// Time that a rank waits for a message under way before the rank itself makes the message visible.
const PATIENCE: Duration = Duration::from_micros(200);

/// Time that a rank spins for a message before it sleeps.
const MOMENT: Duration = Duration::from_micros(50);

/// Creates the mailboxes of all ranks, in order. Ranks spin before they sleep if there is a
/// processor for each rank.
pub(crate) fn mailboxes(ranks: usize, delivery: Delivery) -> Vec<Arc<dyn Channel>> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    mailboxes_that(ranks, delivery, ranks < processors)
}

/// Creates mailboxes with or without spinning.
pub(crate) fn mailboxes_that(
    ranks: usize,
    delivery: Delivery,
    look_out: bool,
) -> Vec<Arc<dyn Channel>> {
    let post = Arc::new(Post::new(ranks, delivery, look_out));
    let end = |rank| Arc::new(Mailbox { rank, post: Arc::clone(&post) }) as Arc<dyn Channel>;
    (0..ranks).map(end).collect()
}

#[derive(Debug)]
struct Mailbox {
    rank: usize,
    post: Arc<Post>,
}

impl Mailbox {
    /// Counts a call and applies the faults that are planned for it. Returns true if the message of
    /// the call must be corrupted.
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

    fn fail(&self, why: LossReason) -> RankLoss {
        self.post.lose(&mut self.post.lock(), RankLoss { rank: self.rank, why })
    }

    /// Returns an error if this rank cannot exchange messages with `other`.
    fn is_impossible(&self, state: &PostState, other: usize) -> Option<RankLoss> {
        if let Some(broken) = state.broken() {
            return Some(broken.clone());
        }
        let why = if state.has_left(self.rank) {
            LossReason::Finished
        } else if other >= self.ranks() {
            LossReason::Failed(format!("it sent to rank {other} in a world of {}", self.ranks()))
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
