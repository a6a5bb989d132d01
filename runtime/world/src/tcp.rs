//! Ranks in separate processes, connected by TCP. They [`meet`] at rank 0, whose process then
//! forwards all messages.
//!
//! **Rendezvous.** Rank 0 listens. Each other rank connects, sends a greeting with the facts to
//! compare (`hello`), and waits. Once all ranks are present, rank 0 compares their facts and
//! answers (`answer`). The answer contains the facts of every rank, or one error (`fault`) that
//! every rank returns. The module `host` is rank 0's side, with its address in `listen`; `guest` is
//! the side of the other ranks. No rank waits beyond the time limit. Unknown processes, and
//! processes of an earlier job, disturb no rank. Rank 0 continues once it has answered all ranks.
//! If rank 0 disappears after it has read a rank's greeting, this rank returns the loss of rank 0
//! without waiting for the limit.
//!
//! **Messages.** There is one connection between rank 0 and each other rank, with two threads at
//! each end (`node`, `link`). One thread reads, and passes each message to the inbox or to the
//! receiver's connection. The other thread writes queued frames, and a heartbeat when the queue is
//! empty. If a connection ends before its rank has left, the rank is gone; if a connection is
//! silent, the rank is late. Rank 0's process decides which rank was lost first, and tells all
//! ranks. A rank that waits long reports the rank for which it waits. If this late rank itself
//! waits for a third rank, the third is blamed instead. Deadlocks are detected only by deadlines.
//!
//! **Memory.** Sending never blocks, so messages that nobody has taken are in queues: at the
//! sender, in rank 0's process, and in the inbox. These queues are unbounded.
//!
//! **Trust.** Connections are plain TCP without authentication or encryption, like those of NCCL:
//! anyone who can reach the port can take part. Lengths are limited, and no memory is allocated for
//! data that has not arrived. A process that connects by accident therefore does no harm.

mod answer;
mod envelope;
mod fault;
mod frame;
mod guest;
mod hello;
mod host;
mod job;
mod link;
mod listen;
mod node;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use hello::{Fact, Hello, RendezvousOutcome};
#[cfg(test)]
pub(crate) use job::Address;
pub(crate) use job::Job;

use super::WorldError;
use super::error::LossReason;
use crate::channel::{Channel, RankLoss, Tag};
use link::Start;
use node::Node;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Limit for all ranks to meet: 60 s by default.
    pub(crate) rendezvous: Duration,
    /// Interval of heartbeats from a rank that sends nothing else: 1 s by default.
    pub(crate) heartbeat: Duration,
    /// Silence after which a process is late: 10 s by default.
    pub(crate) silence: Duration,
    /// Time limit for a rank that has left to send its queued messages: 60 s by default. Rank 0's
    /// process continues until all other ranks have left, or a rank is lost.
    pub(crate) linger: Duration,
}

/// Upper bound of all limits. Adding it to an `Instant` does not overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Limits {
    /// Returns the default limits, with the rendezvous limit of `GEMM_MEETING`, in seconds.
    ///
    /// # Errors
    /// [`WorldError::Environment`] if the variable is not a whole number of at least 1.
    pub(crate) fn from_env() -> Result<Self, WorldError> {
        const VARIABLE: &str = "GEMM_MEETING";
        let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(Self::default());
        };
        let value = value.to_string_lossy().into_owned();
        match value.trim().parse() {
            Ok(seconds) if seconds > 0 => {
                Ok(Self { rendezvous: Duration::from_secs(seconds), ..Self::default() })
            }
            _ => Err(WorldError::Environment {
                variable: VARIABLE,
                value,
                need: "it has to be a whole number of seconds, at least 1".to_owned(),
            }),
        }
    }

    fn bounded(&self) -> Self {
        let Self { rendezvous, heartbeat, silence, linger } = self.clone();
        let [rendezvous, heartbeat, silence, linger] =
            [rendezvous, heartbeat, silence, linger].map(|time| time.min(LONGEST));
        Self { rendezvous, heartbeat, silence, linger }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rendezvous: Duration::from_secs(60),
            heartbeat: Duration::from_secs(1),
            silence: Duration::from_secs(10),
            linger: Duration::from_secs(60),
        }
    }
}

