//! Messages between ranks, independent of their transport.
//!
//! A message goes to one rank and has a [`Tag`]. Messages with the same tag between the same two
//! ranks arrive in the order in which they were sent; messages with other tags may overtake them.
//! After the first [`RankLoss`], every call on every rank returns this loss, even if messages that
//! arrived earlier have not been taken. Three events are such a loss:
//!
//! * a rank that ends without [leaving](Channel::leave),
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

/// Returns an error if a rank has been lost. `doing` names the caller's activity.
pub(crate) fn held(channel: &dyn Channel, doing: &str) -> Result<(), WorldError> {
    channel.broken().map_or(Ok(()), |broken| Err(broken.at(doing)))
}

/// Follows the chain of waiting ranks from `first` and returns the last rank of the chain. `next`
/// returns the rank for which a rank waits. Returns `first` if the ranks wait for each other in a
/// circle.
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
/// future wait fails.
///
/// Any thread may call these methods, but only one thread at a time may call [`take`](Self::take):
/// a rank waits for one message at a time.
///
/// A rank counts as [gone](LossReason::Gone) if its endpoint is dropped before the rank has left. A
/// panic of the thread that owns the endpoint drops it, too.
pub(crate) trait Channel: Send + Sync {
    /// Returns the rank of this endpoint.
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn ranks(&self) -> usize;

    /// Sends a message, possibly to this rank itself, without waiting for the receiver. Messages to
    /// a rank that has left are dropped silently.
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), RankLoss>;

    /// Takes the next message from a rank under a tag. The rank `from` is lost if no message
    /// arrives by the deadline, or if none can arrive because the rank has left.
    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, RankLoss>;

    /// Returns the first lost rank, for code that waits for something other than a message.
    fn broken(&self) -> Option<RankLoss>;

    /// Tells all ranks that a rank is lost, usually this rank after a failure. Only the first loss
    /// counts.
    fn abort(&self, broken: RankLoss);

    /// Ends the participation of this rank, which then neither sends nor takes messages. Only ranks
    /// that wait for this rank are told.
    fn leave(&self);
}
