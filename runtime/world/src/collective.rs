//! One rank's context of one collective call.

use super::error::{LossReason, WorldError};
use crate::channel::{Channel, RankLoss, Tag, held};
use crate::consensus;
use crate::{Error, Result};
use gemm_dsl::error::counted;
use gemm_dsl::target::element::{Element, from_bytes};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Context of one collective call: channel, timeout, call number and the activity named in errors.
pub(crate) struct CollectiveContext {
    pub(crate) channel: Arc<dyn Channel>,
    pub(crate) timeout: Duration,
    pub(crate) call: u64,
    pub(crate) doing: String,
}

/// Number of tags that one call may use: one for consensus, one for each exchange, and one for each
/// signal.
const TAGS: u64 = 1 << 20;

/// Additional wait for a report of rank 0 to arrive.
const MARGIN: Duration = Duration::from_millis(500);

/// Message without content, sent to all other ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// Other ranks may fetch the sender's parts.
    Ready = 1,
    /// The sender has fetched everything it needs.
    Done = 2,
}

impl CollectiveContext {
    pub(crate) fn number(&self) -> usize {
        self.channel.rank()
    }

    pub(crate) fn ranks(&self) -> usize {
        self.channel.ranks()
    }

    /// Checks that all ranks made this call with the same value.
    pub(crate) fn agree(&self, what: &str, value: &str) -> Result<()> {
        self.agree_on(&[(what, value)], false).map(drop)
    }

    /// Checks several values in one message. Returns true if `is_ready` is true on all ranks.
    pub(crate) fn agree_on(&self, said: &[(&str, &str)], is_ready: bool) -> Result<bool> {
        const REMEDY: &str =
            "All ranks make the same calls in the same order, with the same layouts";
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::agree(&*self.channel, tag, said, is_ready, deadline, REMEDY)?)
    }

    /// Returns the messages of all ranks, by rank.
    pub(crate) fn gather_all(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>> {
        let (tag, deadline) = (self.tag(None)?, self.deadline_of_all());
        Ok(consensus::gather_all(&*self.channel, tag, &self.doing, bytes, deadline)?)
    }

    /// Tells all ranks that this one has failed.
    pub(crate) fn abort(&self, error: &Error) {
        let why = LossReason::Failed(error.to_string());
        self.channel.abort(RankLoss { rank: self.number(), why });
    }

    /// Returns the outcome unchanged. If it is an error, tells the other ranks, which would
    /// otherwise wait for this rank.
    pub(crate) fn telling<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T> {
        outcome.map_err(Into::into).inspect_err(|error| self.abort(error))
    }

    /// Sends the data of an exchange.
    pub(crate) fn send(&self, to: usize, exchange: usize, bytes: Vec<u8>) -> Result<()> {
        let sent = self.channel.send(to, self.tag(Some(exchange))?, bytes);
        sent.map_err(|broken| self.lost(broken))
    }

    /// Receives the data of an exchange.
    pub(crate) fn take(&self, from: usize, exchange: usize) -> Result<Vec<u8>> {
        let taken = self.channel.take(from, self.tag(Some(exchange))?, self.deadline());
        taken.map_err(|broken| self.lost(broken))
    }

    /// Receives `len` elements of another rank, in exchange 0.
    pub(crate) fn elements<T: Element>(&self, from: usize, len: usize) -> Result<Vec<T>> {
        let bytes = self.take(from, 0)?;
        let elements: Option<Vec<T>> = from_bytes(&bytes);
        elements.filter(|elements| elements.len() == len).ok_or_else(|| {
            Error::World(WorldError::Mismatch {
                what: "a part of the matrix".to_owned(),
                rank: from,
                has: format!("sent {} bytes", bytes.len()),
                other: self.number(),
                others: format!("capacity for {}", counted(len as u64, "element")),
                remedy: "The transport between the ranks has changed a message",
            })
        })
    }

    /// Converts a loss into the user's error.
    pub(crate) fn lost(&self, broken: RankLoss) -> Error {
        Error::World(broken.at(&self.doing))
    }

    /// Returns an error if a rank is lost.
    pub(crate) fn held(&self) -> Result<()> {
        Ok(self.held_world()?)
    }

    /// Like [`Self::held`], with the narrower error type.
    pub(crate) fn held_world(&self) -> Result<(), WorldError> {
        held(&*self.channel, &self.doing)
    }

    /// Deadline for messages of all ranks. Rank 0 gathers the messages until its timeout, and
    /// reports a late rank. The other ranks wait longer, so that this report can still arrive.
    fn deadline_of_all(&self) -> Instant {
        let margin = if self.number() == 0 { Duration::ZERO } else { self.timeout + MARGIN };
        self.deadline() + margin
    }

    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.timeout
    }

    pub(crate) fn call(&self) -> u64 {
        self.call
    }

    /// Sends a signal to all other ranks.
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
        // The highest tags of a call are its signals.
        let most = TAGS - Signal::Done as u64;
        if exchange >= most {
            return Err(Error::Device(gemm_runtime::Error::TooLarge {
                what: format!("the schedule has {exchange} exchanges"),
                limit: most - 1,
                remedy: "Cut the GEMM into fewer parts",
            }));
        }
        Ok(Tag(self.call * TAGS + exchange))
    }
}
