//! Messages between ranks, independent of their transport.
//!
//! A message goes to one rank and has a [`Tag`]. Messages with the same tag between the same two
//! ranks arrive in the order in which they were sent; others may overtake them. A world breaks
//! once: after the first [`RankLoss`], every call on every rank returns it, even if messages that
//! arrived earlier have not been taken. A world is broken by:
//!
//! * a rank that goes without [leaving](Channel::leave),
//! * a [`Channel::abort`],
//! * a [`Channel::take`] that cannot be satisfied.

use super::error::{LossReason, WorldError};
use std::fmt;
use std::time::Instant;

/// Subject of a message. Messages with the same tag between the same two ranks arrive in the order
/// in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(pub(crate) u64);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankLoss {
    pub(crate) rank: usize,
    pub(crate) why: LossReason,
}

impl RankLoss {
    /// Converts the loss into a user's error. `doing` names the activity of the reporting rank, as
    /// in `gathering rows of A`.
    pub(crate) fn at(self, doing: &str) -> WorldError {
        WorldError::RankLost { rank: self.rank, doing: doing.to_owned(), why: self.why }
    }
}

/// Returns an error if a rank is lost. `doing` names the caller's activity.
pub(crate) fn held(channel: &dyn Channel, doing: &str) -> Result<(), WorldError> {
    channel.broken().map_or(Ok(()), |broken| Err(broken.at(doing)))
}

/// Follows the chain of waiting ranks from `first` and returns the last one. `next` returns the
/// rank that a rank waits for. Returns `first` if the ranks wait for each other in a circle.
pub(crate) fn last_in_chain(
    first: usize,
    ranks: usize,
    next: impl Fn(usize) -> Option<usize>,
) -> usize {
    let mut last = first;
    for _ in 0..ranks {
        match next(last) {
            Some(rank) => last = rank,
            None => return last,
        }
    }
    first
}

/// One rank's endpoint of the channel between all ranks. Once a rank is lost, every present and
/// future wait fails, whatever it waits for.
///
/// Any thread may call, but only one at a time may take: a rank waits for one message at a time.
///
/// If an endpoint is dropped before its rank has left, the rank counts as [gone](LossReason::Gone).
/// The same holds if the thread that alone owns the endpoint panics.
pub(crate) trait Channel: Send + Sync {
    /// Returns the rank of this endpoint.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Sends a message, possibly to this rank itself, without waiting for the receiver. Messages to
    /// a rank that has left are dropped silently.
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), RankLoss>;

    /// Takes the next message from a rank under a tag. Breaks the world if no message arrives by
    /// the deadline (that rank is late), or if none can arrive any more (that rank has finished).
    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, RankLoss>;

    /// Returns the first lost rank. Used by code that waits for something else meanwhile.
    fn broken(&self) -> Option<RankLoss>;

    /// Tells all ranks that a rank is lost, usually this one after a failure. Only the first loss
    /// counts.
    fn abort(&self, broken: RankLoss);

    /// Ends this rank's participation: it neither sends nor takes afterwards. Only ranks that wait
    /// for it are told.
    fn leave(&self);
}
