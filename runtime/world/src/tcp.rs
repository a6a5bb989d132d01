//! Ranks that are processes: they [`meet`] at rank 0, and from then on everything they say goes through its process.
//!
//! **Meeting.** Rank 0 listens; each other rank comes, says who it is and what is to be compared (`hello`), and waits.
//! When all are there rank 0 compares, and answers all of them (`answer`): with what each has said, or with one error (`fault`),
//! which then is that of every rank. `host` is rank 0's side of it (`listen`: where), `guest` that of the others. Nobody waits for longer
//! than the limit, and who comes there by mistake, or from an earlier job, disturbs nobody. Rank 0 goes on when it has let all
//! in, and one that has been heard and sees rank 0 gone is told that it is lost: neither waits for the limit.
//!
//! **Afterwards** there is one connection between rank 0 and each other rank, with two threads at each end (`node`, `link`): one
//! reads, and hands what has come to the inbox or to the connection of who is to have it; one writes what is queued, and a
//! sign of life where nothing is. A connection that ends before its rank has left says that it is gone, one on which
//! nothing has come for some time that it is late. Which rank was lost first rank 0's process decides, and tells all. Who waits
//! for long says for whom: a rank that is late for one that it keeps waiting since it waits for a third itself is not what is
//! told, but the third. Ranks that wait for one another are found by their deadlines alone.
//!
//! **Memory.** Nothing waits for a receiver, so what was sent and has not been taken lies in queues: at the sender, in the
//! process of rank 0 on its way, in the inbox. Nothing bounds these but what ranks send ahead of others that take.
//!
//! **Trust.** Connections are plain TCP, without a secret and not encrypted, as are those of NCCL: whoever can reach the
//! port can take part. Lengths are limited and nothing is allocated for what has not come, so that strangers and accidents
//! do no harm.

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

/// How long things may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// All ranks are to have met by then: 60 s.
    pub(crate) rendezvous: Duration,
    /// A rank that has nothing to say gives a sign of life that often: 1 s.
    pub(crate) heartbeat: Duration,
    /// A process of which nothing has come for so long is late: 10 s.
    pub(crate) silence: Duration,
    /// How long a rank that has left stays until what it has said is on its way: 60 s. The process of rank 0 stays until all
    /// others have left, or one is lost.
    pub(crate) linger: Duration,
}

/// Longer than anything takes, and so short that a moment that much later has a number.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Limits {
    /// The usual ones, with the time for the meeting that `GEMM_MEETING` says, in seconds.
    ///
    /// # Errors
    /// [`WorldError::Environment`] where that is no whole number of at least 1.
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

/// Where all ranks of a job come together. Called by each of them, once.
///
/// A rank that cannot take part comes too, and says why ([`Hello::failure`]): so the others need not wait for it.
///
/// # Errors
/// The same on every rank that has come: [`WorldError::Mismatch`] and [`WorldError::Shared`] of what they have said,
/// [`WorldError::RankLost`] where one says that it has failed, or where rank 0 is gone after it has heard this one,
/// [`WorldError::Rendezvous`] where some have not come, or two say that they are the same. A rank that rank 0 never heard of has [`WorldError::Rendezvous`], with what it met instead.
pub(crate) fn meet(
    job: &Job,
    hello: &Hello,
    limits: &Limits,
) -> Result<(TcpChannel, RendezvousOutcome), WorldError> {
    meet_at(None, job, hello, limits)
}

/// The same, where rank 0 may listen already.
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

/// The end of a rank whose process is connected to that of rank 0.
///
/// Dropped, it waits until what this rank has sent before it left is on its way, and rank 0's until all have left, for no
/// longer than the limits say; then its threads have ended.
#[derive(Debug)]
pub(crate) struct TcpChannel {
    node: Arc<Node>,
}

impl TcpChannel {
    /// Why this rank can say nothing to another one, or hear nothing of it.
    fn is_impossible(&self, other: usize) -> Option<RankLoss> {
        let why = if self.node.has_left(self.rank()) {
            LossReason::Finished
        } else if other >= self.ranks() {
            LossReason::Failed(format!("it spoke to rank {other} in a world of {}", self.ranks()))
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
