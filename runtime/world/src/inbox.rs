//! Messages received by a rank, and the state of the other ranks as far as this rank knows it. This
//! is plain data without a lock; its owner waits for messages.

use crate::channel::{RankLoss, Tag};
use std::collections::{HashMap, VecDeque};

/// Received messages of a rank that have not been taken.
#[derive(Debug)]
pub(crate) struct Inbox {
    rank: usize,
    /// Queues by sender and tag. An empty queue is removed, so that a finished tag takes no memory.
    messages: HashMap<(usize, Tag), VecDeque<Vec<u8>>>,
    left: Vec<bool>,
    broken: Option<RankLoss>,
}

/// Result of a request for the next message of a rank under a tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The message, removed from the inbox.
    Message(Vec<u8>),
    Nothing,
    /// No message, and the sender has left.
    Left,
    /// No message, because a rank is lost.
    RankLoss(RankLoss),
}

impl Inbox {
    pub(crate) fn new(rank: usize, ranks: usize) -> Self {
        Self { rank, messages: HashMap::new(), left: vec![false; ranks], broken: None }
    }

    /// Adds a message, unless this rank has left or a rank is lost.
    pub(crate) fn push(&mut self, from: usize, tag: Tag, bytes: Vec<u8>) {
        if self.broken.is_none() && !self.has_left(self.rank) {
            self.messages.entry((from, tag)).or_default().push_back(bytes);
        }
    }

    /// Records that a rank has left. Its earlier messages can still be taken.
    pub(crate) fn leave(&mut self, rank: usize) {
        if let Some(left) = self.left.get_mut(rank) {
            *left = true;
        }
        if rank == self.rank {
            self.messages.clear();
        }
    }

    pub(crate) fn has_left(&self, rank: usize) -> bool {
        self.left.get(rank).copied().unwrap_or(false)
    }

    /// Returns true if all ranks except `rank` have left.
    pub(crate) fn is_last(&self, rank: usize) -> bool {
        self.left.iter().enumerate().all(|(other, left)| other == rank || *left)
    }

    /// Records a lost rank. Returns true if no rank was lost before.
    pub(crate) fn lose(&mut self, broken: RankLoss) -> bool {
        let first = self.broken.is_none();
        if first {
            self.broken = Some(broken);
            self.messages.clear();
        }
        first
    }

    pub(crate) fn broken(&self) -> Option<&RankLoss> {
        self.broken.as_ref()
    }

    /// Takes the next message of a rank under a tag.
    pub(crate) fn next(&mut self, from: usize, tag: Tag) -> Next {
        if let Some(broken) = &self.broken {
            return Next::RankLoss(broken.clone());
        }
        let Some(queue) = self.messages.get_mut(&(from, tag)) else {
            return if self.has_left(from) { Next::Left } else { Next::Nothing };
        };
        let message = queue.pop_front();
        if queue.is_empty() {
            self.messages.remove(&(from, tag));
        }
        message.map_or(Next::Nothing, Next::Message)
    }
}

#[cfg(test)]
mod tests {
    use super::{Inbox, Next};
    use crate::channel::{RankLoss, Tag};
    use crate::error::LossReason;

    #[test]
    fn nothing_is_kept_that_nobody_can_take() {
        let broken = RankLoss { rank: 1, why: LossReason::Gone };
        let ends: [&dyn Fn(&mut Inbox); 3] =
            [&|inbox| inbox.leave(0), &|inbox| assert!(inbox.lose(broken.clone())), &|inbox| {
                while let Next::Message(_) = inbox.next(1, Tag(3)) {}
            }];
        for (place, end) in ends.iter().enumerate() {
            let mut inbox = Inbox::new(0, 2);
            for number in 0..5 {
                inbox.push(1, Tag(3), vec![number]);
            }
            end(&mut inbox);
            assert!(inbox.messages.is_empty());
            inbox.push(1, Tag(3), vec![5]);
            assert_eq!(inbox.messages.is_empty(), place < 2);
        }
    }
}