/// Connects all ranks of a job. Each rank calls this function once.
///
/// A rank that cannot take part also calls this function, with the reason ([`Hello::failure`]), so
/// that the other ranks need not wait for it.
///
/// # Errors
/// All ranks that have arrived return the same error:
///
/// * [`WorldError::Mismatch`] or [`WorldError::Shared`] if their facts conflict.
/// * [`WorldError::RankLost`] if a rank reports a failure, or if rank 0 disappears after it has
///   read the greeting of this rank.
/// * [`WorldError::Rendezvous`] if ranks are missing, or two processes claim the same rank. A rank
///   whose greeting rank 0 has not read returns this variant with its own reason.
pub(crate) fn meet(
    job: &Job,
    hello: &Hello,
    limits: &Limits,
) -> Result<(TcpChannel, RendezvousOutcome), WorldError> {
    meet_at(None, job, hello, limits)
}

/// Like [`meet`], but rank 0 may pass a listener that it already has.
fn meet_at(
    listener: Option<TcpListener>,
    job: &Job,
    hello: &Hello,
    limits: &Limits,
) -> Result<(TcpChannel, RendezvousOutcome), WorldError> {
    let limits = &limits.bounded();
    let deadline = Instant::now() + limits.rendezvous;
    let (links, met) = if job.ranks <= 1 {
        (Vec::new(), hello::alone(hello)?)
    } else if job.rank == 0 {
        let listener = listener.map_or_else(|| listen::listen(&job.address, deadline), Ok)?;
        host::host(listener, job, hello, limits, deadline)?
    } else {
        let (stream, met) = guest::join(job, hello, limits, deadline)?;
        (vec![Start { peer: 0, stream, first: Arc::default() }], met)
    };
    let started = Node::start(job.rank, job.ranks, links, limits);
    let node = started.map_err(|error| WorldError::Rendezvous {
        address: job.address.to_string(),
        reason: format!("rank {} cannot begin: {error}", job.rank),
    })?;
    node.begin();
    Ok((TcpChannel { node }, met))
}

/// Endpoint of a rank whose process is connected to rank 0's.
///
/// Dropping the endpoint waits, within the limits, until this rank's messages are sent and its
/// threads have ended. On rank 0, dropping also waits until all ranks have left.
#[derive(Debug)]
pub(crate) struct TcpChannel {
    node: Arc<Node>,
}

impl TcpChannel {
    /// Returns an error if this rank cannot exchange messages with `other`.
    fn is_impossible(&self, other: usize) -> Option<RankLoss> {
        let why = if self.node.has_left(self.rank()) {
            LossReason::Finished
        } else if other >= self.ranks() {
            LossReason::Failed(format!("it sent to rank {other} in a world of {}", self.ranks()))
        } else {
            return None;
        };
        Some(RankLoss { rank: self.rank(), why })
    }
}

impl Channel for TcpChannel {
    fn rank(&self) -> usize {
        self.node.rank()
    }

    fn ranks(&self) -> usize {
        self.node.ranks()
    }

    fn send(&self, to: usize, tag: Tag, bytes: Vec<u8>) -> Result<(), RankLoss> {
        if let Some(broken) = self.broken() {
            return Err(self.node.tell(broken));
        }
        if let Some(broken) = self.is_impossible(to) {
            return Err(self.node.report(broken));
        }
        self.node.route(to, self.rank(), tag, bytes);
        Ok(())
    }

    fn take(&self, from: usize, tag: Tag, deadline: Instant) -> Result<Vec<u8>, RankLoss> {
        if let Some(broken) = self.broken() {
            return Err(self.node.tell(broken));
        }
        if let Some(broken) = self.is_impossible(from) {
            return Err(self.node.report(broken));
        }
        self.node.take(from, tag, deadline)
    }

    fn broken(&self) -> Option<RankLoss> {
        self.node.broken()
    }

    fn abort(&self, broken: RankLoss) {
        self.node.report(broken);
    }

    fn leave(&self) {
        self.node.leave();
    }
}

impl Drop for TcpChannel {
    fn drop(&mut self) {
        self.node.end();
    }
}
