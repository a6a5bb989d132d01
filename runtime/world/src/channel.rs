//! What ranks say to one another, by whatever way it goes.
//!
//! A message is for one rank and has a [`Tag`]; those of one tag, from one rank to another, come in the order in which
//! they were sent, and others may overtake them. A world breaks once: the first [`RankLoss`] is what every call on every
//! rank returns from then on, whatever came before it and has not been taken. What breaks it is a rank that goes without
//! [leaving](Channel::leave), a [`Channel::abort`], and a [`Channel::take`] that cannot have what it asks for.

use super::error::{LossReason, WorldError};
use std::fmt;
use std::time::Instant;

/// What a message is about. Those of one tag, from one rank to another, come in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(pub(crate) u64);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {}", self.0)
    }
}

/// A rank that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankLoss {
    /// Which one.
    pub(crate) rank: usize,
    /// What is known of it.
    pub(crate) why: LossReason,
}

impl RankLoss {
    /// What a user is told of it, by a rank that was doing something, as in `gathering rows of A`.
    pub(crate) fn at(self, doing: &str) -> WorldError {
        WorldError::RankLost { rank: self.rank, doing: doing.to_owned(), why: self.why }
    }
}

/// Whether no rank has been lost, as a rank is told that was doing something.
pub(crate) fn held(channel: &dyn Channel, doing: &str) -> Result<(), WorldError> {
    channel.broken().map_or(Ok(()), |broken| Err(broken.at(doing)))
}

/// Who keeps one waiting that waits for a rank: that rank, or who that one waits for itself, and so on; the first where they wait
/// for one another. `next` says for whom a rank waits.
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

/// The end of a rank of what connects all of them. Once a rank is lost it is so for all that wait and for all that come
/// to wait, whatever they wait for: a world with a hole in it does nothing more.
///
/// Any thread may call, but one at a time takes: what a rank waits for is one thing.
///
/// An end that is dropped before its rank has left is that of a rank that is [gone](LossReason::Gone). So is one whose thread
/// panics, where the thread alone holds it.
pub(crate) trait Channel: Send + Sync {
    /// Whose end it is.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Hands over a message, to this rank itself too; does not wait for who is to have it. What is sent to a rank that
    /// has left is lost, and nobody is told.
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), RankLoss>;

    /// The next message of a rank under a tag. Where none has come by the deadline, that rank is late, and where none
    /// can come any more it has finished: the world is broken by either.
    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, RankLoss>;

    /// The first rank that was lost, for those that wait for something else meanwhile.
    fn broken(&self) -> Option<RankLoss>;

    /// Tells all ranks that one is lost; more often this one, which has failed. Only the first counts.
    fn abort(&self, broken: RankLoss);

    /// This rank needs nobody any more: whoever waits for it is told, and nobody else. It neither sends nor takes after
    /// that.
    fn leave(&self);
}
