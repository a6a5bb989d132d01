//! What ranks say to one another, by whatever way it goes.

use super::error::Lost;
use std::time::Instant;

/// What a message is about. Those of one tag, from one rank to another, come in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(pub(crate) u64);

/// A rank that is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    /// Which one.
    pub(crate) rank: usize,
    /// What is known of it.
    pub(crate) why: Lost,
}

/// The end of a rank of what connects all of them. Once a rank is lost it is so for all that wait and for all that come
/// to wait, whatever they wait for: a world with a hole in it does nothing more.
pub(crate) trait Wire: Send + Sync {
    /// Whose end it is.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Hands over a message, to this rank itself too; does not wait for who is to have it.
    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), Broken>;

    /// The next message of a rank under a tag. Where none has come by the deadline, that rank is late.
    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, Broken>;

    /// The first rank that was lost, for those that wait for something else meanwhile.
    fn broken(&self) -> Option<Broken>;

    /// Tells all ranks that one is lost; more often this one, which has failed. Only the first counts.
    fn abort(&self, broken: Broken);

    /// This rank needs nobody any more: whoever waits for it is told, and nobody else.
    fn leave(&self);
}
