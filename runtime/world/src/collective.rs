//! One call of all ranks, as a rank takes part in it.

use super::error::{LossReason, WorldError};
use crate::channel::{Channel, RankLoss, Tag, held};
use crate::consensus;
use crate::{Error, Result};
use gemm_dsl::target::element::{Element, from_bytes};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the ranks say to one another in one call.
pub(crate) struct CollectiveContext {
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) timeout: Duration,
    pub(crate) call: u64,
    pub(crate) doing: String,
}

/// Tags of one call: one for what all ranks say, one for each exchange, and one for each signal.
const TAGS: u64 = 1 << 20;

/// What a verdict of rank 0 takes until it is here.
const MARGIN: Duration = Duration::from_millis(500);

/// What a rank tells the others without words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// Its parts may be fetched.
    Ready = 1,
    /// It has everything that it fetches.
    Done = 2,
}

impl CollectiveContext {
    pub(crate) fn number(&self) -> usize {
        self.channel.rank()
    }

    pub(crate) fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// Checks that all ranks have come to this call with the same in hand.
    pub(crate) fn agree(&self, what: &str, value: &str) -> Result<()> {
        self.agree_on(&[(what, value)], false).map(drop)
    }

    /// The same of several texts, in one message. Whether all ranks are ready, as this one says that it is.
    pub(crate) fn agree_on(&self, said: &[(&str, &str)], is_ready: bool) -> Result<bool> {
        const REMEDY: &str =
            "All ranks make the same calls in the same order, with the same layouts";
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::agree(&*self.channel, tag, said, is_ready, deadline, REMEDY)?)
    }

    /// What every rank says, in their order.
    pub(crate) fn gather_all(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::gather_all(&*self.channel, tag, &self.doing, bytes, deadline)?)
    }

    /// Tells all ranks that this one has failed.
    pub(crate) fn abort(&self, error: &Error) {
        let why = LossReason::Failed(error.to_string());
        self.channel.abort(RankLoss { rank: self.number(), why });
    }

    /// What this rank has come to, of which the others are told where it is an error: they would wait for it.
    pub(crate) fn telling<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T> {
        outcome.map_err(Into::into).inspect_err(|error| self.abort(error))
    }

    /// Hands over what belongs to an exchange.
    pub(crate) fn send(&self, to: usize, exchange: usize, bytes: Vec<u8>) -> Result<()> {
        let sent = self.channel.send(to, self.tag(Some(exchange))?, bytes);
        sent.map_err(|broken| self.lost(broken))
    }

    /// Takes what belongs to an exchange.
    pub(crate) fn take(&self, from: usize, exchange: usize) -> Result<Vec<u8>> {
        let taken = self.channel.take(from, self.tag(Some(exchange))?, self.deadline());
        taken.map_err(|broken| self.lost(broken))
    }

    /// So many elements of another rank, in exchange 0.
    pub(crate) fn elements<T: Element>(&self, from: usize, len: usize) -> Result<Vec<T>> {
        let bytes = self.take(from, 0)?;
        let elements: Option<Vec<T>> = from_bytes(&bytes);
        elements.filter(|elements| elements.len() == len).ok_or_else(|| {
            Error::World(WorldError::Mismatch {
                what: "a part of the matrix".to_owned(),
                rank: from,
                has: format!("sent {} bytes", bytes.len()),
                other: self.number(),
                others: format!("room for {len} elements"),
                remedy: "What carries messages between the ranks has changed one",
            })
        })
    }

    /// What a user is told of a rank that is lost.
    pub(crate) fn lost(&self, broken: RankLoss) -> Error {
        Error::World(broken.at(&self.doing))
    }

    /// Whether no rank has been lost.
    pub(crate) fn held(&self) -> Result<()> {
        Ok(self.held_world()?)
    }

    /// The same, for those who know of no other errors.
    pub(crate) fn held_world(&self) -> Result<(), WorldError> {
        held(&*self.channel, &self.doing)
    }

    /// When all ranks are to have spoken. Rank 0 hears them, and says who is late: the others wait for what it says, which may
    /// be as late itself.
    fn deadline_of_all(&self) -> Instant {
        let margin = if self.number() == 0 { Duration::ZERO } else { self.timeout + MARGIN };
        self.deadline() + margin
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    /// The number of the call.
    pub(crate) fn call(&self) -> u64 {
        self.call
    }

    /// Gives all others a signal.
    pub(crate) fn tell_all(&self, signal: Signal) -> Result<()> {
        for to in (0..self.ranks()).filter(|to| *to != self.number()) {
            let sent = self.channel.send(to, self.signal(signal), Vec::new());
            sent.map_err(|broken| self.lost(broken))?;
        }
        Ok(())
    }

    /// Waits for a signal of another rank.
    pub(crate) fn hear(&self, from: usize, signal: Signal) -> Result<()> {
        let heard = self.channel.take(from, self.signal(signal), self.deadline());
        heard.map(|_| ()).map_err(|broken| self.lost(broken))
    }

    fn signal(&self, signal: Signal) -> Tag {
        Tag(self.call * TAGS + TAGS - signal as u64)
    }

    fn tag(&self, exchange: Option<usize>) -> Result<Tag> {
        let exchange = exchange.map_or(0, |exchange| exchange as u64 + 1);
        // The last ones are those of signals.
        let most = TAGS - Signal::Done as u64;
        if exchange >= most {
            return Err(Error::Device(gemm_runtime::Error::TooLarge {
                what: format!("the schedule has {exchange} exchanges"),
                limit: most - 1,
                remedy: "Cut the product into fewer parts",
            }));
        }
        Ok(Tag(self.call * TAGS + exchange))
    }
}
